"""Threads, processes and memory."""

import multiprocessing
import os
import threading
import time

import numpy as np
import psutil
import pytest
from gymnasium.vector import AsyncVectorEnv, AutoresetMode

import bufgym
from conftest import SMALL, SWITCH


def rewards(env, steps=200, seed=1):
    """The rewards of some steps of one environment."""
    env.reset(seed=seed)
    rng = np.random.default_rng(seed)
    result = []
    for _ in range(steps):
        _, reward, terminated, truncated, _ = env.step(rng.uniform(-1, 1, 4).astype(np.float32))
        result.append(reward)
        if terminated or truncated:
            env.reset()
    return result


def vector_rewards(envs, steps=50):
    """The rewards of some steps of many."""
    envs.reset(seed=1)
    rng = np.random.default_rng(1)
    return [envs.step(rng.uniform(-1, 1, (3, 4)).astype(np.float32))[1].tolist() for _ in range(steps)]


def test_two_environments_in_two_threads():
    expected = [rewards(bufgym.make(SWITCH, settings=SMALL), seed=seed) for seed in (1, 2)]
    results = [None, None]

    def play(number):
        results[number] = rewards(bufgym.make(SWITCH, settings=SMALL), seed=number + 1)

    threads = [threading.Thread(target=play, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == expected


def test_other_threads_run_while_environments_step():
    """A thread counts while this one is in a single call that takes long."""
    count, stop = 0, threading.Event()

    def work():
        nonlocal count
        while not stop.wait(0.001):
            count += 1

    thread = threading.Thread(target=work)
    thread.start()
    # No decision is ever due in this time, so the reset simulates trace after trace.
    env = bufgym.make(SWITCH, settings={"min_rto_us": 10_000, "flows": (20_000, 20_000)})
    before = count
    start = time.monotonic()
    env.reset(seed=1)
    action = np.ones(16, np.float32)
    for _ in range(2_000):
        if env.step(action)[2]:
            env.reset()
    taken, counted = time.monotonic() - start, count - before
    stop.set()
    thread.join()
    # Steps are of microseconds: with the interpreter's lock held in them, every switch of threads waits for
    # its interval of 5 ms.
    assert counted > 50 * taken


def test_an_environment_is_for_one_thread_at_a_time():
    envs = bufgym.make_vec(SWITCH, 64, settings={"flows": (2_000, 2_000)})
    refused = []

    def reset():
        try:
            envs.reset(seed=1)
        except RuntimeError as error:
            refused.append(str(error))

    threads = [threading.Thread(target=reset) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert refused and set(refused) == {
        "another thread is using this vector environment: give every thread its own"
    }
    envs.reset(seed=1)


def _child(queue, envs):
    envs = envs or bufgym.make_vec(SWITCH, 3, settings=SMALL)
    single = bufgym.make(SWITCH, settings=SMALL)
    table = bufgym.evaluate("edt", traces=2, **SMALL).per_trace.to_pydict()
    queue.put((vector_rewards(envs), rewards(single), table["mean_fct_ms"]))


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
@pytest.mark.parametrize("method", ["spawn", "fork", "forkserver"])
def test_processes(method):
    """Children compute what the parent does, also with an environment that the parent has stepped."""
    envs = bufgym.make_vec(SWITCH, 3, settings=SMALL)
    table = bufgym.evaluate("edt", traces=2, **SMALL).per_trace.to_pydict()
    expected = (
        vector_rewards(envs),
        rewards(bufgym.make(SWITCH, settings=SMALL)),
        table["mean_fct_ms"],
    )
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    # A fork has a copy of the environment; its threads are those of the parent, which a child has not.
    process = context.Process(target=_child, args=(queue, envs if method == "fork" else None))
    process.start()
    try:
        assert queue.get(timeout=60) == expected
        process.join(60)
        assert process.exitcode == 0
    finally:
        process.kill()
    assert vector_rewards(envs) == expected[0]


@pytest.mark.parametrize("method", ["spawn", "fork"])
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_the_vector_of_processes_of_gymnasium(method):
    make = [lambda start=start: bufgym.make(SWITCH, start=start, stride=3, settings=SMALL) for start in range(3)]
    theirs = AsyncVectorEnv(make, context=method, autoreset_mode=AutoresetMode.NEXT_STEP)
    try:
        assert vector_rewards(theirs) == vector_rewards(bufgym.make_vec(SWITCH, 3, settings=SMALL))
    finally:
        theirs.close()


def resident():
    return psutil.Process(os.getpid()).memory_info().rss


def test_a_million_steps_do_not_make_memory_grow():
    """Decisions at every packet, so that steps are short; short episodes, so that many of them are played."""
    envs = bufgym.make_vec(
        SWITCH, 50, trigger="per-packet", autoreset_mode="SameStep", settings={**SMALL, "flows": (2, 2)}
    )
    envs.reset(seed=1)
    actions = np.zeros((50, 4), np.float32)

    def play(steps):
        return sum(envs.step(actions)[2].sum() for _ in range(steps))

    play(2_000)
    before = resident()
    episodes = play(20_000)
    assert episodes > 100
    assert resident() - before < 10e6


def test_a_hundred_thousand_steps_of_one_environment_do_not_make_memory_grow():
    env = bufgym.make(SWITCH, trigger="per-packet", settings={**SMALL, "flows": (5, 5)})
    env.reset(seed=1)
    action = np.zeros(4, np.float32)

    def play(steps):
        for _ in range(steps):
            if env.step(action)[2]:
                env.reset()

    play(20_000)
    before = resident()
    play(100_000)
    assert resident() - before < 5e6


def test_a_dropped_environment_frees_its_memory():
    def use():
        envs = bufgym.make_vec(SWITCH, 16, settings={"flows": (3_000, 3_000)})
        envs.reset(seed=1)
        del envs

    use()
    before = resident()
    for _ in range(10):
        use()
    assert resident() - before < 50e6
