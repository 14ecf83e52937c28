"""Many environments at a time."""

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import bufgym
from conftest import SWITCH


def make(small, num_envs=3, **options):
    return bufgym.make_vec(SWITCH, num_envs, **small, **options)


def actions(envs, steps, seed=3):
    rng = np.random.default_rng(seed)
    return rng.uniform(-1, 1, (steps, *envs.action_space.shape)).astype(np.float32)


def alone(small, env, num_envs):
    """An environment that plays what number ``env`` of a vector plays."""
    return bufgym.make(SWITCH, start=env, stride=num_envs, **small)


def test_gymnasium_makes_it(small):
    envs = gymnasium.make_vec(SWITCH, num_envs=3, **small)
    assert isinstance(envs.unwrapped, bufgym.BufferVectorEnv)
    assert envs.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    observations, _ = envs.reset(seed=1)
    assert envs.observation_space.contains(observations)
    assert envs.single_observation_space.shape == (4, 8, 5)
    assert envs.action_space.shape == (3, 4)


@pytest.mark.parametrize("mode", AutoresetMode)
def test_it_is_what_gymnasium_makes_of_single_ones(small, mode):
    """Step by step the same as Gymnasium's own vector of the same environments."""
    steps, num_envs = 400, 3
    ours = make(small, num_envs, autoreset_mode=mode)
    singles = [lambda env=env: alone(small, env, num_envs) for env in range(num_envs)]
    theirs = SyncVectorEnv(singles, autoreset_mode=mode)
    a, b = ours.reset(seed=5), theirs.reset(seed=5)
    assert np.array_equal(a[0], b[0])
    ended = 0
    for action in actions(ours, steps):
        a, b = ours.step(action), theirs.step(action)
        for mine, other in zip(a[:4], b[:4]):
            assert mine.dtype == other.dtype
            assert np.array_equal(mine, other)
        infos, expected = a[4], b[4]
        dones = a[2] | a[3]
        live = ~infos["reset"]
        assert np.array_equal(infos["privileged"], expected["privileged"])
        if mode is not AutoresetMode.SAME_STEP:
            # Gymnasium has the values of the new episode there, we those of the step.
            assert np.array_equal(infos["discount"][live], np.float32(expected["discount"])[live])
        ended += dones.sum()
        if dones.any():
            if mode is AutoresetMode.SAME_STEP:
                assert np.array_equal(infos["_final_obs"], expected["_final_obs"])
                for env in np.flatnonzero(dones):
                    assert np.array_equal(infos["final_obs"][env], expected["final_obs"][env])
                theirs_stats = expected["final_info"]["episode_stats"]
            else:
                theirs_stats = expected["episode_stats"]
            for name in ("return", "decisions", "index"):
                assert np.array_equal(infos["episode_stats"][name][dones], theirs_stats[name][dones])
            if mode is AutoresetMode.DISABLED:
                a = ours.reset(options={"reset_mask": dones})
                b = theirs.reset(options={"reset_mask": dones})
                assert np.array_equal(a[0][dones], b[0][dones])
    assert ended >= 3, "too few episodes have ended for this test to say anything"


def test_without_copies_arrays_are_reused_and_belong_to_rust(small):
    envs = make(small, copy=False)
    first = envs.reset(seed=1)
    before = first[0].copy()
    second = envs.step(actions(envs, 1)[0])
    third = envs.step(actions(envs, 1)[0])
    assert first[0] is second[0] is third[0]
    assert all(a is b for a, b in zip(second[:4], third[:4]))
    assert second[4]["privileged"] is third[4]["privileged"]
    assert not np.array_equal(before, third[0]), "the array was written to"
    # Memory of Rust's: NumPy has it from somewhere else.
    base = third[0]
    while isinstance(base.base, np.ndarray):
        base = base.base
    assert base.base is not None and not base.flags.owndata


def arrays(told):
    """All arrays in what an environment has told, however deep."""
    if isinstance(told, np.ndarray):
        return [told]
    values = told.values() if isinstance(told, dict) else told if isinstance(told, tuple) else ()
    return [array for value in values for array in arrays(value)]


@pytest.mark.parametrize("mode", AutoresetMode)
def test_what_is_returned_lasts(small, mode):
    """Nothing that a call has returned is written to by a later one, or is memory of another's."""
    envs = make(small, autoreset_mode=mode)
    told = [envs.reset(seed=1)]
    ended = 0
    kept = [[array.copy() for array in arrays(told[0])]]
    for action in actions(envs, 150):
        told.append(envs.step(action))
        kept.append([array.copy() for array in arrays(told[-1])])
        dones = told[-1][2] | told[-1][3]
        ended += dones.sum()
        if dones.any() and mode is AutoresetMode.DISABLED:
            told.append(envs.reset(options={"reset_mask": dones}))
            kept.append([array.copy() for array in arrays(told[-1])])
    assert ended >= 1
    for each, copies in zip(told, kept):
        assert len(arrays(each)) >= 13
        for array, copy in zip(arrays(each), copies):
            assert array.flags.writeable and np.array_equal(array, copy)
    # A caller may write to them as well.
    bases = [array.ctypes.data for each in told for array in arrays(each)]
    assert len(set(bases)) == len(bases)


