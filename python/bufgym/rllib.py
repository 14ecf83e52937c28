"""The environments for RLlib: ``pip install 'bufgym[rllib,torch]'``.

:func:`register_envs` makes every environment known to RLlib by its name. RLlib's networks take vectors and its
policies act in vectors, so observations are float32 [ports * 8 * 5] here and actions float32 [ports], or
[ports * 2] where early drop is set too: those of :class:`bufgym.BufferEnv`, port after port.

:class:`PortSACModule` and :class:`PortPPOModule` have the permutation-equivariant network of ``bufgym train`` as
their policy, whatever the number of ports; ``module.net.save`` makes a checkpoint of it. Discounts of RLlib count
steps, those of the environment simulated time; algorithms here use the former.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium.spaces import Box
from gymnasium.vector import VectorEnv
from gymnasium.wrappers import TransformAction, TransformObservation
from gymnasium.wrappers import vector as vector_wrappers
from numpy.typing import NDArray
from ray.rllib.algorithms.sac.torch.default_sac_torch_rl_module import DefaultSACTorchRLModule
from ray.rllib.core.columns import Columns
from ray.rllib.core.distribution.torch.torch_distribution import TorchDeterministic, TorchSquashedGaussian
from ray.rllib.core.models.base import ENCODER_OUT
from ray.rllib.core.rl_module.apis import InferenceOnlyAPI, ValueFunctionAPI
from ray.rllib.core.rl_module.torch import TorchRLModule
from ray.rllib.env.multi_agent_env import MultiAgentEnv
from ray.tune.registry import register_env
from torch import Tensor, nn

from bufgym import _native, network
from bufgym.arguments import EnvOptions
from bufgym.env import BufferEnv
from bufgym.network import Infos, Observations
from bufgym.torch import Actor
from bufgym.vector import BufferVectorEnv

#: Values of an observation per port: 8 decisions with 5 features.
_PER_PORT = 40


class EnvConfig(EnvOptions, total=False):
    """The configuration of an environment of one switch.

    Args:
        num_envs: how many step together; without it there is one, and no ``threads``.
        threads: on which they step; one per processor by default.
        render_mode: as in :class:`bufgym.BufferEnv`.
    """

    num_envs: int | None
    threads: int | None
    render_mode: str | None


def register_envs() -> None:
    """Registers every environment with RLlib; ``config.environment("bufgym/NDT-16x1G-v0", env_config={...})`` takes
    the keyword arguments of :class:`bufgym.EnvOptions` then.

    Environments of one switch are made by :func:`make`, networks are a :class:`NetworkEnv`.
    """
    for env_id, _, is_network in _native.environments():
        register_env(env_id, partial(NetworkEnv if is_network else make, env_id))


def make(env_id: str, config: EnvConfig | None = None) -> gymnasium.Env[Any, Any] | VectorEnv[Any, Any, Any]:
    """Returns one switch, or several that step on threads of Rust where the configuration has ``num_envs``.

    RLlib asks for several with ``env_runners(gym_env_vectorize_mode="vector_entry_point",
    num_envs_per_env_runner=...)``, which is the fast way. Every environment plays traces of its own. From the seed
    of an algorithm, ``debugging(seed=...)``, RLlib derives one for every environment; without it every environment
    draws its seed from the machine's entropy.

    Args:
        env_id: registered name of a single switch, see ``bufgym.environments()``.
        config: see :class:`EnvConfig`.
    """
    options: dict[str, Any] = dict(config or {})
    num_envs = options.pop("num_envs", None)
    if num_envs is not None:
        # RLlib keeps what it is given, so the arrays are new ones at every step.
        return _flat_vector(BufferVectorEnv(env_id, num_envs, copy=True, **options))
    env = BufferEnv(env_id, **options)
    wrapped = TransformObservation(env, np.ravel, _flat(env.observation_space))
    return TransformAction(wrapped, _reshaped(env.action_space), _flat(env.action_space))


def _flat_vector(envs: BufferVectorEnv) -> VectorEnv[Any, Any, Any]:
    wrapped = vector_wrappers.TransformObservation(
        envs, _rows, single_observation_space=_flat(envs.single_observation_space)
    )
    return vector_wrappers.TransformAction(
        wrapped, _reshaped(envs.action_space), single_action_space=_flat(envs.single_action_space)
    )


def _flat(space: gymnasium.Space[Any]) -> Box:
    """Returns the space whose values are those of a box in one row."""
    assert isinstance(space, Box)
    return Box(space.low.ravel(), space.high.ravel(), dtype=np.float32)


def _rows(observations: Any) -> NDArray[np.float32]:
    return np.reshape(observations, (len(observations), -1))


def _reshaped(space: gymnasium.Space[Any]) -> Callable[[Any], NDArray[np.float32]]:
    """Returns a function that gives flat actions the shape of the environment's."""
    shape = space.shape or ()
    return lambda action: np.asarray(action, np.float32).reshape(shape)


