"""SAC of RLlib with the permutation-equivariant network, and back: a checkpoint that ``bufgym eval`` judges and
``bufgym export`` turns into code for switches.

    python rllib_sac.py [STEPS [FOLDER]]

2,000 steps show that it works; something is learned after some hundred thousand.
Needs ``pip install 'bufgym[rllib,torch,arrow]'``.
"""

import sys
import tempfile
from pathlib import Path

import ray
from ray.rllib.algorithms.sac import SACConfig
from ray.rllib.core.rl_module.rl_module import RLModuleSpec

import bufgym
from bufgym.rllib import PortSACModule, register_envs

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 2_000
folder = Path(sys.argv[2] if len(sys.argv) > 2 else tempfile.mkdtemp()) / "sac"

ray.init("local", include_dashboard=False)
register_envs()
config = (
    SACConfig()
    # Rewards relative to an unlimited buffer vary less with the traffic, which no policy can influence.
    .environment("bufgym/NDT-16x1G-v0", env_config={"unlimited_baseline": True})
    # Eight switches on threads of Rust. With num_env_runners=N there are N times as many, in N processes.
    .env_runners(num_env_runners=0, num_envs_per_env_runner=8, gym_env_vectorize_mode="vector_entry_point")
    .rl_module(rl_module_spec=RLModuleSpec(module_class=PortSACModule))
    .training(
        actor_lr=3e-4,
        train_batch_size_per_learner=64,
        num_steps_sampled_before_learning_starts=500,
        replay_buffer_config={"type": "EpisodeReplayBuffer", "capacity": 100_000},
    )
    .debugging(seed=1)
)
algorithm = config.build_algo()
done = 0
while done < steps:
    result = algorithm.train()
    done = int(result["num_env_steps_sampled_lifetime"])
    print(f"{done} steps, mean return {result['env_runners'].get('episode_return_mean', float('nan')):.2f}")

algorithm.get_module().net.save(folder, scenario="ndt-16x1g", seed=1, decisions=done)
algorithm.stop()
ray.shutdown()
print(bufgym.evaluate([f"ndt:{folder}", "dt:alpha=8"], "ndt-16x1g", traces=4))
