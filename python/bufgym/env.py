"""A single switch as an environment of Gymnasium."""

from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray
from typing_extensions import Unpack

from bufgym import _native, arguments
from bufgym.arguments import EnvOptions

Observation = NDArray[np.float32]
Action = NDArray[np.float32]


class BufferEnv(gymnasium.Env[Observation, Action]):
    """A shared-memory switch whose agent sets one α per port.

    Between two decisions every packet is admitted to queue ``i`` by ``q_i < α_i (B - Q)``, with the buffer
    ``B`` and its occupancy ``Q`` in bytes. A step runs to the next trigger, so steps differ in length.

    ===============  =====================  ============================================================
    action           float32 [ports]        in [-1, 1]; eight equal cells stand for the α of
                                            ``bufgym.ALPHAS``, 2^-2 to 2^5
    \\- early drop   float32 [ports, 2]     where ``low_level`` ends in ``+early``: α, then the level of
                                            early drop
    observation      float32 [ports, 8, 5]  in [-1, 1]; the last 8 decisions, newest last, of
                                            ``bufgym.FEATURE_NAMES``
    reward           float                  by the objective
    terminated       bool                   all flows are complete: do not bootstrap
    truncated        bool                   a limit of the scenario was reached: bootstrap
    ===============  =====================  ============================================================

    The info of a step has

    =====================  ====================  ========================================================
    ``privileged``         float32 [ports, 22]   ``bufgym.PRIVILEGED_NAMES``: what only the simulator
                                                 knows, for critics
    ``port_rewards``       float32 [ports]       the reward in parts
    ``discount``           float                 e^(-Δt/τ), the factor of the next observation's value
    ``entropy_weight``     float                 weight of an entropy bonus
    ``elapsed_ps``         int                   length of the step, simulated picoseconds
    ``skipped``            int                   after a reset, if any: traces passed over, because they
                                                 end without a decision
    ``episode_stats``      dict                  at the end of an episode: its statistics
    =====================  ====================  ========================================================

    Observations and the arrays of infos are new ones at every step. An environment is for one thread at a
    time; other threads run while it steps.

    Args:
        env_id: registered name, see ``bufgym.environments()``.
        render_mode: ``"rgb_array"`` for pictures, or None.
"""

    __doc__ = (__doc__ or "") + arguments.DESCRIPTION

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 10}

    @arguments.explicit
    def __init__(self, env_id: str, *, render_mode: str | None = None, **options: Unpack[EnvOptions]) -> None:
        self.render_mode = arguments.render_mode(render_mode)
        self._native = _native.Env(env_id, arguments.native(options))
        self._seeding = arguments.Seeding(options)
        self.observation_space = arguments.box(self._native.observation_space())
        self.action_space = arguments.box(self._native.action_space())

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begins an episode, which is one trace of flows, and runs to its first decision.

        A seed starts the sequence of traces again. Without one the sequence of the last seed continues. An
        environment that has no seed yet, not from its keyword arguments either, draws one from the
        machine's entropy; ``np_random_seed`` is the seed then.

        Args:
            seed: from 0 to 2^64 - 1.
            options: ``{"trace": index}`` plays exactly this trace of the split.
        """
        seed = self._seeding.seed(seed)
        observation, info = self._native.reset(seed, **arguments.reset_options(options, "trace"))
        self._seeding.seeded = True
        super().reset(seed=seed)
        return observation, info

    def step(self, action: Action) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Sets α on all ports and runs to the next decision or the end of the episode.

        Raises a ``ValueError`` if the action is not float32 of the exact shape and in [-1, 1], or if no episode
        is running; then nothing has happened.
        """
        return self._native.step(action)

    def render(self) -> NDArray[np.uint8] | None:  # type: ignore[override]
        """Returns a picture, uint8 [height, width, 3]; None without ``render_mode="rgb_array"``.

        It shows the bar of the whole buffer, then that of every port's queue, red where it has reached its
        threshold, with the line of the threshold; below are α and the port. Lines are at quarters of the buffer.
        """
        return self._native.render() if self.render_mode == "rgb_array" else None

    def snapshot(self) -> str:
        """Returns the exact state as JSON, for :meth:`restore`."""
        return self._native.snapshot()

    def restore(self, snapshot: str) -> tuple[Observation, dict[str, Any]] | None:
        """Goes to the state of a snapshot of an environment with the same keyword arguments.

        What follows is bit for bit what would have followed there. The episode so far is simulated again.
        Returns observation and info, or None when no episode had been begun. Raises a ``ValueError`` if the text is
        no snapshot, or one of an environment with other arguments.
        """
        restored = self._native.restore(snapshot)
        self._seeding.seeded |= restored is not None
        return restored

    @property
    def trace_index(self) -> int | None:
        """Index in its split of the trace that is played; None before the first reset."""
        return self._native.trace_index()

    @property
    def scenario(self) -> str:
        """The scenario with every setting, as a scenario file (TOML)."""
        return self._native.scenario()


@arguments.explicit
def make(env_id: str, *, render_mode: str | None = None, **options: Unpack[EnvOptions]) -> BufferEnv:
    """Returns the environment called ``env_id`` without wrappers, see :class:`BufferEnv`.

    ``gymnasium.make`` takes the same arguments; it puts wrappers around the environment that check the
    order of calls and, once, what is returned.
    """
    return BufferEnv(env_id, render_mode=render_mode, **options)
