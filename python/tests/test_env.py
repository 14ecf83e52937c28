"""One environment."""

import inspect
import subprocess
import sys

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import bufgym
from conftest import NETWORK, SMALL, SWITCH

SINGLE = [env_id for env_id, _, is_network in bufgym.environments() if not is_network]


def actions(env, steps, seed=3):
    rng = np.random.default_rng(seed)
    return rng.uniform(-1, 1, (steps, *env.action_space.shape)).astype(np.float32)


def play(env, steps, seed=None):
    """Observations and rewards of some steps."""
    observation, _ = env.reset(seed=seed)
    seen = [observation]
    rewards = []
    for action in actions(env, steps):
        observation, reward, terminated, truncated, _ = env.step(action)
        seen.append(observation)
        rewards.append(reward)
        if terminated or truncated:
            seen.append(env.reset()[0])
    return np.array(seen), np.array(rewards)


def test_every_registered_environment_is_known_to_gymnasium(tmp_path):
    """Also to a program that has not imported the package."""
    code = "import gymnasium; gymnasium.make('bufgym:bufgym/NDT-16x1G-v0').reset(seed=1)"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path)
    assert len(SINGLE) >= 8
    for env_id in SINGLE:
        spec = gymnasium.spec(env_id)
        assert spec.entry_point == "bufgym.env:BufferEnv"


@pytest.mark.parametrize("env_id", SINGLE)
def test_gymnasium_makes_and_steps_it(env_id):
    env = gymnasium.make(env_id)
    observation, _ = env.reset(seed=1)
    assert env.observation_space.contains(observation)
    observation, reward, terminated, truncated, _ = env.step(env.action_space.sample())
    assert env.observation_space.contains(observation)
    assert isinstance(reward, float) and isinstance(terminated, bool) and isinstance(truncated, bool)
    env.close()


@pytest.mark.filterwarnings("error")
def test_the_checker_of_gymnasium_finds_nothing(small):
    check_env(gymnasium.make(SWITCH, render_mode="rgb_array", **small).unwrapped)


@pytest.mark.filterwarnings("error")
def test_the_checker_finds_nothing_with_early_drop(small):
    env = bufgym.make(SWITCH, low_level="dt+early", **small)
    assert env.action_space.shape == (4, 2)
    check_env(env, skip_render_check=True)


def test_spaces_and_info():
    env = bufgym.make(SWITCH)
    assert env.observation_space.shape == (16, 8, 5) and env.observation_space.dtype == np.float32
    assert env.action_space.shape == (16,)
    assert (env.action_space.low == -1).all() and (env.action_space.high == 1).all()
    _, info = env.reset(seed=5)
    assert info["privileged"].shape == (16, len(bufgym.PRIVILEGED_NAMES))
    assert info["discount"] == 1.0 and info["elapsed_ps"] == 0
    _, reward, _, _, info = env.step(np.zeros(16, np.float32))
    assert info["elapsed_ps"] > 0 and 0 < info["discount"] < 1
    # e^(-t/tau) with tau = 1 s; and the parts of the reward add up.
    assert info["discount"] == pytest.approx(np.exp(-info["elapsed_ps"] * 1e-12), rel=1e-6)
    assert info["port_rewards"].sum() == pytest.approx(reward, rel=1e-5)


def test_the_end_of_an_episode_has_statistics(small):
    env = bufgym.make(SWITCH, **small)
    env.reset(seed=2)
    rewards = []
    for _ in range(100_000):
        _, reward, terminated, truncated, info = env.step(np.zeros(4, np.float32))
        rewards.append(reward)
        if terminated or truncated:
            break
        assert "episode_stats" not in info
    stats = info["episode_stats"]
    assert terminated and stats["flows"] == stats["completed"] == 300
    assert stats["decisions"] == len(rewards)
    assert stats["return"] == pytest.approx(sum(rewards))
    with pytest.raises(ValueError, match="no episode is running: call reset before step"):
        env.step(np.zeros(4, np.float32))


def test_a_seed_determines_everything(small):
    first = play(bufgym.make(SWITCH, **small), 200, seed=7)
    again = play(bufgym.make(SWITCH, **small), 200, seed=7)
    other = play(bufgym.make(SWITCH, **small), 200, seed=8)
    assert all(np.array_equal(a, b) for a, b in zip(first, again))
    assert not np.array_equal(first[0], other[0])


def first_traces(env, resets=3, **options):
    """First observations of some episodes, the first of them after ``reset(**options)``."""
    seen = [env.reset(**options)[0]]
    return [*seen, *(env.reset()[0] for _ in range(resets - 1))]


