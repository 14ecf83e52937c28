"""Simulations and comparisons."""

import json
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pyarrow as pa
import pytest

import bufgym
from conftest import SMALL


def alpha(value):
    """A policy that always decides on the same α."""
    level = list(bufgym.ALPHAS).index(value)
    return lambda observation: np.full(len(observation), (level + 0.5) / 4 - 1, np.float32)


def test_a_simulation_has_tables():
    result = bufgym.simulate("dt:alpha=8", seed=3, timeline_us=100, **SMALL)
    assert result.policy == "dt:alpha=8"
    flows = result.flows
    assert isinstance(flows, pa.Table) and flows.num_rows == result.summary["flows"] == 300
    assert flows["id"].to_pylist() == list(range(300))
    fct = np.array(flows["fct_ns"].to_pylist())
    assert (fct == np.array(flows["finish_ns"]) - np.array(flows["start_ns"])).all()
    assert fct.mean() * 1e-6 == pytest.approx(result.summary["mean_fct_ms"], rel=1e-6)
    assert flows["fct_ns"].null_count == 0
    assert set(flows["class"].to_pylist()) <= {"short", "medium", "long", "incast", "other", "in-cast"}
    timeline = result.timeline.to_pydict()
    assert set(timeline["port"]) == {0, 1, 2, 3}
    assert max(timeline["occupancy_bytes"]) <= result.summary["max_occupancy_bytes"]
    assert result.switches.num_rows == 1 and result.pauses.num_rows == 0


def test_numbers_are_not_copied():
    result = bufgym.simulate("dt", **SMALL)
    values = result._columns[0]["start_ns"]
    buffer = result.flows["start_ns"].chunk(0).buffers()[1]
    assert buffer.address == values.ctypes.data


def test_what_there_is_not_is_null():
    columns = {"x": (np.arange(3), np.array([True, False, True])), "y": np.array([1, np.nan, 1])}
    table = bufgym.tables.table(columns)
    assert table.to_pydict() == {"x": [0, None, 2], "y": [1.0, None, 1.0]}


def test_a_function_decides_like_the_rule_that_it_imitates():
    """Dynamic Threshold with α = 1, from the first decision on and before."""
    mine = bufgym.simulate(alpha(1), seed=5, **SMALL).summary
    rule = bufgym.simulate("dt", seed=5, **SMALL).summary
    assert mine["decisions"] > 0
    for name in ("mean_fct_ms", "drops", "timeouts", "packets_forwarded"):
        assert mine[name] == rule[name]


def test_a_comparison_is_that_of_the_command_line(tmp_path):
    result = bufgym.evaluate(["dt:alpha=8", "edt"], traces=4, seed=2, **SMALL)
    command = [sys.executable, "-m", "bufgym", "eval", "--policy", "dt:alpha=8", "--policy", "edt", "--traces", "4"]
    for key, value in SMALL.items():
        text = f"{value[0]}..{value[1]}" if isinstance(value, tuple) else value
        command += ["--set", f"{key}={text}"]
    output = subprocess.run([*command, "--seed", "2", "--json"], check=True, capture_output=True, cwd=tmp_path)
    expected = json.loads(output.stdout)
    report = result.report
    del expected["timing"], report["timing"]
    assert report == expected
    per_trace = result.per_trace.to_pydict()
    assert [row["mean_fct_ms"] for row in expected["results"]] == per_trace["mean_fct_ms"]
    assert [row["policy"] for row in expected["results"]] == per_trace["policy"]
    policies = result.policies.to_pydict()
    assert policies["ratio_to_dt.mean"] == [policy["ratio_to_dt"]["mean"] for policy in expected["policies"]]
    assert "dt:alpha=8" in str(result) and result.findings
    result.write(tmp_path / "report")
    assert json.loads((tmp_path / "report" / "report.json").read_text())["results"] == expected["results"]
    with pytest.raises(ValueError, match="is not empty"):
        result.write(tmp_path / "report")


def test_functions_take_part_and_threads_change_nothing():
    policies = [alpha(8), bufgym.Policy(alpha(0.5), "half"), "dt:alpha=8"]
    one, two = (bufgym.evaluate(policies, traces=3, threads=threads, **SMALL) for threads in (1, 2))
    assert one.per_trace.equals(two.per_trace)
    names = one.policies["policy"].to_pylist()
    assert names[:2] == ["<lambda>", "half"] and names[-1] == "unlimited"
    assert one.policies["role"].to_pylist()[:2] == ["learned", "learned"]


@pytest.mark.parametrize(
    ("function", "error", "line"),
    [
        (lambda x: np.zeros(3), ValueError, r"policy p: an action of shape \[3\] returned where float32\[4\]"),
        (lambda x: np.full(4, 2), ValueError, "policy p: an action of 2 returned where -1 to 1 is expected"),
        (lambda x: 1 / 0, ZeroDivisionError, "division by zero"),
        (lambda x: "no", ValueError, "could not convert string to float"),
    ],
)
def test_the_exception_of_a_policy_is_that_of_the_comparison(function, error, line):
    policy = bufgym.Policy(function, "p")
    with pytest.raises(error, match=line):
        bufgym.simulate(policy, **SMALL)
    with pytest.raises(error, match=line):
        bufgym.evaluate(policy, traces=3, **SMALL)


def test_wrong_arguments():
    with pytest.raises(ValueError, match="did you mean 'dt'|is not"):
        bufgym.simulate("dtt")
    with pytest.raises(ValueError, match="prots"):
        bufgym.evaluate("dt", prots=3)
    with pytest.raises(ValueError, match="ndt-16x1g"):
        bufgym.simulate("dt", "ndt-16x1")
    with pytest.raises(ValueError, match="an evaluation needs at least one trace"):
        bufgym.evaluate("dt", traces=0)
    with pytest.raises(TypeError, match="policy: int given where a name"):
        bufgym.evaluate([3])
    with pytest.raises(ValueError, match="timeline_us is at least 1"):
        bufgym.simulate("dt", timeline_us=0)


def test_no_setting_has_the_name_of_an_argument():
    text = bufgym.make("bufgym/NDT-16x1G-v0").scenario
    settings = {line.split("=")[0].strip() for line in text.splitlines() if "=" in line}
    assert "min_rto_us" in settings
    assert not settings & {"policy", "scenario", "seed", "index", "split", "trace", "timeline_us", "traces", "threads"}


def interrupted_after(seconds, work):
    """How long it takes Ctrl-C to end work, in the main thread."""
    sent = []

    def send():
        time.sleep(seconds)
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    # A process in the background of a script begins with SIGINT ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        threading.Thread(target=send).start()
        with pytest.raises(KeyboardInterrupt):
            work()
    finally:
        signal.signal(signal.SIGINT, before)
    return time.monotonic() - sent[0]


def test_ctrl_c_ends_a_comparison_within_a_second():
    assert interrupted_after(0.5, lambda: bufgym.evaluate("edt", traces=100_000)) < 1


def test_ctrl_c_ends_a_comparison_of_functions_within_a_second():
    assert interrupted_after(0.5, lambda: bufgym.evaluate(alpha(8), traces=100_000)) < 1


def test_ctrl_c_ends_one_long_simulation_within_a_second():
    # The rest of it runs on a thread until its end, some seconds later.
    assert interrupted_after(0.3, lambda: bufgym.simulate("dt", "leafspine-4x4", measure_ms=500)) < 1
