"""A network of switches as agents."""

import numpy as np
import pytest
from pettingzoo.test import parallel_api_test, parallel_seed_test

from bufgym.pettingzoo import NetworkEnv
from conftest import SWITCH

SHORT = {"warmup_ms": 0, "measure_ms": 2}


def make():
    return NetworkEnv(settings=SHORT)


def test_agents_and_spaces():
    env = make()
    assert env.possible_agents == ["leaf_0", "leaf_1", "leaf_2", "leaf_3", "spine_0", "spine_1"]
    assert env.observation_space("leaf_0").shape == (6, 8, 5)
    assert env.action_space("spine_1").shape == (4,)


@pytest.mark.filterwarnings("ignore")
def test_the_checks_of_pettingzoo_find_nothing():
    parallel_api_test(make(), num_cycles=200)
    parallel_seed_test(make, num_cycles=50)


def test_without_a_seed_networks_differ():
    def first(env, **options):
        observations, infos = env.reset(**options)
        (turn,) = [agent for agent in env.agents if infos[agent]["turn"]]
        return observations[turn].tobytes()

    assert len({first(make()) for _ in range(3)}) == 3
    one, two = make(), make()
    assert first(one, seed=3) == first(two, seed=3)
    assert first(one) == first(two)
    assert first(NetworkEnv(settings=SHORT, seed=3)) == first(make(), seed=3)


def test_an_episode():
    env = make()
    observations, infos = env.reset(seed=3)
    assert [agent for agent in env.agents if infos[agent]["turn"]]
    rng = np.random.default_rng(1)
    total, decided, transitions = 0.0, 0, 0
    while env.agents:
        (turn,) = [agent for agent in env.agents if infos[agent]["turn"]]
        action = rng.uniform(-1, 1, env.action_space(turn).shape).astype(np.float32)
        observations, rewards, terminations, truncations, infos = env.step({turn: action})
        decided += 1
        total += sum(rewards.values())
        transitions += sum(info["transition"] for info in infos.values())
        for agent, observation in observations.items():
            assert env.observation_space(agent).contains(observation)
            assert rewards[agent] == 0 or infos[agent]["transition"]
    assert all(terminations.values()) and not any(truncations.values())
    assert not any(info["turn"] for info in infos.values())
    # Every decision's interval has ended, and what was paid for them is the return.
    assert transitions == decided == infos["leaf_0"]["episode_stats"]["decisions"]
    assert total == pytest.approx(infos["leaf_0"]["episode_stats"]["return"])
    assert env.step({}) == ({}, {}, {}, {}, {})


def test_wrong_actions_and_names():
    with pytest.raises(ValueError, match="is a single switch, which is one agent"):
        NetworkEnv(SWITCH)
    with pytest.raises(TypeError, match="unknown keyword argument 'sed'; did you mean 'seed'?"):
        NetworkEnv(sed=1)
    env = make()
    _, infos = env.reset(seed=3)
    (turn,) = [agent for agent in env.agents if infos[agent]["turn"]]
    with pytest.raises(ValueError, match=f"no action of {turn}, whose turn it is"):
        env.step({})
    with pytest.raises(ValueError, match=r"action: an array float32\[3\] given where"):
        env.step({turn: np.zeros(3, np.float32)})