def test_without_a_seed_environments_differ(small):
    seen = {env.reset()[0].tobytes() for env in [bufgym.make(SWITCH, **small) for _ in range(4)]}
    assert len(seen) == 4
    # So does a trace that is asked for by its index. It is a whole one: in a small one there may be nothing to decide.
    other = {bufgym.make(SWITCH).reset(options={"trace": 5})[0].tobytes() for _ in range(3)}
    assert len(other) == 3


def test_without_a_seed_processes_differ(tmp_path):
    code = """if True:
        import bufgym
        env = bufgym.make("bufgym/NDT-16x1G-v0")
        print(env.reset()[0].tobytes().hex())
    """
    run = [sys.executable, "-c", code]
    seen = {subprocess.run(run, check=True, cwd=tmp_path, capture_output=True).stdout for _ in range(2)}
    assert len(seen) == 2


def test_resets_without_a_seed_go_on_from_the_last_one(small):
    first = first_traces(bufgym.make(SWITCH, **small), seed=3)
    assert len({observation.tobytes() for observation in first}) == 3
    assert np.array_equal(first, first_traces(bufgym.make(SWITCH, **small), seed=3))
    # A seed among the keyword arguments is one.
    assert np.array_equal(first, first_traces(bufgym.make(SWITCH, seed=3, **small)))
    assert np.array_equal(first, first_traces(gymnasium.make(SWITCH, **small), seed=3))
    # What was drawn can be known, and leads to the same.
    env = bufgym.make(SWITCH, **small)
    drawn = first_traces(env)
    assert np.array_equal(drawn, first_traces(bufgym.make(SWITCH, **small), seed=env.np_random_seed))
    # A snapshot has the seed.
    other = bufgym.make(SWITCH, **small)
    other.restore(env.snapshot())
    assert np.array_equal(env.reset()[0], other.reset()[0])


def test_a_trace_can_be_asked_for(small):
    env = bufgym.make(SWITCH, split="validation", **small)
    observation, _ = env.reset(seed=1, options={"trace": 5})
    assert env.trace_index == 5
    other, _ = env.reset(options={"trace": 6})
    assert env.trace_index == 6 and not np.array_equal(observation, other)


def test_observations_are_new_arrays(small):
    env = bufgym.make(SWITCH, **small)
    first, _ = env.reset(seed=1)
    kept = first.copy()
    env.step(np.zeros(4, np.float32))
    assert np.array_equal(first, kept)


def test_a_snapshot_goes_on_bit_for_bit(small):
    env = bufgym.make(SWITCH, **small)
    env.reset(seed=4)
    for action in actions(env, 3):
        env.step(action)
    snapshot = env.snapshot()
    rest = [env.step(action)[0] for action in actions(env, 3, seed=9)]
    other = bufgym.make(SWITCH, **small)
    assert other.restore(snapshot) is not None
    again = [other.step(action)[0] for action in actions(other, 3, seed=9)]
    assert np.array_equal(rest, again)
    with pytest.raises(ValueError, match="not a snapshot"):
        other.restore("[]")
    with pytest.raises(ValueError, match="snapshot does not fit: it was taken of"):
        bufgym.make(SWITCH).restore(snapshot)


@pytest.mark.parametrize(
    ("action", "given"),
    [
        (np.zeros(16), r"an array float64\[16\]"),
        (np.zeros(15, np.float32), r"an array float32\[15\]"),
        (np.zeros((16, 1), np.float32), r"an array float32\[16, 1\]"),
        ([0.0] * 16, "list"),
        (None, "NoneType"),
    ],
)
def test_a_wrong_action_is_named_with_what_was_expected(action, given):
    env = bufgym.make(SWITCH)
    env.reset(seed=1)
    with pytest.raises(ValueError, match=f"^action: {given} given where an array float32\\[16\\] is expected$"):
        env.step(action)
    # Nothing has happened.
    env.step(np.zeros(16, np.float32))


def test_an_action_out_of_range_is_refused(small):
    env = bufgym.make(SWITCH, **small)
    env.reset(seed=1)
    action = np.array([0, 0, 1.5, 0], np.float32)
    with pytest.raises(ValueError, match=r"^invalid action: value 1.5 at 2 is not in \[-1, 1\]$"):
        env.step(action)
    with pytest.raises(ValueError, match="invalid action: value NaN at 0"):
        env.step(np.full(4, np.nan, np.float32))


