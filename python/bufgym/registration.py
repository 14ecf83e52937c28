"""Registers the environments with Gymnasium."""

from gymnasium.envs.registration import register, registry

from bufgym import _native


def register_envs() -> None:
    """Registers every environment of a single switch that is not registered yet; ``import bufgym`` does it.

    Gymnasium asks for no plugins since version 1.0. It imports the package itself for a name such as
    ``"bufgym:bufgym/NDT-16x1G-v0"``.
    """
    for env_id, _, is_network in _native.environments():
        if is_network or env_id in registry:
            continue
        register(
            id=env_id,
            entry_point="bufgym.env:BufferEnv",
            vector_entry_point="bufgym.vector:BufferVectorEnv",
            kwargs={"env_id": env_id},
        )
