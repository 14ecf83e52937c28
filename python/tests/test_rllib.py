"""RLlib."""

import gymnasium
import numpy as np
import pytest
import ray
import torch
from gymnasium.utils.env_checker import check_env
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.algorithms.sac import SACConfig
from ray.rllib.core.rl_module.multi_rl_module import MultiRLModuleSpec
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.utils.pre_checks.env import check_multiagent_environments

import bufgym
from bufgym.rllib import NetworkEnv, PortDistribution, PortPPOModule, PortSACModule, kind, make, register_envs
from bufgym.torch import Actor
from conftest import NETWORK, SMALL, SWITCH

SHORT = {"settings": {"warmup_ms": 0, "measure_ms": 2}}


@pytest.fixture(scope="module")
def cluster():
    ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False)
    register_envs()
    yield
    ray.shutdown()


@pytest.mark.parametrize("low_level", ["dt", "dt+early"])
def test_a_switch_is_the_same_in_one_row(small, low_level):
    flat, shaped = make(SWITCH, {"low_level": low_level, **small}), bufgym.make(SWITCH, low_level=low_level, **small)
    assert flat.observation_space.shape == (160,)
    assert flat.action_space.shape == (int(np.prod(shaped.action_space.shape)),)
    rng = np.random.default_rng(1)
    assert np.array_equal(flat.reset(seed=3)[0], shaped.reset(seed=3)[0].ravel())
    for _ in range(50):
        action = rng.uniform(-1, 1, flat.action_space.shape).astype(np.float32)
        mine, theirs = flat.step(action), shaped.step(action.reshape(shaped.action_space.shape))
        assert np.array_equal(mine[0], theirs[0].ravel()) and mine[1:4] == theirs[1:4]
        if mine[2] or mine[3]:
            break


@pytest.mark.filterwarnings("ignore:.*is different from the unwrapped version")
def test_the_checker_of_gymnasium_finds_nothing(small):
    check_env(make(SWITCH, small), skip_render_check=True)


@pytest.mark.parametrize("low_level", ["dt", "dt+early"])
def test_several_switches_are_the_same_in_one_row(small, low_level):
    flat = make(SWITCH, {"num_envs": 3, "low_level": low_level, **small})
    shaped = bufgym.make_vec(SWITCH, 3, low_level=low_level, **small)
    assert flat.single_observation_space.shape == (160,) and flat.observation_space.shape == (3, 160)
    rng = np.random.default_rng(1)
    first = flat.reset(seed=3)[0]
    kept = first.copy()
    assert np.array_equal(first, shaped.reset(seed=3)[0].reshape(3, -1))
    for _ in range(100):
        action = rng.uniform(-1, 1, flat.action_space.shape).astype(np.float32)
        # RLlib gives a list of actions.
        mine, theirs = flat.step(list(action)), shaped.step(action.reshape(shaped.action_space.shape))
        assert np.array_equal(mine[0], theirs[0].reshape(3, -1))
        assert all(np.array_equal(a, b) for a, b in zip(mine[1:4], theirs[1:4]))
    assert np.array_equal(first, kept), "what was returned is not written to"


def test_a_network_of_agents():
    env = NetworkEnv(NETWORK, SHORT)
    check_multiagent_environments(env)
    assert env.get_observation_space("leaf_0").shape == (240,)
    assert env.get_action_space("spine_1").shape == (4,)
    assert {kind(agent) for agent in env.possible_agents} == {"leaf", "spine"}
    observations, infos = env.reset(seed=3)
    rng = np.random.default_rng(1)
    total, decided = 0.0, 0
    while True:
        (turn,) = observations
        assert infos[turn]["turn"] and env.get_observation_space(turn).contains(observations[turn])
        action = rng.uniform(-1, 1, env.get_action_space(turn).shape).astype(np.float32)
        observations, rewards, terminations, truncations, infos = env.step({turn: action})
        decided += 1
        total += sum(rewards.values())
        assert set(rewards) <= set(observations) == set(infos)
        if terminations["__all__"] or truncations["__all__"]:
            break
    assert set(observations) == set(rewards), "the last interval of every switch that has decided has ended"
    stats = infos[turn]["episode_stats"]
    assert decided == stats["decisions"] and total == pytest.approx(stats["return"])


