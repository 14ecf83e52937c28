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

# One word of each thing that a training run must show.
wanted = ["critic", "actor", "temperature", "q", "return", "ratio", "steps", "packets", "updates"]
missing = [word for word in wanted if not any(word in tag.lower() for tag in scalars)]
assert not missing, f"no scalar tag contains {missing}"
assert any("action" in tag.lower() for tag in tags["histograms"] + tags["tensors"]), "no action histogram"

points = 0
for tag in scalars:
    series = events.Scalars(tag)
    assert series, f"{tag} is empty"
    steps = [point.step for point in series]
    assert steps == sorted(steps), f"{tag}: steps go back"
    assert all(math.isfinite(point.value) for point in series), f"{tag}: a value is not finite"
    points += len(series)
print(f"{points} scalar points read")
