"""Speed of steps through Python against those of Rust, in turns:

    python benchmarks/steps.py [--program target/release/bufgym] [--rounds 5] [--seconds 1]

- ``make_vec`` with 32 environments and random actions against ``bufgym bench``'s steps of 32 environments;
- ``gymnasium.make`` against its steps of one environment;
- what a step costs besides the simulation, in microseconds: steps through Python against the same steps within
  Rust, of an environment that decides at every packet.

Every round is a process for each side, one after the other; the ratio is that of the medians.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time

ENV_ID = "bufgym/NDT-16x1G-v0"


def vector(seconds: float) -> float:
    """Steps per second of 32 environments together."""
    import numpy as np

    import bufgym

    envs = bufgym.make_vec(ENV_ID, 32, autoreset_mode="SameStep", seed=1, copy=False)
    envs.reset()
    rng = np.random.default_rng(1)
    steps, start = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - start) < seconds:
        envs.step(rng.random((32, 16), np.float32) * 2 - 1)
        steps += 32
    return steps / elapsed


def single(seconds: float) -> float:
    """Steps per second of one environment, with the wrappers of Gymnasium."""
    import gymnasium
    import numpy as np

    import bufgym  # noqa: F401 (it registers the environments)

    env = gymnasium.make(ENV_ID, seed=1)
    env.reset()
    rng = np.random.default_rng(1)
    steps, start = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - start) < seconds:
        _, _, terminated, truncated, _ = env.step(rng.random(16, np.float32) * 2 - 1)
        if terminated or truncated:
            env.reset()
        steps += 1
    return steps / elapsed


def overhead(seconds: float) -> list[float]:
    """Microseconds that a step costs besides the simulation: of the environment itself, and with the wrappers
    of Gymnasium. A snapshot is restored by the same steps within Rust."""
    import gymnasium
    import numpy as np

    import bufgym

    costs = []
    for env in (bufgym.make(ENV_ID, trigger="per-packet"), gymnasium.make(ENV_ID, trigger="per-packet")):
        own = env.unwrapped
        env.reset(seed=1)
        begin = own.snapshot()
        action = np.zeros(16, np.float32)
        steps = max(1_000, int(seconds * 20_000))
        start = time.perf_counter()
        for _ in range(steps):
            env.step(action)
        through_python = time.perf_counter() - start
        end = own.snapshot()
        taken = []
        for snapshot in (begin, end):
            start = time.perf_counter()
            own.restore(snapshot)
            taken.append(time.perf_counter() - start)
        costs.append((through_python - (taken[1] - taken[0])) / steps * 1e6)
    return costs


def bench(program: list[str], seconds: float) -> dict[str, float]:
    """Steps per second by number of environments, as ``bufgym bench`` measures them."""
    command = [*program, "bench", "--seconds", str(seconds), "--json", "--quiet"]
    output = subprocess.run(command, check=True, capture_output=True)
    return json.loads(output.stdout)["env_steps_per_s"]


def measured(name: str, seconds: float):
    """The result of one of the functions above in a process of its own."""
    command = [sys.executable, __file__, "--only", name, "--seconds", str(seconds)]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--program", help="the command bufgym; that of this package by default")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0, help="of every measurement")
    parser.add_argument("--only", choices=["vector", "single", "overhead"], help=argparse.SUPPRESS)
    parser.add_argument("--least", type=float, help="fail when a ratio is below this share of its goal")
    options = parser.parse_args()
    if options.only:
        print(json.dumps(globals()[options.only](options.seconds)))
        return

    program = [options.program] if options.program else [sys.executable, "-m", "bufgym"]
    rates: dict[str, list[float]] = {"rust 32": [], "rust 1": [], "make_vec 32": [], "gymnasium.make": []}
    costs: list[list[float]] = []
    for _ in range(options.rounds):
        rust = bench(program, options.seconds)
        rates["make_vec 32"].append(measured("vector", options.seconds))
        rates["rust 32"].append(rust["32"])
        rates["gymnasium.make"].append(measured("single", options.seconds))
        rates["rust 1"].append(rust["1"])
        costs.append(measured("overhead", options.seconds))
    medians = {name: statistics.median(values) for name, values in rates.items()}
    for name, value in medians.items():
        print(f"{name:<16}{value:>10.0f} steps/s   of {', '.join(f'{rate:.0f}' for rate in rates[name])}")
    failed = False
    for name, rust, goal in (("make_vec 32", "rust 32", 0.9), ("gymnasium.make", "rust 1", 0.8)):
        ratio = medians[name] / medians[rust]
        print(f"{name} / {rust}: {ratio:.3f} (goal {goal})")
        failed |= options.least is not None and ratio < goal * options.least
    for name, values in zip(("BufferEnv", "gymnasium.make"), zip(*costs)):
        print(f"a step of {name} without simulation: {statistics.median(values):.1f} us")
    sys.exit(failed)


if __name__ == "__main__":
    main()
