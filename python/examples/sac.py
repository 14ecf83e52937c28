"""SAC of Stable-Baselines3 with the permutation-equivariant network, and back: a checkpoint that
``bufgym eval`` judges and ``bufgym export`` turns into code for switches.

    python sac.py [STEPS [FOLDER]]

2,000 steps show that it works; something is learned after some hundred thousand.
Needs ``pip install 'bufgym[sb3,torch,arrow]'``.
"""

import sys
import tempfile
from pathlib import Path

from stable_baselines3 import SAC

import bufgym
from bufgym.sb3 import BufferVecEnv, PortSACPolicy

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 2_000
folder = Path(sys.argv[2] if len(sys.argv) > 2 else tempfile.mkdtemp()) / "sac"

# Rewards relative to an unlimited buffer vary less with the traffic, which no policy can influence.
envs = BufferVecEnv("bufgym/NDT-16x1G-v0", num_envs=8, seed=1, unlimited_baseline=True)
model = SAC(PortSACPolicy, envs, learning_starts=500, batch_size=64, gamma=0.99, seed=1, device="cpu")
model.learn(steps)

model.actor.net.save(folder, scenario="ndt-16x1g", seed=1, decisions=model.num_timesteps)
print(bufgym.evaluate([f"ndt:{folder}", "dt:alpha=8"], "ndt-16x1g", traces=4))
