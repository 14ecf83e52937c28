"""Stable-Baselines3."""

import numpy as np
import pytest
from stable_baselines3 import SAC
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import VecMonitor

import bufgym
from bufgym.sb3 import BufferVecEnv, PortSACPolicy
from bufgym.torch import Actor
from conftest import SMALL, SWITCH


def test_it_says_what_single_environments_say(small):
    envs = BufferVecEnv(SWITCH, 2, **small)
    envs.seed(3)
    observations = envs.reset()
    singles = [bufgym.make(SWITCH, start=env, stride=2, **small) for env in range(2)]
    expected = [single.reset(seed=3 + env)[0] for env, single in enumerate(singles)]
    assert np.array_equal(observations, expected)
    rng = np.random.default_rng(1)
    ended = 0
    for _ in range(300):
        actions = rng.uniform(-1, 1, (2, 4)).astype(np.float32)
        before = observations.copy()
        kept = observations
        observations, rewards, dones, infos = envs.step(actions)
        assert np.array_equal(kept, before), "what was returned is not written to"
        for env, single in enumerate(singles):
            observation, reward, terminated, truncated, _ = single.step(actions[env])
            assert rewards[env] == np.float32(reward) and dones[env] == (terminated or truncated)
            if dones[env]:
                ended += 1
                assert np.array_equal(infos[env]["terminal_observation"], observation)
                assert infos[env]["TimeLimit.truncated"] == truncated
                assert infos[env]["episode"]["l"] == infos[env]["episode_stats"]["decisions"]
                observation, _ = single.reset()
            else:
                assert "episode" not in infos[env]
            assert np.array_equal(observations[env], observation)
    assert ended >= 2


@pytest.mark.filterwarnings("ignore:The environment is already wrapped with a `Monitor`")
def test_infos_of_episodes_are_those_of_vec_monitor(small, monkeypatch):
    """Also the times, by a clock that does not stand still between two environments, steps or episodes."""
    now = 1_000.0
    monkeypatch.setattr("time.time", lambda: now)
    ours = BufferVecEnv(SWITCH, 2, seed=3, **small)
    theirs = VecMonitor(BufferVecEnv(SWITCH, 2, seed=3, **small))
    rng = np.random.default_rng(1)
    ended = 0
    for _ in range(3):
        # A reset within an episode begins another one, whose return and length are those from there on.
        ours.reset(), theirs.reset()
        for _ in range(200):
            now += 0.123456789
            actions = rng.uniform(-1, 1, (2, 4)).astype(np.float32)
            for mine, other in zip(ours.step(actions)[3], theirs.step(actions)[3]):
                assert mine.get("episode", {}).keys() == other.get("episode", {}).keys()
                if "episode" in mine:
                    ended += 1
                    mine, other = mine["episode"], other["episode"]
                    assert mine["t"] == other["t"] > 0 and mine["l"] == other["l"]
                    assert mine["r"] == pytest.approx(other["r"], rel=1e-4)
    assert ended >= 4


def test_without_a_seed_environments_differ(small):
    first = [observation.tobytes() for _ in range(2) for observation in BufferVecEnv(SWITCH, 2, **small).reset()]
    assert len(set(first)) == 4


def test_sac_learns_2000_steps_and_its_network_becomes_a_checkpoint(tmp_path):
    envs = BufferVecEnv(SWITCH, 4, settings=SMALL)
    model = SAC(PortSACPolicy, envs, seed=1, learning_starts=200, batch_size=32, device="cpu", verbose=0)
    before = {name: values.clone() for name, values in model.actor.net.state_dict().items()}
    model.learn(2_000)
    assert model.num_timesteps >= 2_000
    changed = [name for name, values in model.actor.net.state_dict().items() if not values.equal(before[name])]
    assert len(changed) == len(before)
    mean, _ = evaluate_policy(model, BufferVecEnv(SWITCH, 1, settings=SMALL, split="validation"), n_eval_episodes=3)
    assert mean < 0
    model.actor.net.save(tmp_path / "sac", settings=SMALL, decisions=model.num_timesteps, seed=1)
    loaded = Actor.load(tmp_path / "sac")
    observation = envs.reset()
    action, _ = model.predict(observation, deterministic=True)
    import torch

    with torch.no_grad():
        assert np.abs(loaded.act(torch.from_numpy(observation)).numpy() - action).max() < 1e-6
    result = bufgym.evaluate(f"ndt:{tmp_path / 'sac'}", traces=2, **SMALL)
    assert result.policies["policy"][0].as_py() == f"ndt:{tmp_path / 'sac'}"
    envs.close()


def test_attributes(small):
    envs = BufferVecEnv(SWITCH, 2, **small)
    assert envs.get_attr("num_envs") == [2, 2] and envs.get_attr("render_mode") == [None, None]
    with pytest.raises(AttributeError, match="cannot be set"):
        envs.set_attr("x", 1)
    with pytest.raises(AttributeError, match="no methods of their own"):
        envs.env_method("x")
    with pytest.raises(TypeError, match="unknown keyword argument 'thread'; did you mean 'threads'?"):
        BufferVecEnv(SWITCH, thread=1)