class NetworkEnv(network.NetworkEnv, MultiAgentEnv):  # type: ignore[misc]
    """A network whose switches are agents: ``leaf_0``, ``leaf_1``, ... ``spine_0``, ...

    Switches decide each at its own times. A step has an observation of the one whose turn is next, and the reward
    of all the time since its last turn; at the end of an episode that of every switch that has decided. Leaves and
    spines differ in their number of ports, so each kind has a policy of its own: :func:`kind` maps agents to them.

    Args:
        env_id: registered name of a network, see ``bufgym.environments()``.
        config: keyword arguments, see :class:`bufgym.EnvOptions`.
    """

    def __init__(self, env_id: str = "bufgym/LeafSpine-4x4-v0", config: EnvOptions | None = None) -> None:
        network.NetworkEnv.__init__(self, env_id, **(config or {}))
        self.agents = list(self.possible_agents)
        self._reshaped = {agent: _reshaped(space) for agent, space in self.action_spaces.items()}
        self.action_spaces = {agent: _flat(space) for agent, space in self.action_spaces.items()}
        self.observation_spaces = {agent: _flat(space) for agent, space in self.observation_spaces.items()}
        MultiAgentEnv.__init__(self)

    def step(
        self, action_dict: Mapping[str, NDArray[np.float32]]
    ) -> tuple[Observations, dict[str, float], dict[str, bool], dict[str, bool], Infos]:
        """Applies the action of the switch whose turn it is, and runs to the next turn or the end."""
        actions = {agent: self._reshaped[agent](action) for agent, action in action_dict.items()}
        terminated, truncated = self._decide(actions)
        observations, rewards, infos = self._told()
        terminations = {**dict.fromkeys(observations, terminated), "__all__": terminated}
        truncations = {**dict.fromkeys(observations, truncated), "__all__": truncated}
        return observations, rewards, terminations, truncations, infos

    def _told(self) -> tuple[Observations, dict[str, float], Infos]:
        """Returns the news for agents whose turn it is or whose last interval has ended."""
        observations, rewards, infos = super()._told()
        infos = {agent: info for agent, info in infos.items() if info["turn"] or info["transition"]}
        rewards = {agent: rewards[agent] for agent, info in infos.items() if info["transition"]}
        return {agent: observations[agent].ravel() for agent in infos}, rewards, infos


def kind(agent_id: str, *_: Any, **__: Any) -> str:
    """Returns ``"leaf"`` or ``"spine"``: a ``policy_mapping_fn`` for :class:`NetworkEnv`."""
    return agent_id.split("_")[0]


class PortDistribution(TorchSquashedGaussian):  # type: ignore[misc]
    """A Gaussian that tanh squashes into [-1, 1], with what PPO asks of a distribution."""

    def entropy(self) -> Tensor:
        """Returns an estimate from one sample, with a gradient: the entropy has no closed form."""
        density: Tensor = self.rsample_and_logp()[1]
        return -density

    def kl(self, other: "PortDistribution") -> Tensor:
        """Returns the exact divergence: that of the Gaussians, because tanh loses nothing."""
        return torch.distributions.kl_divergence(self._dist, other._dist).sum(-1)

    def to_deterministic(self) -> TorchDeterministic:
        """Returns the action without noise, which is squashed as those with noise are."""
        return TorchDeterministic(loc=self._squash(self.loc))


class _PortPolicy(nn.Module):
    """Mean and logarithm of the deviation, [batch, 2 * actions], of flat observations [batch, ports * 40]."""

    def __init__(self, observation_space: Box, action_space: Box) -> None:
        super().__init__()
        self.ports = observation_space.shape[0] // _PER_PORT
        self.net = Actor(action_space.shape[0] // self.ports)

    def forward(self, observation: Tensor) -> Tensor:
        mean, log_std = self.net(observation.reshape(-1, self.ports, 8, 5))
        return torch.cat([mean.flatten(1), log_std.flatten(1)], 1)


class _Unencoded(nn.Module):
    """Hands on the observation where an encoder is expected."""

    def forward(self, batch: dict[str, Any]) -> dict[str, Any]:
        return {ENCODER_OUT: batch[Columns.OBS]}


class _PortActions:
    """The common part of modules with the permutation-equivariant network."""

    pi: _PortPolicy

    @property
    def net(self) -> Actor:
        """The network; ``net.save`` makes a checkpoint of it."""
        return self.pi.net

    def get_train_action_dist_cls(self) -> type[PortDistribution]:
        return PortDistribution

    get_exploration_action_dist_cls = get_train_action_dist_cls
    get_inference_action_dist_cls = get_train_action_dist_cls


class PortSACModule(_PortActions, DefaultSACTorchRLModule):  # type: ignore[misc]
    """For SAC: ``rl_module(rl_module_spec=RLModuleSpec(module_class=PortSACModule))``. The critics are RLlib's."""

    def setup(self) -> None:
        super().setup()
        self.pi_encoder = _Unencoded()
        self.pi = _PortPolicy(self.observation_space, self.action_space)


class PortPPOModule(_PortActions, TorchRLModule, ValueFunctionAPI, InferenceOnlyAPI):  # type: ignore[misc]
    """For PPO: ``rl_module(rl_module_spec=RLModuleSpec(module_class=PortPPOModule))``. The value function is a
    network with two hidden layers of ``model_config["value_hidden"]`` units, 256 by default."""

    def setup(self) -> None:
        self.pi = _PortPolicy(self.observation_space, self.action_space)
        if not self.inference_only:
            hidden = (self.model_config or {}).get("value_hidden", 256)
            self.vf = nn.Sequential(
                nn.Linear(self.observation_space.shape[0], hidden),
                nn.Tanh(),
                nn.Linear(hidden, hidden),
                nn.Tanh(),
                nn.Linear(hidden, 1),
            )

    def get_non_inference_attributes(self) -> list[str]:
        return ["vf"]

    def _forward(self, batch: dict[str, Any], **_: Any) -> dict[str, Any]:
        return {Columns.ACTION_DIST_INPUTS: self.pi(batch[Columns.OBS])}

    def compute_values(self, batch: dict[str, Any], embeddings: Any = None) -> Tensor:
        """Returns the values of states, [batch]."""
        values: Tensor = self.vf(batch[Columns.OBS]).squeeze(-1)
        return values
