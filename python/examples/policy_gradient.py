"""A loop of one's own in PyTorch on a vector of environments: policy gradients with a learned baseline.

    python policy_gradient.py [UPDATES]

Steps last differently long, so every step has a discount of its own. Needs ``pip install 'bufgym[torch]'``.
"""

import sys

import numpy as np
import torch
from torch import nn

import bufgym
from bufgym.torch import Actor

ENVS, STEPS = 16, 32
updates = int(sys.argv[1]) if len(sys.argv) > 1 else 3
torch.manual_seed(1)

envs = bufgym.make_vec("bufgym/NDT-16x1G-v0", ENVS, autoreset_mode="SameStep", unlimited_baseline=True)
ports = envs.single_action_space.shape[0]
actor = Actor()
# What only the simulator knows is for the critic alone.
critic = nn.Sequential(nn.Linear(len(bufgym.PRIVILEGED_NAMES), 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.Adam([*actor.parameters(), *critic.parameters()], lr=3e-4)


def value(privileged):
    """Of states, [envs]."""
    return critic(torch.sign(privileged) * torch.log1p(privileged.abs())).squeeze(-1).mean(-1)


observations, infos = envs.reset(seed=1)
for update in range(updates):
    densities, values, rewards, discounts = [], [], [], []
    for _ in range(STEPS):
        observation = torch.from_numpy(observations)
        with torch.no_grad():
            actions, _ = actor.sample(observation)
        densities.append(actor.log_density(observation, actions))
        values.append(value(torch.from_numpy(infos["privileged"])))
        observations, reward, terminated, truncated, infos = envs.step(actions.numpy())
        rewards.append(torch.tensor(reward, dtype=torch.float32))
        # Nothing comes after the end of an episode; a limit is treated in the same way here.
        alive = ~(terminated | truncated)
        discounts.append(torch.from_numpy(infos["discount"] * alive))
    with torch.no_grad():
        following = value(torch.from_numpy(infos["privileged"]))
    returns = []
    for reward, discount in zip(reversed(rewards), reversed(discounts)):
        following = reward + discount * following
        returns.insert(0, following)
    advantage = torch.stack(returns) - torch.stack(values)
    weight = advantage.detach() / (advantage.detach().std() + 1e-6)
    loss = -(weight * torch.stack(densities)).mean() / ports + advantage.square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    mean = np.mean([reward.mean().item() for reward in rewards])
    print(f"update {update}: mean reward {mean:.4f}, loss {loss.item():.4f}")
