"""Soft actor-critic of bufgym next to those of Stable-Baselines3 and of SBX, on tasks of Gymnasium, in turns on the
same machine.

``python benchmarks/tasks.py Pendulum-v1 --steps 5000 --seeds 5``: for each seed all train with the same settings
(networks of 256, batches of 256, one update a step), then ten episodes with the mean action are judged. Prints the
returns and the gradient updates per second, environment steps included. SBX compiles its update first, which counts.
It takes part where it is installed.
"""

import argparse
import functools
import importlib.util
import statistics
import time
from collections.abc import Callable
from typing import Any

import gymnasium
import stable_baselines3

import bufgym

EPISODES = 10


def judged(act: Callable[[Any], Any], name: str) -> float:
    """Mean return of ten episodes that no training has seen."""
    env = gymnasium.make(name)
    total = 0.0
    for episode in range(EPISODES):
        observation, _ = env.reset(seed=10_000 + episode)
        over = False
        while not over:
            observation, reward, terminated, truncated, _ = env.step(act(observation))
            total += float(reward)
            over = terminated or truncated
    return total / EPISODES


def ours(name: str, steps: int, seed: int) -> tuple[float, float]:
    start = time.perf_counter()
    agent = bufgym.SAC(gymnasium.make(name), seed=seed, actor_lr=3e-4, critic_lr=3e-4, temperature_lr=3e-4)
    agent.learn(steps)
    seconds = time.perf_counter() - start
    return judged(agent.predict, name), (steps - agent.learning_starts) / seconds


def theirs(package: Any, name: str, steps: int, seed: int) -> tuple[float, float]:
    start = time.perf_counter()
    model = package.SAC("MlpPolicy", gymnasium.make(name), seed=seed, device="cpu").learn(steps)
    seconds = time.perf_counter() - start
    return judged(lambda seen: model.predict(seen, deterministic=True)[0], name), (steps - 100) / seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="+", help="registered names, such as Pendulum-v1")
    parser.add_argument("--steps", type=int, default=5_000)
    parser.add_argument("--seeds", type=int, default=5)
    arguments = parser.parse_args()
    learners: dict[str, Callable[[str, int, int], tuple[float, float]]] = {
        "bufgym": ours,
        "stable-baselines3": functools.partial(theirs, stable_baselines3),
    }
    if importlib.util.find_spec("sbx"):
        learners["sbx"] = functools.partial(theirs, importlib.import_module("sbx"))
    for name in arguments.tasks:
        results: dict[str, list[tuple[float, float]]] = {learner: [] for learner in learners}
        for seed in range(arguments.seeds):
            for learner, train in learners.items():
                results[learner].append(train(name, arguments.steps, seed))
        for learner, found in results.items():
            returns = ", ".join(f"{value:.0f}" for value, _ in found)
            rate = statistics.median(rate for _, rate in found)
            print(f"{name} {learner}: returns {returns}; {rate:.0f} updates/s (median)", flush=True)


if __name__ == "__main__":
    main()
