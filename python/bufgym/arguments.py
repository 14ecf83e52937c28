"""Keyword arguments that environments have in common."""

import secrets
from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium.spaces import Box

#: Names of the keyword arguments of environments besides ``settings``.
NAMES = (
    "split",
    "seed",
    "start",
    "stride",
    "traces",
    "objective",
    "low_level",
    "trigger",
    "unlimited_baseline",
    "tau_s",
    "horizon_s",
)

DESCRIPTION = """
        settings: settings of the scenario to change, such as ``{"min_rto_us": 10000}``; see
            ``bufgym list scenarios``.
        split: ``"train"``, ``"validation"`` or ``"test"``.
        seed: seed of the traces; the seed of ``reset`` takes its place. Without either, the first reset
            draws one from the machine's entropy.
        start: index of the first trace in its split.
        stride: difference between the index of a trace and that of the next.
        traces: how many traces are played before the first one again; without it there is no end.
        objective: terms of the reward with weights, such as ``"fct"`` or ``"fct=1,loss=0.1"``.
        low_level: heuristic whose α is set, such as ``"dt"``, ``"fab"`` or ``"fab+early"``.
        trigger: when decisions are due: ``"cumulative-event"``, ``"per-packet"`` or
            ``"fixed-interval"``.
        unlimited_baseline: subtract the flow time with an unlimited buffer from that of the reward.
        tau_s: time constant of the discount, seconds.
        horizon_s: shorter time constant, for delays that are charged when they become certain, seconds.
"""


def settings_of(settings: Mapping[str, Any] | None) -> list[str]:
    """``key=value`` for every setting of a scenario."""
    return [f"{key}={_text(value)}" for key, value in (settings or {}).items()]


def _text(value: Any) -> str:
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, range):
        if value.step != 1 or not value:
            raise ValueError(f"{value}: a range of a setting has the step 1 and is not empty")
        return f"{value.start}..{value.stop - 1}"
    if isinstance(value, (tuple, list)) and len(value) == 2:
        return f"{_text(value[0])}..{_text(value[1])}"
    return str(value)


def native(settings: Mapping[str, Any] | None, options: Mapping[str, Any]) -> dict[str, Any]:
    """Keyword arguments as the native module takes them."""
    unknown = [name for name in options if name not in NAMES]
    if unknown:
        raise TypeError(
            f"unknown keyword argument {unknown[0]!r}; environments have settings, {', '.join(NAMES)}"
        )
    given = {name: value for name, value in options.items() if value is not None}
    return {"settings": settings_of(settings), **given}


class Seeding:
    """Knows whether an environment has a seed, and draws one for its first reset if nobody gives it one.

    Args:
        options: keyword arguments of the environment, whose ``seed`` counts as one.
    """

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.seeded = options.get("seed") is not None

    def seed(self, given: Any) -> Any:
        """The seed of a reset: what is given, a fresh one, or None where the sequence of the last seed continues."""
        if given is None and not self.seeded:
            return secrets.randbits(64)
        return given


def box(bounds: tuple[list[int], float, float]) -> Box:
    """The space of Gymnasium with this shape and these bounds."""
    shape, low, high = bounds
    return Box(low, high, tuple(shape), np.float32)
