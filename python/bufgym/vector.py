"""Several switches in parallel as a vector environment of Gymnasium."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray
from typing_extensions import Unpack

from bufgym import _native, arguments
from bufgym.arguments import EnvOptions
from bufgym.env import BufferEnv

#: Arrays in infos.
_INFOS = ("privileged", "port_rewards", "discount", "entropy_weight", "elapsed_ps", "reset")


class BufferVectorEnv(VectorEnv[NDArray[np.float32], NDArray[np.float32], NDArray[Any]]):
    """Switches that step in parallel on threads of Rust; each is a :class:`bufgym.BufferEnv`.

    What ``reset`` and ``step`` return are new arrays at every call. With ``copy=False`` they are the same
    arrays every time, memory of Rust's in which the next call writes: observations, rewards, terminations,
    truncations, and the arrays of these in infos. Then copy what has to last.

    ====================  ============================  ================================================
    observations          float32 [envs, ports, 8, 5]
    rewards               float64 [envs]
    terminations          bool [envs]
    truncations           bool [envs]
    ``privileged``        float32 [envs, ports, 22]     in infos, as the following
    ``port_rewards``      float32 [envs, ports]
    ``discount``          float32 [envs]
    ``entropy_weight``    float32 [envs]
    ``elapsed_ps``        uint64 [envs]                 simulated picoseconds
    ``reset``             bool [envs]                   the row is the beginning of an episode and no
                                                        transition
    ``episode_stats``     dict of arrays [envs]         where an episode ended, as ``_episode_stats`` says
    ``final_obs``         float32 [envs, ports, 8, 5]   with SAME_STEP, where an episode ended, as
                                                        ``_final_obs`` says; other rows are old
    ``final_info``        dict                          ``privileged``, at the same time
    ====================  ============================  ================================================

    Environment ``i`` of ``n`` plays the traces ``i``, ``i + n``, ``i + 2n`` and so on of its sequence. The
    results depend on seeds and actions alone, not on the number of threads.

    Args:
        env_id: registered name, see ``bufgym.environments()``.
        num_envs: how many.
        autoreset_mode: what happens at the end of an episode, one of Gymnasium's ``AutoresetMode``:
            ``NEXT_STEP`` (the next step begins one and ignores its action), ``SAME_STEP`` (the step itself
            does, and the last observation is in infos) or ``DISABLED`` (the caller does, with
            ``options={"reset_mask": ...}``).
        threads: on which environments step; one per processor by default.
        copy: return new arrays at every call, as vector environments of Gymnasium do by default. Without
            that nothing is copied, and the next call overwrites what this one has returned.
        render_mode: ``"rgb_array"`` for pictures, or None.