def test_a_replay_has_states_and_next_states(small):
    """The loop of scripts that keep an observation over a step."""
    envs = gymnasium.make_vec(SWITCH, num_envs=2, **small)
    observations, _ = envs.reset(seed=1)
    for action in actions(envs, 5):
        following = envs.step(action)[0]
        assert not np.array_equal(observations, following)
        observations = following


def test_without_a_seed_environments_differ(small):
    first = [observation.tobytes() for _ in range(2) for observation in make(small).reset()[0]]
    assert len(set(first)) == 6
    # Those that were seeded continue their sequence, the others draw a seed.
    one, two = make(small), make(small)
    for envs in (one, two):
        envs.reset(seed=[1, None, 3])
    a, b = one.reset()[0], two.reset()[0]
    assert np.array_equal(a[[0, 2]], b[[0, 2]]) and not np.array_equal(a[1], b[1])
    assert np.array_equal(make(small, seed=4).reset()[0], make(small, seed=4).reset()[0])


def test_a_mask_seeds_those_that_it_names(small):
    mask = np.array([True, False, False])
    one, two = (make(small, autoreset_mode=AutoresetMode.DISABLED) for _ in range(2))
    for envs in (one, two):
        envs.reset(seed=1, options={"reset_mask": mask})
    a, b = one.reset()[0], two.reset()[0]
    assert np.array_equal(a[0], b[0])
    assert not np.array_equal(a[1], b[1]) and not np.array_equal(a[2], b[2])


def test_the_number_of_threads_changes_nothing(small):
    def play(threads):
        envs = make(small, 5, threads=threads)
        assert envs.threads == threads
        seen = [envs.reset(seed=2)[0]]
        seen += [envs.step(action)[0] for action in actions(envs, 60)]
        return np.array(seen)

    assert np.array_equal(play(1), play(3))


def test_seeds(small):
    envs = make(small)
    from_one, _ = envs.reset(seed=10)
    each, _ = envs.reset(seed=[10, 11, 12])
    assert np.array_equal(from_one, each)
    kept, _ = envs.reset(seed=[10, None, 12])
    assert np.array_equal(kept[[0, 2]], each[[0, 2]]) and not np.array_equal(kept[1], each[1])
    with pytest.raises(ValueError, match="seed: 2 seeds given where 3 are needed"):
        envs.reset(seed=[1, 2])


def test_a_mask_leaves_others_alone(small):
    envs = make(small, autoreset_mode=AutoresetMode.DISABLED)
    before = envs.reset(seed=1)[0].copy()
    after, infos = envs.reset(options={"reset_mask": np.array([False, True, False])})
    assert np.array_equal(after[[0, 2]], before[[0, 2]]) and not np.array_equal(after[1], before[1])
    with pytest.raises(ValueError, match=r"an array int64\[3\] given where an array bool\[3\] is expected"):
        envs.reset(options={"reset_mask": np.array([0, 1, 0])})


def test_wrong_actions_and_arguments(small):
    envs = make(small)
    envs.reset(seed=1)
    with pytest.raises(ValueError, match=r"actions: an array float64\[3, 4\] given where an array float32\[3, 4\]"):
        envs.step(np.zeros((3, 4)))
    with pytest.raises(ValueError, match=r"actions: an array float32\[4\] given where"):
        envs.step(np.zeros(4, np.float32))
    bad = np.zeros((3, 4), np.float32)
    bad[1, 2] = 2
    with pytest.raises(ValueError, match=r"environment 1: invalid action: value 2 at 2 is not in \[-1, 1\]"):
        envs.step(bad)
    with pytest.raises(ValueError, match="a vector environment needs at least one environment"):
        make(small, 0)
    with pytest.raises(ValueError, match="environment 0: no episode is running"):
        make(small).step(np.zeros((3, 4), np.float32))
    with pytest.raises(ValueError, match=r"options\['mask'\] is not known; a reset has the options trace, reset_mask"):
        envs.reset(options={"mask": None})


def test_a_read_only_array_is_named(small):
    envs = make(small, copy=False)
    observations, _ = envs.reset(seed=1)
    observations.flags.writeable = False
    with pytest.raises(ValueError, match="an array of the environment cannot be written"):
        envs.step(np.zeros((3, 4), np.float32))
    observations.flags.writeable = True
    envs.step(np.zeros((3, 4), np.float32))


def test_wrappers_of_gymnasium_work_on_it(small):
    from gymnasium.wrappers.vector import RecordEpisodeStatistics

    envs = RecordEpisodeStatistics(make(small))
    envs.reset(seed=1)
    ended = 0
    for action in actions(envs, 300):
        infos = envs.step(action)[4]
        ended += int(infos.get("_episode", np.zeros(3)).sum())
    assert ended >= 3 and len(envs.return_queue) == ended


@pytest.mark.parametrize("split", ["train", "validation", "test"])
def test_seeds_of_all_splits_fit_into_infos(small, split):
    envs = make(small, split=split)
    envs.reset(seed=1)
    for action in actions(envs, 300):
        infos = envs.step(action)[4]
        if "episode_stats" in infos:
            break
    seeds = infos["episode_stats"]["seed"][infos["_episode_stats"]]
    # The two highest bits of a seed are those of its split.
    assert seeds.dtype == np.uint64
    assert set(seeds >> np.uint64(62)) == {{"train": 1, "validation": 2, "test": 3}[split]}
