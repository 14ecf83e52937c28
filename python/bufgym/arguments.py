"""Keyword arguments that environments have in common."""

import difflib
import functools
import inspect
import secrets
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypedDict, TypeVar, cast, get_type_hints

import numpy as np
from gymnasium.spaces import Box

_Function = TypeVar("_Function", bound=Callable[..., Any])


class EnvOptions(TypedDict, total=False):
    """The keyword arguments that every environment takes. None is the same as leaving one out.

    Args:
        settings: settings of the scenario to change, such as ``{"min_rto_us": 10000}``; see
            ``bufgym list scenarios``.
        split: ``"train"`` (default), ``"validation"`` or ``"test"``.
        seed: seed of the traces, from 0 to 2^64 - 1; the seed of ``reset`` replaces it. Without either, the
            first reset draws one from the machine's entropy.
        start: index of the first trace in its split; 0 by default.
        stride: difference between the index of a trace and that of the next; 1 by default.
        traces: how many traces are played before the first one again; without it there is no end.
        objective: terms of the reward with weights, such as ``"fct=1,loss=0.1"``; ``"fct"`` by default.
        low_level: heuristic whose α is set, such as ``"fab"`` or ``"fab+early"``. The default is ``"dt"``, or
            ``"reverie"`` in networks with lossless packets.
        trigger: when decisions are due: ``"cumulative-event"`` (default), ``"per-packet"`` or
            ``"fixed-interval"``.
        unlimited_baseline: subtract the flow time with an unlimited buffer from that of the reward; False by
            default.
        tau_s: time constant of the discount, seconds; 1 by default.
        horizon_s: shorter time constant, for delays that are charged when they become certain, seconds;
            none by default.
    """

    settings: Mapping[str, Any] | None
    split: Literal["train", "validation", "test"] | None
    seed: int | None
    start: int | None
    stride: int | None
    traces: int | None
    objective: str | None
    low_level: str | None
    trigger: Literal["cumulative-event", "per-packet", "fixed-interval"] | None
    unlimited_baseline: bool | None
    tau_s: float | None
    horizon_s: float | None


#: The arguments in the form in which they end the docstring of a class.
DESCRIPTION = (EnvOptions.__doc__ or "").partition("Args:\n")[2]


def explicit(function: _Function) -> _Function:
    """Shows :class:`EnvOptions` one by one in the signature of a function that takes them as ``**options``.

    ``help`` and interactive shells read that signature. A call with an unknown keyword argument raises a
    ``TypeError``, which names the nearest known one.
    """
    signature = inspect.signature(function)
    own = [each for each in signature.parameters.values() if each.kind is not each.VAR_KEYWORD]
    common = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
        for name, kind in get_type_hints(EnvOptions).items()
    ]
    known = [each.name for each in (*own, *common) if each.name != "self"]

    @functools.wraps(function)
    def checked(*values: Any, **options: Any) -> Any:
        for name in options:
            if name not in known:
                nearest = difflib.get_close_matches(name, known, 1)
                hint = f"did you mean {nearest[0]!r}?" if nearest else f"there are {', '.join(known)}"
                raise TypeError(f"unknown keyword argument {name!r}; {hint}")
        return function(*values, **options)

    checked.__signature__ = signature.replace(parameters=[*own, *common])  # type: ignore[attr-defined]
    return cast(_Function, checked)


def native(options: EnvOptions) -> dict[str, Any]:
    """Returns the keyword arguments as the native module takes them."""
    return {**options, "settings": settings_of(options.get("settings"))}


def settings_of(settings: Mapping[str, Any] | None) -> list[str]:
    """Returns ``key=value`` for every setting of a scenario."""
    if not isinstance(settings, (Mapping, type(None))):
        raise TypeError(f"settings = {settings!r}: a mapping of names to values is expected")
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


def render_mode(mode: str | None) -> str | None:
    """Returns the mode, if environments of one switch have it; otherwise raises a ``ValueError``."""
    if mode not in (None, "rgb_array"):
        raise ValueError(f"render_mode {mode!r} is not known; it is 'rgb_array' or None")
    return mode


def reset_options(options: Mapping[str, Any] | None, *known: str) -> dict[str, Any]:
    """Returns the options of a reset, if all are known; otherwise raises a ``ValueError``."""
    for key in options or {}:
        if key not in known:
            raise ValueError(f"options[{key!r}] is not known; a reset has the options {', '.join(known)}")
    return dict(options or {})


class Seeding:
    """Knows whether an environment has a seed, and draws one for its first reset if nobody gives it one.

    Args:
        options: keyword arguments of the environment, whose ``seed`` counts as one.
    """

    def __init__(self, options: EnvOptions) -> None:
        self.seeded = options.get("seed") is not None

    def seed(self, given: Any) -> Any:
        """Returns the seed of a reset: the given or a fresh one, or None if the sequence of the last seed continues."""
        if given is None and not self.seeded:
            return secrets.randbits(64)
        return given


def box(bounds: tuple[list[int], float, float]) -> Box:
    """Returns the space of Gymnasium with this shape and these bounds, float32."""
    shape, low, high = bounds
    return Box(low, high, tuple(shape), np.float32)
