"""Soft actor-critic for any Gymnasium environment."""

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete

import bufgym


class Target(gymnasium.Env[Any, Any]):
    """The reward is largest where the action is what is seen. An episode has ten steps."""

    observation_space = Dict({"wanted": Box(-1, 1, (2,), np.float64), "which": Discrete(2)})
    action_space = Box(np.array([0.0, -3.0], np.float32), np.array([4.0, 3.0], np.float32))

    def _seen(self) -> dict[str, Any]:
        self.wanted = self.np_random.uniform(-1, 1, 2)
        return {"wanted": self.wanted, "which": self.np_random.integers(2)}

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.left = 10
        return self._seen(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert self.action_space.contains(action)
        scaled = (action - self.action_space.low) / (self.action_space.high - self.action_space.low) * 2 - 1
        reward = -float(np.abs(scaled - self.wanted).sum())
        self.left -= 1
        return self._seen(), reward, self.left == 0, False, {}


def trained(steps: int, **settings: Any) -> bufgym.SAC:
    return bufgym.SAC(Target(), width=32, batch_size=32, discount=0.0, seed=3, **settings).learn(steps)


def test_a_task_is_learned_and_the_same_seed_gives_the_same_policy() -> None:
    agent = trained(1_500, actor_lr=2e-3, critic_lr=2e-3, temperature_lr=2e-3)
    assert len(agent.returns) == 150
    assert np.mean(agent.returns[-20:]) > 0.6 * np.mean(agent.returns[:10])
    assert agent.metrics["critic_loss"] is not None
    seen, _ = Target().reset(seed=7)
    again = trained(1_500, actor_lr=2e-3, critic_lr=2e-3, temperature_lr=2e-3)
    np.testing.assert_array_equal(agent.predict(seen), again.predict(seen))
    assert Target.action_space.contains(agent.predict(seen, deterministic=False))


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    agent = trained(300)
    agent.save(tmp_path / "mine")
    loaded = bufgym.SAC.load(tmp_path / "mine", Target())
    seen, _ = Target().reset(seed=7)
    np.testing.assert_array_equal(agent.predict(seen), loaded.predict(seen))
    with pytest.raises(ValueError, match="sizes"):
        bufgym.SAC.load(tmp_path / "mine", gymnasium.make("Pendulum-v1"))
    (tmp_path / "mine" / "plain-sac.json").write_text("{}")
    with pytest.raises(ValueError, match="plain-sac.json"):
        bufgym.SAC.load(tmp_path / "mine", Target())


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="bounded Box"):
        bufgym.SAC(gymnasium.make("CartPole-v1"))
    with pytest.raises(ValueError, match="polyak"):
        trained(1, polyak=2.0)
    with pytest.raises(ValueError, match="batchsize"):
        trained(1, batchsize=2)
    with pytest.raises(ValueError, match="at least 1"):
        trained(1, capacity=0)
