"""Registers the environments with Gymnasium.

Gymnasium calls :func:`register_envs` when it is imported, because the package says so in its entry
points; ``import bufgym`` is not needed for ``gymnasium.make("bufgym/NDT-16x1G-v0")``.
"""

from bufgym import _native


def register_envs() -> None:
    """Registers every environment of a single switch that is not registered yet."""
    from gymnasium.envs.registration import register, registry

    for env_id, _, is_network in _native.environments():
        if is_network or env_id in registry:
            continue
        register(
            id=env_id,
            entry_point="bufgym.env:BufferEnv",
            vector_entry_point="bufgym.vector:BufferVectorEnv",
            kwargs={"env_id": env_id},
        )