"""

    __doc__ = (__doc__ or "") + arguments.DESCRIPTION

    @arguments.explicit
    def __init__(
        self,
        env_id: str,
        num_envs: int = 1,
        *,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        threads: int | None = None,
        copy: bool = True,
        render_mode: str | None = None,
        **options: Unpack[EnvOptions],
    ) -> None:
        mode = AutoresetMode(autoreset_mode)
        self.render_mode = arguments.render_mode(render_mode)
        self.metadata = {**BufferEnv.metadata, "autoreset_mode": mode}
        self._native = _native.VectorEnv(env_id, num_envs, mode.value, threads or 0, arguments.native(options))
        self.num_envs = num_envs
        self.single_observation_space = arguments.box(self._native.observation_space())
        self.single_action_space = arguments.box(self._native.action_space())
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._mode = mode
        self._copy = copy
        self._arrays = self._native.arrays()
        self._seedings = [arguments.Seeding(options) for _ in range(num_envs)]

    @property
    def threads(self) -> int:
        """Number of threads on which environments step."""
        return self._native.threads()

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Begins an episode in every environment, or in those of ``options["reset_mask"]``.

        Args:
            seed: of the first environment, the others have the next ones; or one for each. An environment
                without one continues as :meth:`bufgym.BufferEnv.reset` says: with the sequence of its last
                seed, or with a seed from the machine's entropy.
            options: ``{"trace": index}`` and ``{"reset_mask": bool array [envs]}``.
        """
        options = arguments.reset_options(options, "trace", "reset_mask")
        mask = options.pop("reset_mask", None)
        if mask is not None:
            mask = self._mask(mask)
        self._native.reset(self._seeds(seed), mask, **options)
        for env, seeding in enumerate(self._seedings):
            seeding.seeded |= mask is None or mask[env]
        return self._now("observations"), self._infos()

    def step(
        self, actions: NDArray[np.float32]
    ) -> tuple[
        NDArray[np.float32], NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]
    ]:
        """Moves every environment by one step.

        ``actions`` is float32 [envs, ports], or [envs, ports, 2] where early drop is set too.
        Raises a ``ValueError`` as :meth:`bufgym.BufferEnv.step` does, with the number of the environment.
        """
        ended = self._native.step(actions)
        infos = self._infos()
        if ended:
            self._add_ended(infos, ended)
        return (
            self._now("observations"),
            self._now("rewards"),
            self._now("terminated"),
            self._now("truncated"),
            infos,
        )

    def render(self) -> tuple[NDArray[np.uint8], ...] | None:  # type: ignore[override]
        """Returns a picture of every environment, see :meth:`bufgym.BufferEnv.render`."""
        return tuple(self._native.render()) if self.render_mode == "rgb_array" else None

    def _now(self, name: str) -> NDArray[Any]:
        array = self._arrays[name]
        return array.copy() if self._copy else array

    def _seeds(self, seed: int | Sequence[int | None] | None) -> list[int | None]:
        if seed is None:
            seeds: list[int | None] = [None] * self.num_envs
        elif isinstance(seed, (int, np.integer)):
            seeds = [int(seed) + env for env in range(self.num_envs)]
        else:
            seeds = list(seed)
        if len(seeds) != self.num_envs:
            raise ValueError(f"seed: {len(seeds)} seeds given where {self.num_envs} are needed")
        return [seeding.seed(each) for seeding, each in zip(self._seedings, seeds, strict=True)]

    def _mask(self, mask: Any) -> list[bool]:
        mask = np.asarray(mask)
        if mask.dtype != bool or mask.shape != (self.num_envs,):
            raise ValueError(
                f"options['reset_mask']: an array {mask.dtype}{list(mask.shape)} given where an array "
                f"bool[{self.num_envs}] is expected"
            )
        if not mask.any():
            raise ValueError("options['reset_mask']: no environment is to be reset")
        return [bool(value) for value in mask]

    def _infos(self) -> dict[str, Any]:
        infos: dict[str, Any] = {}
        for name in _INFOS:
            infos[name] = self._now(name)
            infos[f"_{name}"] = np.ones(self.num_envs, dtype=bool)
        return infos

    def _add_ended(self, infos: dict[str, Any], ended: list[tuple[int, dict[str, Any]]]) -> None:
        """Adds what is told of episodes that have ended."""
        where = np.zeros(self.num_envs, dtype=bool)
        stats: dict[str, Any] = {}
        for env, values in ended:
            where[env] = True
            stats = self._add_info(stats, values, env)
        infos["episode_stats"], infos["_episode_stats"] = stats, where
        if self._mode is AutoresetMode.SAME_STEP:
            infos["final_obs"], infos["_final_obs"] = self._now("final_observations"), where.copy()
            infos["final_info"] = {"privileged": self._now("final_privileged"), "_privileged": where.copy()}
            infos["_final_info"] = where.copy()


@arguments.explicit
def make_vec(
    env_id: str,
    num_envs: int = 1,
    *,
    autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
    threads: int | None = None,
    copy: bool = True,
    render_mode: str | None = None,
    **options: Unpack[EnvOptions],
) -> BufferVectorEnv:
    """Returns ``num_envs`` environments called ``env_id``, see :class:`BufferVectorEnv`."""
    return BufferVectorEnv(
        env_id,
        num_envs,
        autoreset_mode=autoreset_mode,
        threads=threads,
        copy=copy,
        render_mode=render_mode,
        **options,
    )
