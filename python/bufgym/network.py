"""A network of switches; :mod:`bufgym.pettingzoo` and :mod:`bufgym.rllib` give it the forms of these libraries."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium.spaces import Box
from numpy.typing import NDArray
from typing_extensions import Unpack

from bufgym import _native, arguments
from bufgym.arguments import EnvOptions

Observations = dict[str, NDArray[np.float32]]
Infos = dict[str, dict[str, Any]]


class NetworkEnv:
    """The common part of environments whose agents are the switches of a network.

    Args:
        env_id: registered name of a network, see ``bufgym.environments()``.
        options: keyword arguments, see :class:`bufgym.EnvOptions`.
    """

    #: The agents that still play; none before the first reset.
    agents: list[str] = []

    @arguments.explicit
    def __init__(self, env_id: str = "bufgym/LeafSpine-4x4-v0", **options: Unpack[EnvOptions]) -> None:
        self._native = _native.NetworkEnv(env_id, arguments.native(options))
        self._seeding = arguments.Seeding(options)
        self.possible_agents = self._native.agents()
        self.observation_spaces = self._spaces(self._native.observation_spaces())
        self.action_spaces = self._spaces(self._native.action_spaces())

    def _spaces(self, bounds: list[Any]) -> dict[str, Box]:
        return {agent: arguments.box(each) for agent, each in zip(self.possible_agents, bounds, strict=True)}

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Observations, Infos]:
        """Begins an episode and runs to its first turn. Returns what each agent observes, and its info.

        Args:
            seed: from 0 to 2^64 - 1, see :meth:`bufgym.BufferEnv.reset`.
            options: ``{"trace": index}`` plays exactly this trace of the split. Others have no effect, as in
                other environments of these libraries.
        """
        self._native.reset(self._seeding.seed(seed), (options or {}).get("trace"))
        self._seeding.seeded = True
        self.agents = list(self.possible_agents)
        observations, _, infos = self._told()
        return observations, infos

    def _decide(self, actions: Mapping[str, NDArray[np.float32]]) -> tuple[bool, bool]:
        """Applies the action of the agent whose turn it is, and runs to the next turn or the end.

        Returns whether the episode was terminated and whether it was truncated. Raises a ``ValueError`` if
        that agent has no action.
        """
        turn = self.possible_agents[self._native.turn()]
        if turn not in actions:
            raise ValueError(f"no action of {turn}, whose turn it is")
        return self._native.step(actions[turn])

    def _told(self) -> tuple[Observations, dict[str, float], Infos]:
        """Returns observation, reward and info of every agent."""
        observations, rewards, infos = zip(*self._native.told(), strict=True)
        agents = self.possible_agents
        return dict(zip(agents, observations)), dict(zip(agents, rewards)), dict(zip(agents, infos))
