"""Trainings, comparisons, searches and figures on a Ray cluster: the bits of one machine, also where a node is
killed."""

import hashlib
import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

import bufgym

pytest.importorskip("ray")
from ray.cluster_utils import Cluster  # noqa: E402

#: Seconds that no step of these tests takes: the machine may be busy.
LIMIT = 600

#: Short, but with all parts: a search for a rule, lessons, rounds, validations, and the table at the end.
SETTINGS = """
[budget]
steps = {steps}
[rollout]
workers = 5
decisions_per_round = 8
learning_starts = 80
[learner]
updates_per_round = 2
replay_capacity = 400
[start]
from = "rule"
generations = 4
share = 1.0
candidates = 2
traces = 1
choosing_traces = 1
lessons = 2
lesson_traces = 1
lesson_steps = 20
[ports]
critic_width = 16
[sac]
batch_size = 8
[validation]
every_decisions = 400
traces = 2
final_traces = 2
[scenario]
ports = 4
buffer_bytes = 100000
active_ports = "2..4"
incast_degree = "1..3"
flows = "20..40"
"""


def settings(folder: Path, steps: int) -> str:
    file = folder / f"{steps}.toml"
    file.write_text(SETTINGS.format(steps=steps))
    return str(file)


def run(module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", module, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False)


def weights(run: Path) -> dict[str, str]:
    """SHA-256 of what must not depend on where it was computed."""
    newest = max(run.glob("checkpoints/step-*"), key=lambda step: int(step.name[5:]))
    files = [
        newest / "sac/networks.safetensors",
        newest / "replay.bin",
        run / "checkpoints/best/actor.safetensors",
        run / "rule.json",
        run / "metrics.csv",
    ]
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A head whose only processor is left to the learner."""
    started = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    yield started
    started.shutdown()


def start(cluster: Any, *arguments: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "bufgym.ray", *arguments, "--address", cluster.address]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def wait_for_rounds(process: "subprocess.Popen[str]", out: Path, rounds: int) -> None:
    until = time.monotonic() + LIMIT
    while time.monotonic() < until and process.poll() is None:
        table = out / "metrics.csv"
        if table.is_file() and table.read_text().count("\n") > rounds:
            return
        time.sleep(0.02)
    pytest.fail(f"the training has not come to round {rounds}: {process.communicate()[0]}")


def finish(process: "subprocess.Popen[str]", code: int) -> str:
    text = process.communicate(timeout=LIMIT)[0]
    assert process.returncode == code, text
    return text


def printed(text: str) -> Any:
    """The JSON object among the lines; Ray has its say about a killed node too."""
    return json.loads(next(line for line in text.splitlines() if line.startswith("{")))


def test_a_killed_node_changes_no_bit(tmp_path: Path, cluster: Any) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    config = settings(tmp_path, 16_000)
    local = run("bufgym", "train", "--config", config, "--out", str(here), "--quiet")
    assert local.returncode == 0, local.stderr
    nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]
    process = start(cluster, "train", "--config", config, "--out", str(there))
    wait_for_rounds(process, there, 5)
    cluster.remove_node(nodes[0], allow_graceful=False)
    finish(process, 0)
    cluster.remove_node(nodes[1])
    log = (there / "train.log").read_text()
    assert len(re.findall("host .* joins with 1 threads", log)) == 2, log
    assert len(re.findall("host .* is lost", log)) == 1, log
    assert weights(there) == weights(here)


def test_an_interrupted_training_goes_on_anywhere(tmp_path: Path, cluster: Any) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    config = settings(tmp_path, 16_000)
    node = cluster.add_node(num_cpus=1)
    process = start(cluster, "train", "--config", config, "--out", str(there))
    wait_for_rounds(process, there, 5)
    process.send_signal(signal.SIGINT)
    finish(process, 130)
    cluster.remove_node(node)
    decisions = json.loads(max(there.glob("checkpoints/step-*/state.json")).read_text())["counters"]["decisions"]
    more = str(decisions + 80)
    for arguments in (["--resume", str(there)], ["--config", config, "--out", str(here)]):
        local = run("bufgym", "train", *arguments, "--steps", more, "--quiet")
        assert local.returncode == 0, local.stderr
    assert weights(there) == weights(here)


def wait_for_hosts(process: "subprocess.Popen[str]", hosts: int) -> None:
    """Until so many actors are simulating; Ray gives their processes that name meanwhile."""
    until = time.monotonic() + LIMIT
    while time.monotonic() < until and process.poll() is None:
        commands = [other.info["cmdline"] or [""] for other in psutil.process_iter(["cmdline"])]
        if sum(command[0].startswith("ray::Host.serve") for command in commands) >= hosts:
            return
        time.sleep(0.02)
    pytest.fail(f"there were never {hosts} hosts at work: {process.communicate()[0]}")


def test_a_comparison_has_the_same_numbers_where_a_node_is_killed(tmp_path: Path, cluster: Any) -> None:
    nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]
    arguments = ["eval", "--policy", "edt", "--policy", "linear", "--traces", "8", "--json"]
    process = start(cluster, *arguments, "--quiet")
    wait_for_hosts(process, 2)
    cluster.remove_node(nodes[0], allow_graceful=False)
    text = finish(process, 0)
    cluster.remove_node(nodes[1])
    # On a busy machine Ray can lose sight of the other node too, which then comes back.
    assert text.count("is given up") >= 1, text
    local = run("bufgym", *arguments, "--quiet")
    there, here = printed(text), json.loads(local.stdout)
    assert there.pop("timing") and here.pop("timing")
    assert there == here


#: A small switch.
SMALL = ["ports=4", "active_ports=2..4", "incast_degree=1..3", "flows=20..40", "buffer_bytes=100000"]


def test_a_search_finds_the_same(tmp_path: Path, cluster: Any) -> None:
    nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]
    changes = [word for setting in SMALL for word in ("--set", setting)]
    arguments = ["tune", "--policy", "linear", "--traces", "2", "--generations", "2", *changes, "--json", "--quiet"]
    files = [tmp_path / "here.json", tmp_path / "there.json"]
    local = run("bufgym", *arguments, "--out", str(files[0]))
    assert local.returncode == 0, local.stderr
    process = start(cluster, *arguments, "--out", str(files[1]))
    text = finish(process, 0)
    for node in nodes:
        cluster.remove_node(node)
    here, there = json.loads(local.stdout), printed(text)
    for found in (here, there):
        found.pop("stored")
        found["tuning"].pop("wall_s")
    assert there == here
    assert files[1].read_bytes() == files[0].read_bytes()


def test_a_figure_is_the_same_files(tmp_path: Path, cluster: Any) -> None:
    node = cluster.add_node(num_cpus=2)
    here, there = tmp_path / "here", tmp_path / "there"
    arguments = ["figures", "ndt", "--fig", "10", "--traces", "1", "--quiet"]
    local = run("bufgym", *arguments, "--out", str(here))
    assert local.returncode == 0, local.stderr
    finish(start(cluster, *arguments, "--out", str(there)), 0)
    cluster.remove_node(node)
    names = sorted(file.name for file in here.iterdir())
    assert "fig10.csv" in names and names == sorted(file.name for file in there.iterdir())
    for name in names:
        # The page has the time that it took.
        if name != "index.html":
            assert (there / name).read_bytes() == (here / name).read_bytes(), name


def test_what_cannot_be_done_is_said(tmp_path: Path, cluster: Any) -> None:
    for arguments, complaint in [
        (["train", "--workers", "0"], "--workers"),
        (["policies"], "simulate for train, eval, tune and figures"),
        (["tune", "--policy", "dt", "--no-such-option"], "--no-such-option"),
        (["figures", "nothing", "--out", str(tmp_path / "out")], "nothing"),
        (["eval", "--suite", "paper"], "--suite"),
        (["train", "--patience", "-1"], "--patience"),
    ]:
        text = finish(start(cluster, *arguments), 2)
        assert complaint in text, text
    refused = run("bufgym.ray", "train", "--address", "127.0.0.1:1")
    assert refused.returncode == 2
    assert "no Ray cluster at 127.0.0.1:1" in refused.stderr


def test_without_nodes_the_training_fails(tmp_path: Path, cluster: Any) -> None:
    # The head's only processor is the learner's, and another node has none to give.
    node = cluster.add_node(num_cpus=0)
    config, out = settings(tmp_path, 400), str(tmp_path / "run")
    process = start(cluster, "train", "--config", config, "--out", out, "--patience", "2")
    text = finish(process, 1)
    cluster.remove_node(node)
    assert "no node of the cluster has played for 2 s" in text, text


def test_another_build_may_not_join() -> None:
    cluster = bufgym._native.Cluster("one build")
    assert cluster.join(bufgym._native.Host("one build", 1).hello("node 1")) == 0
    with pytest.raises(ValueError, match="host node 2 has another build"):
        cluster.join(bufgym._native.Host("another", 1).hello("node 2"))
    with pytest.raises(ValueError, match="does not begin as those of bufgym do"):
        cluster.join(b"something else")
    assert cluster.next(0.0) is None
    assert cluster.exit_code() is None
    assert cluster.traffic() == (0, 0, 0)