def test_a_network_is_that_of_pettingzoo_in_rows():
    from bufgym import pettingzoo

    options = {"low_level": "dt+early", "settings": {"warmup_ms": 0, "measure_ms": 10}}
    flat, shaped = NetworkEnv(NETWORK, options), pettingzoo.NetworkEnv(NETWORK, **options)
    rng = np.random.default_rng(1)
    observations, infos = flat.reset(seed=3)
    expected, _ = shaped.reset(seed=3)
    steps = 0
    while shaped.agents:
        steps += 1
        (turn,) = [agent for agent in observations if infos[agent]["turn"]]
        assert np.array_equal(observations[turn], expected[turn].ravel())
        action = rng.uniform(-1, 1, shaped.action_space(turn).shape).astype(np.float32)
        observations, rewards, _, _, infos = flat.step({turn: action.ravel()})
        expected, all_rewards, *_ = shaped.step({turn: action})
        assert all(all_rewards[agent] == rewards.get(agent, 0) for agent in shaped.possible_agents)
    assert steps > 10


def test_without_a_seed_networks_differ():
    def first(env, **options):
        (observation,) = env.reset(**options)[0].values()
        return observation.tobytes()

    assert len({first(NetworkEnv(NETWORK, SHORT)) for _ in range(3)}) == 3
    one, two = NetworkEnv(NETWORK, SHORT), NetworkEnv(NETWORK, SHORT)
    assert first(one, seed=3) == first(two, seed=3)
    assert first(one) == first(two)
    flat = [make(SWITCH, {"num_envs": 2, "settings": SMALL}).reset()[0] for _ in range(2)]
    assert not np.array_equal(*flat)


def test_a_missing_action_is_named():
    env = NetworkEnv(NETWORK, SHORT)
    (turn,) = env.reset(seed=3)[0]
    with pytest.raises(ValueError, match=f"no action of {turn}, whose turn it is"):
        env.step({})


def test_the_distribution_is_that_of_torch():
    torch.manual_seed(1)
    one, two = (PortDistribution.from_logits(torch.randn(5, 8, dtype=torch.float64)) for _ in range(2))
    action, density = one.sample_and_logp()
    normal = torch.distributions.TransformedDistribution(
        torch.distributions.Normal(one.loc, one._dist.scale), torch.distributions.TanhTransform()
    )
    assert torch.allclose(density, normal.log_prob(action).sum(-1), atol=1e-8)
    assert torch.allclose(one.to_deterministic().sample(), torch.tanh(one.loc), atol=1e-12)
    # Means of many samples against the exact divergence, and against the estimate of the entropy.
    samples, densities = one.sample_and_logp(sample_shape=(20_000,))
    estimate = (densities - two.logp(samples)).mean(0)
    assert torch.allclose(one.kl(two), estimate, rtol=0.1, atol=0.1)
    entropies = torch.stack([one.entropy() for _ in range(2_000)]).mean(0)
    assert torch.allclose(entropies, -densities.mean(0), atol=0.2)


def sac(**options):
    return (
        SACConfig()
        .environment(SWITCH, env_config={"settings": SMALL, **options})
        .env_runners(num_env_runners=0, num_envs_per_env_runner=2, gym_env_vectorize_mode="vector_entry_point")
        .rl_module(rl_module_spec=RLModuleSpec(module_class=PortSACModule))
        .training(
            train_batch_size_per_learner=32,
            num_steps_sampled_before_learning_starts=100,
            replay_buffer_config={"type": "EpisodeReplayBuffer", "capacity": 10_000},
        )
        .debugging(seed=1)
    )


def test_sac_learns_and_its_network_becomes_a_checkpoint(cluster, tmp_path):
    algorithm = sac(low_level="dt+early").build_algo()
    net = algorithm.get_module().net
    before = {name: values.clone() for name, values in net.state_dict().items()}
    while (result := algorithm.train())["num_env_steps_sampled_lifetime"] < 300:
        pass
    net = algorithm.get_module().net
    changed = [name for name, values in net.state_dict().items() if not values.equal(before[name])]
    assert len(changed) == len(before) and net.outputs == 2
    losses = result["learners"]["default_policy"]
    assert np.isfinite([losses["policy_loss"], losses["qf_loss"], losses["alpha_value"]]).all()
    net.save(tmp_path / "sac", settings=SMALL)
    evaluation = bufgym.evaluate(f"ndt:{tmp_path / 'sac'}", traces=2, **SMALL)
    assert evaluation.policies["policy"][0].as_py() == f"ndt:{tmp_path / 'sac'}"
    algorithm.stop()


