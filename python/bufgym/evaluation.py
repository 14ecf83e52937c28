"""Simulations and comparisons of policies, with tables as results."""

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bufgym import _native
from bufgym.arguments import settings_of
from bufgym.tables import arrow, table

if TYPE_CHECKING:
    import pyarrow

#: Decides from an observation, float32 [ports, 8, 5], and returns an action in [-1, 1]: [ports], or
#: [ports, 2] where early drop is set too.
Function = Callable[[NDArray[np.float32]], ArrayLike]


@dataclass(frozen=True)
class Policy:
    """A function that takes part in comparisons.

    It is called at every decision, by several simulations in turns and in no particular order, so it has to
    decide from the observation alone.
    """

    function: Function
    #: In tables.
    name: str
    #: The heuristic whose α it sets; where it ends in ``+early``, actions are [ports, 2].
    low_level: str = "dt"


#: A name as in ``bufgym eval --policy``, such as ``"dt:alpha=8"`` or ``"ndt:FOLDER"``, or a function.
AnyPolicy = str | Policy | Function


def _native_policy(policy: AnyPolicy) -> str | tuple[str, Function, str]:
    if isinstance(policy, (str, os.PathLike)):
        return os.fspath(policy)
    if isinstance(policy, Policy):
        return policy.name, policy.function, policy.low_level
    if callable(policy):
        name = getattr(policy, "__name__", type(policy).__name__)
        return name, policy, getattr(policy, "low_level", "dt")
    raise TypeError(
        f"policy: {type(policy).__name__} given where a name, a function of the observation or a "
        "bufgym.Policy is expected"
    )


@dataclass(frozen=True)
class Simulation:
    """The results of one trace under one policy."""

    #: The policy's name.
    policy: str
    #: Aggregates, as in ``summary.json`` of ``bufgym sim``; None for a class without flows.
    summary: dict[str, Any]
    _columns: Sequence[dict[str, Any]] = field(repr=False)

    @cached_property
    def flows(self) -> "pyarrow.Table":
        """One row per flow: id, src, dst, start_ns, size_bytes, kind, query, finish_ns, fct_ns, slowdown,
        class, priority, base_ns, timeouts. What there is not, as of a flow that has not finished, is null."""
        return table(self._columns[0])

    @cached_property
    def switches(self) -> "pyarrow.Table":
        """One row per switch: losses, marks, and percentiles of the occupancy as a share of the buffer."""
        return table(self._columns[1])

    @cached_property
    def timeline(self) -> "pyarrow.Table":
        """One row per port and instant, if ``timeline_us`` was given: t_ns, switch, port, queue_bytes,
        threshold_bytes, occupancy_bytes, alpha."""
        return table(self._columns[2])

    @cached_property
    def pauses(self) -> "pyarrow.Table":
        """One row per pause of a network with lossless packets: switch, port, priority, from_ns, to_ns."""
        return table(self._columns[3])


def simulate(
    policy: AnyPolicy,
    scenario: str = "ndt-16x1g",
    seed: int = 1,
    *,
    index: int = 0,
    split: str = "train",
    trace: str | os.PathLike[str] | None = None,
    timeline_us: int | None = None,
    **settings: Any,
) -> Simulation:
    """Simulates one trace under one policy, as ``bufgym sim`` does.

    Ctrl-C raises ``KeyboardInterrupt`` at once.

    Args:
        policy: a name, a function of the observation, or a :class:`Policy`.
        scenario: preset or TOML file.
        seed: of the experiment; with split and index it determines the trace.
        index: number of the trace in its split.
        split: ``"train"``, ``"validation"`` or ``"test"``.
        trace: a file of flows (CSV, or a list of HPCC or htsim), in the place of a generated trace.
        timeline_us: record every port's queue and threshold so often, microseconds.
        settings: settings of the scenario to change, such as ``min_rto_us=10000``.
    """
    arrow()
    name, summary, columns = _native.simulate(
        _native_policy(policy),
        {
            "scenario": os.fspath(scenario),
            "settings": settings_of(settings),
            "seed": seed,
            "index": index,
            "split": split,
            "trace": trace,
            "timeline_us": timeline_us,
        },
    )
    return Simulation(name, json.loads(summary), columns)


class Evaluation:
    """Policies compared on the same unseen traces. Ratios are relative to DT with α = 1."""

    def __init__(self, native: _native.Evaluation) -> None:
        self._native = native

    @cached_property
    def per_trace(self) -> "pyarrow.Table":
        """One row per policy and trace: the fields of ``results`` in ``report.json``. A metric is null
        where the trace has no flow of its class or a flow did not finish."""
        return table(self._native.per_trace())

    @cached_property
    def policies(self) -> "pyarrow.Table":
        """One row per policy: the fields of ``policies`` in ``report.json``. The ends of the interval of
        ``ratio_to_dt`` are ``ratio_to_dt.low`` and ``ratio_to_dt.high``."""
        return table(self._native.policies())

    @cached_property
    def report(self) -> dict[str, Any]:
        """Everything, as in ``report.json``."""
        report: dict[str, Any] = json.loads(self._native.report())
        return report

    @property
    def findings(self) -> list[str]:
        """The findings that follow from the numbers, in sentences."""
        return self._native.findings()

    def write(self, folder: str | os.PathLike[str], *, force: bool = False) -> None:
        """Writes the report that ``bufgym eval --out`` writes: report.html, report.json, per_trace.csv and
        figures. With ``force`` into a folder that is not empty."""
        self._native.write(os.fspath(folder), force)

    def __str__(self) -> str:
        return self._native.text()


def evaluate(
    policies: AnyPolicy | Sequence[AnyPolicy],
    scenario: str = "ndt-16x1g",
    traces: int = 105,
    seed: int = 1,
    *,
    threads: int | None = None,
    **settings: Any,
) -> Evaluation:
    """Compares policies on unseen traces, as ``bufgym eval`` does; DT with α = 1 and the unlimited buffer
    always take part.

    Policies that are functions of Python run under the interpreter's lock, one call at a time. Ctrl-C raises
    ``KeyboardInterrupt`` at once; simulations that are under way end in the background.

    Args:
        policies: one or several, each a name, a function of the observation, or a :class:`Policy`.
        scenario: preset or TOML file.
        traces: how many unseen traces.
        seed: from which those of the traces follow.
        threads: on which simulations run; one per processor by default.
        settings: settings of the scenario to change, such as ``min_rto_us=10000``.
    """
    arrow()
    several = policies if isinstance(policies, Sequence) and not isinstance(policies, str) else [policies]
    return Evaluation(
        _native.evaluate(
            [_native_policy(policy) for policy in several],
            {
                "scenario": os.fspath(scenario),
                "settings": settings_of(settings),
                "traces": traces,
                "seed": seed,
                "threads": threads or 0,
            },
        )
    )
