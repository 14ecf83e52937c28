"""A network of switches for PettingZoo, each switch an agent: ``pip install 'bufgym[pettingzoo]'``."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium.spaces import Box
from numpy.typing import NDArray
from pettingzoo import ParallelEnv

from bufgym import _native, arguments

Observations = dict[str, NDArray[np.float32]]


class NetworkEnv(ParallelEnv[str, NDArray[np.float32], NDArray[np.float32]]):  # type: ignore[misc]
    """A network whose switches decide each at its own times: ``leaf_0``, ``leaf_1``, ... ``spine_0``, ...

    Switches have their own triggers, so one of them has a turn in a step: ``infos[agent]["turn"]`` says whose it
    is. Only the action of that agent has an effect; those of others may be left out. What an agent decides
    lasts until its own next turn, at which its reward is that of the whole time; in between its reward is 0 and
    its observation that of its last turn. ``infos[agent]["transition"]`` says where an agent's transition ended.
    At the end of an episode the last interval of every agent ends.

    Spaces are those of :class:`bufgym.BufferEnv` with the number of ports of each switch. The rewards of all
    switches add up to the cost of all flows.

    Args:
        env_id: registered name, such as ``"bufgym/LeafSpine-4x4-v0"``.
        options: keyword arguments of :class:`bufgym.BufferEnv`.
    """

    metadata: dict[str, Any] = {"name": "bufgym_network_v0", "render_modes": []}

    def __init__(
        self,
        env_id: str = "bufgym/LeafSpine-4x4-v0",
        *,
        settings: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        self._native = _native.NetworkEnv(env_id, arguments.native(settings, options))
        self._seeding = arguments.Seeding(options)
        self.possible_agents = self._native.agents()
        self.agents: list[str] = []
        self.render_mode = None
        self.observation_spaces = self._spaces(self._native.observation_spaces())
        self.action_spaces = self._spaces(self._native.action_spaces())

    def _spaces(self, bounds: list[Any]) -> dict[str, Box]:
        return {agent: arguments.box(each) for agent, each in zip(self.possible_agents, bounds, strict=True)}

    def observation_space(self, agent: str) -> Box:
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> Box:
        return self.action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observations, dict[str, dict[str, Any]]]:
        """Begins an episode and runs to its first turn; ``options={"trace": index}`` plays this trace. As in
        other environments of PettingZoo, options that are not known have no effect. Seeds are as in
        :meth:`bufgym.BufferEnv.reset`."""
        self._native.reset(self._seeding.seed(seed), (options or {}).get("trace"))
        self._seeding.seeded = True
        self.agents = list(self.possible_agents)
        observations, _, infos = self._told()
        return observations, infos

    def step(
        self, actions: Mapping[str, NDArray[np.float32]]
    ) -> tuple[
        Observations, dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]
    ]:
        """Applies the action of the agent whose turn it is, and runs to the next turn or the end."""
        if not self.agents:
            return {}, {}, {}, {}, {}
        turn = self.possible_agents[self._native.turn()]
        if turn not in actions:
            raise ValueError(f"actions: none of {turn}, whose turn it is")
        terminated, truncated = self._native.step(actions[turn])
        observations, rewards, infos = self._told()
        everyone = list(self.agents)
        if terminated or truncated:
            self.agents = []
        return (
            observations,
            rewards,
            dict.fromkeys(everyone, terminated),
            dict.fromkeys(everyone, truncated),
            infos,
        )

    def _told(self) -> tuple[Observations, dict[str, float], dict[str, dict[str, Any]]]:
        observations, rewards, infos = {}, {}, {}
        for agent, (observation, reward, info) in zip(
            self.possible_agents, self._native.told(), strict=True
        ):
            observations[agent], rewards[agent], infos[agent] = observation, reward, info
        return observations, rewards, infos

    def render(self) -> None:
        """Networks have no pictures."""

    def close(self) -> None:
        """Nothing is open."""