def test_actions_without_noise_are_those_of_the_network(cluster):
    algorithm = sac().build_algo()
    runner, net = algorithm.env_runner, algorithm.get_module().net
    for episode in runner.sample(num_timesteps=20, explore=False):
        observations, actions = episode.get_observations(), episode.get_actions()
        with torch.no_grad():
            expected = net.act(torch.as_tensor(np.array(observations)).reshape(-1, 4, 8, 5)).numpy()
        assert np.abs(expected[: len(actions)] - np.array(actions)).max() < 1e-6
    algorithm.stop()


def test_ppo_learns_in_processes_of_its_own(cluster):
    config = (
        PPOConfig()
        .environment(SWITCH, env_config={"settings": SMALL})
        .env_runners(num_env_runners=1, num_envs_per_env_runner=4, gym_env_vectorize_mode="vector_entry_point")
        .rl_module(rl_module_spec=RLModuleSpec(module_class=PortPPOModule))
        .training(train_batch_size_per_learner=128, minibatch_size=64, num_epochs=2, entropy_coeff=0.01)
        .debugging(seed=1)
    )
    algorithm = config.build_algo()
    before = {name: values.clone() for name, values in algorithm.get_module().net.state_dict().items()}
    result = algorithm.train()
    after = algorithm.get_module().net.state_dict()
    assert all(not values.equal(before[name]) for name, values in after.items())
    losses = result["learners"]["default_policy"]
    assert np.isfinite([losses["policy_loss"], losses["vf_loss"], losses["mean_kl_loss"], losses["entropy"]]).all()
    algorithm.stop()


def test_ppo_learns_in_a_network_of_switches(cluster, tmp_path):
    policies = ("leaf", "spine")
    config = (
        PPOConfig()
        .environment(NETWORK, env_config=SHORT)
        .env_runners(num_env_runners=0, num_envs_per_env_runner=1)
        .multi_agent(policies=policies, policy_mapping_fn=kind)
        .rl_module(
            rl_module_spec=MultiRLModuleSpec(
                rl_module_specs={name: RLModuleSpec(module_class=PortPPOModule) for name in policies}
            )
        )
        .training(train_batch_size_per_learner=128, minibatch_size=32, num_epochs=1)
        .debugging(seed=1)
    )
    algorithm = config.build_algo()
    before = {name: algorithm.get_module(name).net.embed.weight.clone() for name in policies}
    result = algorithm.train()
    for name in policies:
        assert np.isfinite(result["learners"][name]["total_loss"])
        assert not algorithm.get_module(name).net.embed.weight.equal(before[name])
        algorithm.get_module(name).net.save(tmp_path / name)
        assert Actor.load(tmp_path / name).outputs == 1
    algorithm.stop()


def test_the_networks_of_rllib_work_too(cluster):
    config = (
        SACConfig()
        .environment(SWITCH, env_config={"settings": SMALL})
        .env_runners(num_env_runners=0)
        .training(num_steps_sampled_before_learning_starts=50, train_batch_size_per_learner=16)
        .debugging(seed=1)
    )
    algorithm = config.build_algo()
    assert algorithm.train()["num_env_steps_sampled_lifetime"] >= 100
    algorithm.stop()


def test_env_runners_play_traces_of_their_own():
    """Seeds and numbers of environments as RLlib gives them: that of a runner plus that of the environment."""
    first = [
        observation
        for runner in (1, 2)
        for observation in make(SWITCH, {"num_envs": 2, "settings": SMALL}).reset(seed=10 + runner)[0]
    ]
    assert len({observation.tobytes() for observation in first}) == 4


def test_wrong_names_are_told():
    for wrong in (make, NetworkEnv):
        with pytest.raises(TypeError, match="unknown keyword argument 'setings'; did you mean 'settings'?"):
            wrong(SWITCH, {"setings": {}})
    with pytest.raises(ValueError, match="is a single switch, which is one agent"):
        NetworkEnv(SWITCH)
    assert isinstance(make(SWITCH), gymnasium.Env)
