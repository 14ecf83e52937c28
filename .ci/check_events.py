"""Reads a run folder's event files with the real TensorBoard and checks what is in them."""

import math
import sys

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

run = sys.argv[1]
events = EventAccumulator(run, size_guidance={"scalars": 0, "histograms": 0, "tensors": 0})
events.Reload()
tags = events.Tags()
scalars = set(tags["scalars"])
print(f"{len(scalars)} scalar tags: {', '.join(sorted(scalars))}")
print(f"histograms: {', '.join(tags['histograms'])}; tensors: {', '.join(tags['tensors'])}")

WANTED = """
loss/actor loss/critic sac/temperature sac/q_mean rollout/episode_return validation/mean_fct_ratio_to_dt
perf/env_steps_per_s perf/packets_per_s perf/updates_per_s
""".split()
missing = [tag for tag in WANTED if tag not in scalars]
assert not missing, f"missing scalar tags: {missing}"
assert "rollout/actions" in tags["histograms"], "no histogram of actions"

points = 0
for tag in scalars:
    series = events.Scalars(tag)
    assert series, f"{tag} is empty"
    steps = [point.step for point in series]
    assert steps == sorted(steps), f"{tag}: steps go back"
    assert all(math.isfinite(point.value) for point in series), f"{tag}: a value is not finite"
    points += len(series)
print(f"{points} scalar points read")
