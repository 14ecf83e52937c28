"""Soft actor-critic for any Gymnasium environment: the learner of ``bufgym train`` with plain networks."""

import json
import os
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box
from gymnasium.spaces.utils import flatdim, flatten
from numpy.typing import NDArray

from bufgym import _native


class SAC:
    """Soft actor-critic (Haarnoja et al. 2018b) with the published settings, in Rust.

    Observations may be of any space that Gymnasium can flatten; actions are a bounded ``Box``. The same seed gives the
    same policy on the same machine, where the environment repeats.

    >>> import gymnasium, bufgym
    >>> agent = bufgym.SAC(gymnasium.make("Pendulum-v1"), seed=1).learn(5_000)
    >>> action = agent.predict(observation)

    Args:
        env: the environment to learn in.
        width: of both hidden layers of all networks.
        discount: γ.
        capacity: transitions that the replay holds.
        learning_starts: steps with actions drawn uniformly, before the first update.
        updates_per_step: gradient updates after each later step.
        seed: of weights, actions and batches, and of the environment's first episode.
        settings: others by their names in Rust, such as ``batch_size``, ``actor_lr`` or ``critic_lr``.

    Raises:
        ValueError: actions are no bounded ``Box``, or a setting is unknown or out of range.
    """

    def __init__(
        self,
        env: gymnasium.Env[Any, Any],
        *,
        width: int = 256,
        discount: float = 0.99,
        capacity: int = 1_000_000,
        learning_starts: int = 100,
        updates_per_step: int = 1,
        seed: int = 0,
        **settings: Any,
    ) -> None:
        self._use(env)
        sizes = (flatdim(env.observation_space), flatdim(env.action_space), width, capacity)
        if min(sizes) < 1:
            raise ValueError("width, capacity and the sizes of both spaces must be at least 1")
        if learning_starts < 1 or updates_per_step < 0:
            raise ValueError("learning_starts must be at least 1 and updates_per_step at least 0")
        self._learner = _native.Sac(sizes, discount, seed, json.dumps(settings))
        self._seed: int | None = seed
        self.learning_starts = learning_starts
        self.updates_per_step = updates_per_step
        self.steps = 0
        #: Return of each finished episode, in order.
        self.returns: list[float] = []
        #: What the last update measured.
        self.metrics: dict[str, float | None] = {}

    def _use(self, env: gymnasium.Env[Any, Any]) -> None:
        space = env.action_space
        if not isinstance(space, Box) or not space.is_bounded():
            raise ValueError(f"actions must be a bounded Box, not {space}")
        self.env = env
        self._low = space.low.ravel().astype(np.float64)
        self._half = (space.high.ravel() - self._low) / 2

    def _seen(self, observation: Any) -> NDArray[np.float32]:
        flat = flatten(self.env.observation_space, observation)
        return np.ascontiguousarray(flat, dtype=np.float32)

    def _action(self, action: NDArray[np.float32]) -> NDArray[Any]:
        space = self.env.action_space
        assert isinstance(space, Box)
        scaled = self._low + (action.astype(np.float64) + 1) * self._half
        return scaled.reshape(space.shape).astype(space.dtype)

    def learn(self, steps: int) -> "SAC":
        """Makes so many steps in the environment and learns from them. Each call begins with a new episode."""
        learner = self._learner
        observation, _ = self.env.reset(seed=self._seed)
        self._seed = None
        seen, total = self._seen(observation), 0.0
        for _ in range(steps):
            starts = self.steps < self.learning_starts
            action = learner.random_action() if starts else learner.act(seen, True)
            observation, reward, terminated, truncated, _ = self.env.step(self._action(action))
            after = self._seen(observation)
            learner.push(seen, action, float(reward), after, terminated)
            self.steps += 1
            seen, total = after, total + float(reward)
            if terminated or truncated:
                self.returns.append(total)
                observation, _ = self.env.reset()
                seen, total = self._seen(observation), 0.0
            if not starts and self.updates_per_step:
                self.metrics = learner.update(self.updates_per_step)
        return self

    def predict(self, observation: Any, *, deterministic: bool = True) -> NDArray[Any]:
        """Returns the action for an observation: the policy's mean, or one drawn from it."""
        return self._action(self._learner.act(self._seen(observation), not deterministic))

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Writes networks, optimisers and random streams into a folder. The replay is not written."""
        os.makedirs(folder, exist_ok=True)
        self._learner.save(os.fspath(folder))

    @classmethod
    def load(
        cls,
        folder: str | os.PathLike[str],
        env: gymnasium.Env[Any, Any],
        *,
        learning_starts: int = 100,
        updates_per_step: int = 1,
    ) -> "SAC":
        """Reads what :meth:`save` wrote.

        Args:
            folder: that of :meth:`save`.
            env: the environment to go on in, with spaces of the same sizes.
            learning_starts: steps with actions drawn uniformly, before the first update.
            updates_per_step: gradient updates after each later step.

        Raises:
            ValueError: the spaces have other sizes, or the folder is damaged.
            OSError: the folder cannot be read.
        """
        learner = _native.Sac.load(os.fspath(folder))
        sizes = (flatdim(env.observation_space), flatdim(env.action_space))
        if learner.sizes() != sizes:
            raise ValueError(f"{os.fspath(folder)} is of a task with sizes {learner.sizes()}, not {sizes}")
        agent = cls(
            env, width=1, capacity=1, learning_starts=learning_starts, updates_per_step=updates_per_step
        )
        agent._learner = learner
        return agent
