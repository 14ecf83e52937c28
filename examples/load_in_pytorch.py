"""Loads exported weights in PyTorch:
load_in_pytorch.py FOLDER OBSERVATIONS.npy [ACTIONS.npy [EARLY_ACTIONS.npy]]

Observations are float32 [batch, ports, 8, 5]; actions, if given, are what must come out. There are
early actions where the network sets early drop besides alpha."""

import json
import sys

import numpy as np
import torch
from safetensors.torch import load_file
from torch import nn


class Actor(nn.Module):
    def __init__(self, outputs):
        super().__init__()
        self.conv = nn.Conv1d(5, 80, 3, padding=1, groups=5)
        self.embed = nn.Linear(640, 64)
        self.mix = nn.Linear(128, 32)
        self.mean = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, outputs))
        self.log_std = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, outputs))

    def forward(self, observation):
        """Actions [batch, ports, outputs]: alpha, then early drop where the network sets it."""
        batch, ports = observation.shape[:2]
        convolved = torch.relu(self.conv(observation.reshape(-1, 8, 5).transpose(1, 2)))
        e = torch.relu(self.embed(convolved.flatten(1))).reshape(batch, ports, 64)
        mixed = torch.relu(self.mix(torch.cat([e, e.mean(1, keepdim=True).expand_as(e)], 2)))
        return torch.tanh(self.mean(mixed))


folder, observations, *expected = sys.argv[1:]
weights = load_file(f"{folder}/actor.safetensors")
actor = Actor(outputs=len(weights["mean.2.bias"]))
actor.load_state_dict(weights)
with torch.no_grad():
    actions = actor(torch.from_numpy(np.load(observations))).numpy()
levels = np.clip(np.floor((actions + 1) / 2 * 8), 0, 7).astype(int)
print("actions:", actions.shape, "alphas of the first switch:", 2.0 ** (levels[0, :, 0] - 2))
if actions.shape[2] > 1:
    with open(f"{folder}/manifest.json") as file:
        table = json.load(file)["actions"]
    gaps = np.array(table["early_gaps"])
    unit = "shortest gaps of the switch" if "early_gap_bytes" in table else "packets"
    print(f"longest gaps between its early drops, {unit} (0: none):", gaps[levels[0, :, 1]])
for output, name in enumerate(expected):
    difference = np.abs(actions[..., output] - np.load(name)).max()
    assert difference < 1e-5, f"actions differ by up to {difference}"
    print(f"equal to {name} within {difference:.1e}")
