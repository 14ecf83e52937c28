"""A network of switches for PettingZoo, each switch an agent: ``pip install 'bufgym[pettingzoo]'``."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium.spaces import Box
from numpy.typing import NDArray
from pettingzoo import ParallelEnv

from bufgym import network
from bufgym.network import Infos, Observations


class NetworkEnv(network.NetworkEnv, ParallelEnv[str, NDArray[np.float32], NDArray[np.float32]]):  # type: ignore[misc]
    """A network whose switches decide each at its own times: ``leaf_0``, ``leaf_1``, ... ``spine_0``, ...

    Switches have their own triggers, so one of them has a turn in a step: ``infos[agent]["turn"]`` says whose it
    is. Only the action of that agent has an effect; those of others may be left out. What an agent decides
    lasts until its own next turn, at which its reward is that of the whole time; in between its reward is 0 and
    its observation that of its last turn. ``infos[agent]["transition"]`` says where an agent's transition ended.
    At the end of an episode the last interval of every agent ends.

    Spaces are those of :class:`bufgym.BufferEnv` with the number of ports of each switch. The rewards of all
    switches add up to the cost of all flows.

    Args:
        env_id: registered name of a network, see ``bufgym.environments()``.
        options: keyword arguments, see :class:`bufgym.EnvOptions`.
    """

    metadata: dict[str, Any] = {"name": "bufgym_network_v0", "render_modes": []}
    render_mode = None

    def observation_space(self, agent: str) -> Box:
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> Box:
        return self.action_spaces[agent]

    def step(
        self, actions: Mapping[str, NDArray[np.float32]]
    ) -> tuple[Observations, dict[str, float], dict[str, bool], dict[str, bool], Infos]:
        """Applies the action of the agent whose turn it is, and runs to the next turn or the end."""
        if not self.agents:
            return {}, {}, {}, {}, {}
        terminated, truncated = self._decide(actions)
        observations, rewards, infos = self._told()
        everyone = self.agents
        if terminated or truncated:
            self.agents = []
        return observations, rewards, dict.fromkeys(everyone, terminated), dict.fromkeys(everyone, truncated), infos

    def render(self) -> None:
        """Networks have no pictures."""

    def close(self) -> None:
        """Nothing is open."""
