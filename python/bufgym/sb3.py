"""The environments for Stable-Baselines3: ``pip install 'bufgym[sb3]'``."""

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import VecEnv as _Base
from stable_baselines3.sac.policies import Actor as _SACActor
from stable_baselines3.sac.policies import SACPolicy
from torch import Tensor
from typing_extensions import Unpack

from bufgym import arguments
from bufgym.arguments import EnvOptions
from bufgym.torch import Actor
from bufgym.vector import BufferVectorEnv


class BufferVecEnv(_Base):
    """``num_envs`` switches in parallel behind the interface of Stable-Baselines3.

    It needs no ``DummyVecEnv``, ``SubprocVecEnv`` or ``VecMonitor``: environments step on threads of Rust. At
    the end of an episode ``info["episode"]`` has what ``VecMonitor`` adds: the return ``r``, the length ``l``
    in steps, and ``t``, the seconds since the environment was made. Simulated times are in
    ``episode_stats``. Stable-Baselines3 keeps what it is given, so all arrays are new ones at every step.

    Infos have ``discount``, ``elapsed_ps``, ``TimeLimit.truncated`` and, at the end of an episode,
    ``terminal_observation`` and ``episode_stats``. Discounts of Stable-Baselines3 count steps, those of the
    environment simulated time; algorithms here use the former.

    Args:
        env_id: registered name, see ``bufgym.environments()``.
        num_envs: how many.
        threads: on which environments step; one per processor by default.
        render_mode: ``"rgb_array"`` for pictures, or None.
        options: keyword arguments, see :class:`bufgym.EnvOptions`.
    """

    @arguments.explicit
    def __init__(
        self,
        env_id: str,
        num_envs: int = 1,
        *,
        threads: int | None = None,
        render_mode: str | None = None,
        **options: Unpack[EnvOptions],
    ) -> None:
        self.envs = BufferVectorEnv(
            env_id,
            num_envs,
            autoreset_mode=AutoresetMode.SAME_STEP,
            threads=threads,
            copy=True,
            render_mode=render_mode,
            **options,
        )
        self._actions: NDArray[np.float32] | None = None
        self._start = time.time()
        super().__init__(num_envs, self.envs.single_observation_space, self.envs.single_action_space)

    def reset(self) -> NDArray[np.float32]:
        seeds: Any = self._seeds if any(seed is not None for seed in self._seeds) else None
        options = self._options[0] if self._options and self._options[0] else None
        observations, infos = self.envs.reset(seed=seeds, options=options)
        self.reset_infos = [self._info(infos, env) for env in range(self.num_envs)]
        self._reset_seeds()
        self._reset_options()
        return observations

    def step_async(self, actions: NDArray[np.float32]) -> None:
        self._actions = actions

    def step_wait(self) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.bool_], list[dict[str, Any]]]:
        assert self._actions is not None, "step_async comes before step_wait"
        observations, rewards, terminated, truncated, infos = self.envs.step(self._actions)
        dones = terminated | truncated
        each = [self._info(infos, env) for env in range(self.num_envs)]
        for env in np.flatnonzero(dones):
            stats = {name: values[env] for name, values in infos["episode_stats"].items() if name[0] != "_"}
            each[env]["TimeLimit.truncated"] = bool(truncated[env] and not terminated[env])
            each[env]["terminal_observation"] = infos["final_obs"][env]
            each[env]["episode_stats"] = stats
            each[env]["episode"] = {
                "r": float(stats["return"]),
                "l": int(stats["decisions"]),
                "t": round(time.time() - self._start, 6),
            }
        return observations, rewards.astype(np.float32), dones, each

    @staticmethod
    def _info(infos: dict[str, Any], env: int) -> dict[str, Any]:
        return {
            "discount": float(infos["discount"][env]),
            "elapsed_ps": int(infos["elapsed_ps"][env]),
            "TimeLimit.truncated": False,
        }

    def close(self) -> None:
        self.envs.close()

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        return [getattr(self.envs, attr_name) for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        raise AttributeError(f"{attr_name}: attributes of environments in Rust cannot be set")

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list[Any]:
        raise AttributeError(f"{method_name}: environments in Rust have no methods of their own")

    def env_is_wrapped(self, wrapper_class: type, indices: Any = None) -> list[bool]:
        # What a Monitor would add is there.
        return [issubclass(wrapper_class, Monitor) for _ in self._get_indices(indices)]

    def get_images(self) -> Sequence[NDArray[np.uint8] | None]:
        return self.envs.render() or [None] * self.num_envs


#: The former name.
VecEnv = BufferVecEnv


class _PortActor(_SACActor):
    """The actor of SAC with the network of :class:`bufgym.torch.Actor` in the place of layers of its own."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        shape = self.action_space.shape or (1,)
        #: The network; ``net.save`` makes a checkpoint of it.
        self.net = Actor(shape[1] if len(shape) > 1 else 1)
        # Layers that are not used would be saved and optimised with it.
        del self.latent_pi, self.mu, self.log_std

    def get_action_dist_params(  # type: ignore[override]
        self, obs: Tensor
    ) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
        mean, log_std = self.net(obs)
        return mean.flatten(1), log_std.flatten(1), {}


class PortSACPolicy(SACPolicy):
    """Policy of SAC whose actor is the permutation-equivariant network: ``SAC(PortSACPolicy, envs)``.

    After training ``model.actor.net.save(folder)`` writes a checkpoint for ``bufgym eval --policy ndt:folder``
    and ``bufgym export``. The critics are those of Stable-Baselines3, of the flat observation.
    """

    def make_actor(self, features_extractor: Any = None) -> _SACActor:
        options = self._update_features_extractor(self.actor_kwargs, features_extractor)
        return _PortActor(**options).to(self.device)