def test_an_action_need_not_lie_in_one_piece(small):
    one, two = bufgym.make(SWITCH, **small), bufgym.make(SWITCH, **small)
    one.reset(seed=1), two.reset(seed=1)
    spread = np.linspace(-1, 1, 8, dtype=np.float32)[::2]
    assert not spread.flags.c_contiguous
    assert np.array_equal(one.step(spread)[0], two.step(spread.copy())[0])


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ({"settings": {"prots": 4}}, "prots"),
        ({"settings": {"min_rto_us": 0}}, "min_rto_us"),
        ({"objective": "fct=-1"}, "objective 'fct': weight '-1' is not a number of at least 0"),
        ({"split": "tset"}, "`tset` is not a split; did you mean `test`?"),
        ({"stride": 0}, "stride = 0: every reset would play the same trace"),
        ({"trigger": "never"}, "trigger 'never' is not known; the triggers are cumulative-event"),
        ({"tau_s": -1.0}, "tau_s = -1: a time constant in seconds is above 0"),
        ({"low_level": "dt+late"}, "low level: queue management 'late' is not known"),
    ],
)
def test_the_line_of_rust_is_that_of_the_value_error(arguments, line):
    with pytest.raises(ValueError) as error:
        bufgym.make(SWITCH, **arguments)
    assert line in str(error.value) and "\n" not in str(error.value)


def test_wrong_names_and_calls():
    with pytest.raises(ValueError, match="did you mean 'bufgym/NDT-16x1G-v0'"):
        bufgym.make("bufgym/NDT-16x1-v0")
    with pytest.raises(ValueError, match="is a network of several switches"):
        bufgym.make(NETWORK)
    with pytest.raises(ValueError, match="render_mode 'human' is not known"):
        bufgym.make(SWITCH, render_mode="human")
    env = bufgym.make(SWITCH)
    with pytest.raises(ValueError, match="call reset before step"):
        env.step(np.zeros(16, np.float32))
    for seed in (-1, 2**64, "7", 1.5):
        with pytest.raises(ValueError, match="a seed is a whole number from 0 to 18446744073709551615"):
            env.reset(seed=seed)
    with pytest.raises(ValueError, match=r"options\['trcae'\] is not known"):
        env.reset(options={"trcae": 1})
    with pytest.raises(ValueError, match="index of a trace"):
        env.reset(options={"trace": -1})


@pytest.mark.parametrize(
    "make", [bufgym.BufferEnv, bufgym.make, gymnasium.make, bufgym.BufferVectorEnv, bufgym.make_vec, gymnasium.make_vec]
)
def test_an_unknown_keyword_argument_is_told_with_the_nearest_known_one(make):
    with pytest.raises(TypeError, match="unknown keyword argument 'setings'; did you mean 'settings'?"):
        make(SWITCH, setings={})
    with pytest.raises(TypeError, match="unknown keyword argument 'x'; there are env_id, .*, tau_s, horizon_s"):
        make(SWITCH, x=1)


@pytest.mark.parametrize("function", [bufgym.BufferEnv, bufgym.make, bufgym.BufferVectorEnv, bufgym.make_vec])
def test_signatures_and_descriptions_have_every_keyword_argument(function):
    parameters = inspect.signature(function).parameters
    described = inspect.getdoc(bufgym.EnvOptions)
    for name, kind in bufgym.EnvOptions.__annotations__.items():
        assert parameters[name].annotation == kind and parameters[name].default is None
        assert f"\n    {name}: " in described
        if isinstance(function, type):
            assert f"\n    {name}: " in inspect.getdoc(function)


def test_none_and_the_described_defaults_are_the_same_as_nothing(small):
    expected = play(bufgym.make(SWITCH, **small), 100, seed=7)
    nothing = {**dict.fromkeys(bufgym.EnvOptions.__annotations__), **small}
    described = {
        "split": "train",
        "start": 0,
        "stride": 1,
        "objective": "fct",
        "low_level": "dt",
        "trigger": "cumulative-event",
        "unlimited_baseline": False,
        "tau_s": 1,
    }
    for arguments in (nothing, {**nothing, **described}):
        for make in (bufgym.make, gymnasium.make):
            found = play(make(SWITCH, **arguments), 100, seed=7)
            assert all(np.array_equal(a, b) for a, b in zip(expected, found))


@pytest.mark.parametrize("name", bufgym.EnvOptions.__annotations__)
def test_a_value_of_another_type_is_a_type_error(name):
    with pytest.raises(TypeError, match=rf"^{name} = \[1\]: .* is expected$"):
        bufgym.make(SWITCH, **{name: [1]})


def test_a_number_out_of_range_is_a_value_error():
    for name in ("seed", "start", "stride", "traces"):
        with pytest.raises(ValueError, match=rf"^{name} = -1: a whole number from 0 to \d+ is expected$"):
            bufgym.make(SWITCH, **{name: -1})


def test_settings_may_be_ranges(small):
    for active in ((1, 4), range(1, 5), "1..4"):
        env = bufgym.make(SWITCH, settings={**SMALL, "active_ports": active})
        assert "active_ports = [1, 4]" in env.scenario or '"1..4"' in env.scenario, env.scenario
