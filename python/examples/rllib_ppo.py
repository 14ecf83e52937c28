"""PPO of RLlib in a network of switches, in which every leaf and every spine is an agent: all leaves share one
policy, all spines another.

    python rllib_ppo.py [ITERATIONS [FOLDER]]

The networks of both become checkpoints. Needs ``pip install 'bufgym[rllib,torch]'``.
"""

import sys
import tempfile
from pathlib import Path

import ray
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.rl_module.multi_rl_module import MultiRLModuleSpec
from ray.rllib.core.rl_module.rl_module import RLModuleSpec

from bufgym.rllib import PortPPOModule, kind, register_envs

iterations = int(sys.argv[1]) if len(sys.argv) > 1 else 2
folder = Path(sys.argv[2] if len(sys.argv) > 2 else tempfile.mkdtemp())
POLICIES = ("leaf", "spine")

ray.init("local", include_dashboard=False)
register_envs()
config = (
    PPOConfig()
    .environment("bufgym/LeafSpine-4x4-v0", env_config={"settings": {"warmup_ms": 0, "measure_ms": 10}})
    .env_runners(num_env_runners=0, num_envs_per_env_runner=2)
    .multi_agent(policies=POLICIES, policy_mapping_fn=kind)
    .rl_module(
        rl_module_spec=MultiRLModuleSpec(
            rl_module_specs={name: RLModuleSpec(module_class=PortPPOModule) for name in POLICIES}
        )
    )
    .training(train_batch_size_per_learner=256, minibatch_size=64, num_epochs=4, lr=3e-4)
    .debugging(seed=1)
)
algorithm = config.build_algo()
for iteration in range(iterations):
    result = algorithm.train()
    decisions = int(result["num_env_steps_sampled_lifetime"])
    print(f"{decisions} decisions, mean return {result['env_runners'].get('episode_return_mean', float('nan')):.2f}")

for name in POLICIES:
    algorithm.get_module(name).net.save(folder / name, scenario="leafspine-4x4", seed=1, decisions=decisions)
    print(f"{folder / name} is a checkpoint")
algorithm.stop()
ray.shutdown()
