"""Several switches in parallel as a vector environment of Gymnasium."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from bufgym import _native, arguments


class BufferVectorEnv(VectorEnv[NDArray[np.float32], NDArray[np.float32], NDArray[Any]]):
    """Switches that step in parallel on threads of Rust; each is a :class:`bufgym.BufferEnv`.

    **The arrays are reused.** What ``reset`` and ``step`` return are the same arrays every time, in which
    the next call writes: observations, rewards, terminations, truncations, and all arrays in infos. Copy
    what has to last, or give ``copy=True``.

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

    Environment ``i`` of ``n`` plays the traces ``i``, ``i + n``, ``i + 2n`` and so on of the sequence. The
    results depend on seeds and actions alone, not on the number of threads.

    Args:
        env_id: registered name, see ``bufgym.environments()``.
        num_envs: how many.
        autoreset_mode: what happens at the end of an episode, one of Gymnasium's ``AutoresetMode``:
            ``NEXT_STEP`` (the next step begins one and ignores its action), ``SAME_STEP`` (the step itself
            does, and the last observation is in infos) or ``DISABLED`` (the caller does, with
            ``options={"reset_mask": ...}``).
        threads: on which environments step; one per processor by default.
        copy: return new arrays at every step.
        render_mode: ``"rgb_array"`` for pictures, or None.
"""

    __doc__ = (__doc__ or "") + arguments.DESCRIPTION

    def __init__(
        self,
        env_id: str,
        num_envs: int = 1,
        *,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        threads: int | None = None,
        copy: bool = False,
        render_mode: str | None = None,
        settings: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        if render_mode not in (None, "rgb_array"):
            raise ValueError(f"render_mode {render_mode!r} is not known; it is 'rgb_array' or None")
        mode = AutoresetMode(autoreset_mode)
        self.render_mode = render_mode
        self.metadata = {
            "render_modes": ["rgb_array"],
            "render_fps": 10,
            "autoreset_mode": mode,
        }
        self._native = _native.VectorEnv(
            env_id, num_envs, mode.value, threads or 0, arguments.native(settings, options)
        )
        self.num_envs = num_envs
        self.single_observation_space = arguments.box(self._native.observation_space())
        self.single_action_space = arguments.box(self._native.action_space())
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._mode = mode
        self._copy = copy
        self._arrays = self._native.arrays()
        self._all = np.ones(num_envs, dtype=bool)

    @property
    def threads(self) -> int:
        """How many threads environments step on."""
        return self._native.threads()

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Begins an episode in every environment, or in those of ``options["reset_mask"]``.

        Args:
            seed: of the first environment, the others have the next ones; or one for each.
            options: ``{"trace": index}`` and ``{"reset_mask": bool array [envs]}``.
        """
        options = dict(options or {})
        mask = options.pop("reset_mask", None)
        if mask is not None:
            mask = self._mask(mask)
        unknown = [key for key in options if key != "trace"]
        if unknown:
            raise ValueError(
                f"options[{unknown[0]!r}] is not known; a reset has the options 'trace' and 'reset_mask'"
            )
        self._native.reset(self._seeds(seed), mask, **options)
        arrays = self._now()
        return arrays["observations"], self._infos(arrays)

    def step(
        self, actions: NDArray[np.float32]
    ) -> tuple[
        NDArray[np.float32], NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]
    ]:
        """Moves every environment by one step. ``actions`` is float32 [envs, ports]."""
        ended = self._native.step(actions)
        arrays = self._now()
        infos = self._infos(arrays)
        if ended:
            self._add_ended(arrays, infos, ended)
        return (
            arrays["observations"],
            arrays["rewards"],
            arrays["terminated"],
            arrays["truncated"],
            infos,
        )

    def render(self) -> tuple[NDArray[np.uint8], ...] | None:  # type: ignore[override]
        """A picture of every environment, see :meth:`bufgym.BufferEnv.render`."""
        return tuple(self._native.render()) if self.render_mode == "rgb_array" else None

    def _now(self) -> dict[str, NDArray[Any]]:
        if self._copy:
            return {name: array.copy() for name, array in self._arrays.items()}
        return self._arrays

    def _seeds(self, seed: int | Sequence[int | None] | None) -> list[int | None]:
        if seed is None:
            return [None] * self.num_envs
        if isinstance(seed, (int, np.integer)):
            return [int(seed) + env for env in range(self.num_envs)]
        seeds = list(seed)
        if len(seeds) != self.num_envs:
            raise ValueError(f"seed: {len(seeds)} seeds given where {self.num_envs} are needed")
        return seeds

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

    def _infos(self, arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
        everywhere = self._all
        return {
            "privileged": arrays["privileged"],
            "_privileged": everywhere,
            "port_rewards": arrays["port_rewards"],
            "_port_rewards": everywhere,
            "discount": arrays["discounts"],
            "_discount": everywhere,
            "entropy_weight": arrays["entropy_weights"],
            "_entropy_weight": everywhere,
            "elapsed_ps": arrays["elapsed_ps"],
            "_elapsed_ps": everywhere,
            "reset": arrays["resets"],
            "_reset": everywhere,
        }

    def _add_ended(
        self,
        arrays: dict[str, NDArray[Any]],
        infos: dict[str, Any],
        ended: list[tuple[int, dict[str, Any]]],
    ) -> None:
        """Adds what is told of episodes that have ended."""
        where = np.zeros(self.num_envs, dtype=bool)
        stats: dict[str, Any] = {}
        for env, values in ended:
            where[env] = True
            stats = self._add_info(stats, values, env)
        infos["episode_stats"], infos["_episode_stats"] = stats, where
        if self._mode is AutoresetMode.SAME_STEP:
            infos["final_obs"], infos["_final_obs"] = arrays["final_observations"], where
            infos["final_info"] = {"privileged": arrays["final_privileged"], "_privileged": where}
            infos["_final_info"] = where


def make_vec(env_id: str, num_envs: int = 1, **options: Any) -> BufferVectorEnv:
    """``num_envs`` environments called ``env_id``, see :class:`BufferVectorEnv`."""
    return BufferVectorEnv(env_id, num_envs, **options)
