"""A reinforcement-learning gym for buffer management in shared-memory switches.

The simulator and the environments are in Rust. This package gives them the interfaces of Python:

=============================  =====================================================================
``bufgym.make``                one environment, a ``gymnasium.Env``; also ``gymnasium.make``
``bufgym.make_vec``            many in parallel, a ``gymnasium.vector.VectorEnv``; also
                               ``gymnasium.make_vec``
``bufgym.sb3.BufferVecEnv``    the same for Stable-Baselines3
``bufgym.rllib``               environments and modules for RLlib
``bufgym.torch``               the permutation-equivariant network, with the checkpoints of ``bufgym``
``bufgym.pettingzoo``          a network of switches, each an agent
``bufgym.simulate``            one trace under one policy, as Arrow tables
``bufgym.evaluate``            policies on the same unseen traces, as Arrow tables
``bufgym.SAC``                 soft actor-critic in Rust for any Gymnasium environment with a ``Box`` of
                               actions
``python -m bufgym``           the command line
``python -m bufgym.ray``       trainings and comparisons on a Ray cluster
=============================  =====================================================================

Names end in their units; ``_ps`` are whole picoseconds. ``import bufgym`` registers the environments.
"""

from bufgym._native import (
    ALPHAS,
    FEATURE_NAMES,
    HISTORY,
    PRIVILEGED_NAMES,
    __version__,
    environments,
)
from bufgym.arguments import EnvOptions
from bufgym.env import BufferEnv, make
from bufgym.evaluation import Evaluation, Policy, Simulation, evaluate, simulate
from bufgym.registration import register_envs
from bufgym.sac import SAC
from bufgym.vector import BufferVectorEnv, make_vec

__all__ = [
    "ALPHAS",
    "BufferEnv",
    "BufferVectorEnv",
    "EnvOptions",
    "Evaluation",
    "FEATURE_NAMES",
    "HISTORY",
    "PRIVILEGED_NAMES",
    "Policy",
    "SAC",
    "Simulation",
    "__version__",
    "environments",
    "evaluate",
    "make",
    "make_vec",
    "register_envs",
    "simulate",
]

register_envs()
