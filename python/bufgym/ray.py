"""Trainings, comparisons, searches and figures on a Ray cluster: ``python -m bufgym.ray train --address auto``.

The learner runs in this process, the head. Every node has one actor, which plays rollout workers and runs
simulations on the node's processors. Weights, results and files are those of ``bufgym train``, ``eval``, ``tune`` and
``figures`` on one machine, bit for bit, whatever the number of nodes; where a node is lost, others do its work again.

Every node needs the same wheel of ``bufgym``; a node with another one is left out with a warning.
"""

import argparse
import hashlib
import signal
import socket
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import ray
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from bufgym import _native

#: Seconds between two looks at which nodes there are.
_LOOK = 1.0
#: A node that has lost its actor so often gets no further one.
_MOST_LOSSES = 3
#: Seconds to wait for an answer before there may be further requests.
_TURN = 0.01
#: Seconds to wait for a request where no answer is awaited.
_IDLE = 0.05


def build() -> str:
    """Returns the mark of this build of ``bufgym``: the SHA-256 of its library."""
    with open(_native.__file__, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


class Host:
    """The Ray actor that runs on a node."""

    def __init__(self, threads: int) -> None:
        self._native = _native.Host(build(), threads)

    def hello(self, name: str) -> bytes:
        """Returns the message with which it joins."""
        return self._native.hello(name)

    def serve(self, request: bytes) -> bytes:
        """Does what a request asks for."""
        return self._native.serve(request)


@dataclass
class _Node:
    """A node of the cluster and its actor."""

    name: str
    processors: int
    actor: Any = None
    #: Its number, once it has joined.
    host: int | None = None
    losses: int = 0


@dataclass
class _Carrier:
    """Carries requests to actors and their answers back, until the command is over."""

    cluster: _native.Cluster
    #: Seconds without a host after which the command fails.
    patience: float
    #: Processors of this node that are left to the learner where there are other nodes.
    learner_processors: int
    #: By the id of the node.
    nodes: dict[str, _Node] = field(default_factory=dict)
    #: What an answer belongs to: the node's id, and the request, or None for the message with which it joins.
    awaited: dict[Any, tuple[str, int | None]] = field(default_factory=dict)
    looked: float = float("-inf")
    #: When there was a host last.
    served: float = field(default_factory=time.monotonic)
    #: Why the last host was refused or lost.
    trouble: str = ""

    def run(self) -> int:
        """Returns the exit code of the command."""
        while (code := self.cluster.exit_code()) is None:
            self._look()
            self._carry()
            self._receive()
        return code

    def _look(self) -> None:
        """Gives an actor to every node that has none."""
        now = time.monotonic()
        if now - self.looked < _LOOK:
            return
        self.looked = now
        alive = {node["NodeID"]: node for node in ray.nodes() if node["Alive"]}
        head = ray.get_runtime_context().get_node_id()
        for key, found in alive.items():
            processors = int(found["Resources"].get("CPU", 0))
            if key == head and len(alive) > 1:
                processors -= self.learner_processors
            node = self.nodes.setdefault(key, _Node(f"{found['NodeManagerHostname']} {key[:8]}", processors))
            if node.actor is None and processors > 0 and node.losses < _MOST_LOSSES:
                self._start(key, node)
        if any(node.host is not None for node in self.nodes.values()):
            self.served = now
        elif now - self.served > self.patience:
            because = f": {self.trouble}" if self.trouble else ""
            self.cluster.close(f"no node of the cluster has played for {self.patience:.0f} s{because}")

    def _start(self, key: str, node: _Node) -> None:
        options = {
            "num_cpus": node.processors,
            # A new actor holds no workers: the head has to know.
            "max_restarts": 0,
            "max_task_retries": 0,
            "scheduling_strategy": NodeAffinitySchedulingStrategy(key, soft=False),
        }
        node.actor = ray.remote(Host).options(**options).remote(node.processors)
        self.awaited[node.actor.hello.remote(node.name)] = (key, None)

    def _carry(self) -> None:
        patience = 0.0 if self.awaited else _IDLE
        while (message := self.cluster.next(patience)) is not None:
            request, host, data = message
            found = next(((key, node) for key, node in self.nodes.items() if node.host == host), None)
            if found is None:
                self.cluster.lose(host, "its actor is gone")
            else:
                key, node = found
                self.awaited[node.actor.serve.remote(data)] = (key, request)
            patience = 0.0

    def _receive(self) -> None:
        if not self.awaited:
            return
        for answer in ray.wait(list(self.awaited), timeout=_TURN)[0]:
            key, request = self.awaited.pop(answer)
            node = self.nodes[key]
            try:
                data = ray.get(answer)
                if request is None:
                    node.host = self.cluster.join(data)
                else:
                    self.cluster.answer(request, data)
            except RayError as error:
                self._lose(key, _line(error))
            except ValueError as error:
                # What cannot be used once will not be better the next time.
                node.losses = _MOST_LOSSES
                self._lose(key, str(error))

    def _lose(self, key: str, why: str) -> None:
        node = self.nodes[key]
        self.trouble = why
        _say(f"node {node.name} is given up: {why}")
        if node.host is not None:
            self.cluster.lose(node.host, why)
        # Answers of it that are still on their way are of no use.
        self.awaited = {answer: purpose for answer, purpose in self.awaited.items() if purpose[0] != key}
        if node.actor is not None:
            ray.kill(node.actor)
        node.actor, node.host = None, None
        node.losses += 1


def _line(error: Exception) -> str:
    """Returns the first line of an error, and the last, which names the cause."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return " ... ".join(dict.fromkeys([lines[0], lines[-1]])) if lines else type(error).__name__


def _say(line: str) -> None:
    print(f"warning: {line}", file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bufgym.ray",
        usage="python -m bufgym.ray {train,eval,tune,figures} [options of bufgym] [options below]",
        description="bufgym train, eval, tune and figures on a Ray cluster, with the same results.",
        allow_abbrev=False,
        add_help=False,
    )
    parser.add_argument(
        "--address",
        help="of the cluster: auto for the one that this node belongs to; without it one is started here",
    )
    parser.add_argument(
        "--patience",
        type=_seconds,
        default=60.0,
        metavar="SECONDS",
        help="fail where no node has played for so long [default: 60]",
    )
    parser.add_argument(
        "--learner-cpus",
        type=_processors,
        default=2,
        metavar="N",
        help="processors of this node that are left to the learner where there are other nodes [default: 2]",
    )
    return parser


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds < 1e9:
        raise argparse.ArgumentTypeError("a number above 0 is needed")
    return seconds


def _processors(text: str) -> int:
    processors = int(text)
    if processors < 0:
        raise argparse.ArgumentTypeError("a number of at least 0 is needed")
    return processors


def _require_reachable(address: str | None) -> None:
    """Raises an ``OSError`` at once if nobody listens; Ray itself would try for minutes."""
    if address is None or address == "auto" or "://" in address:
        return
    host, _, port = address.rpartition(":")
    socket.create_connection((host, int(port)), timeout=10).close()


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs ``train``, ``eval``, ``tune`` or ``figures`` with these arguments, those of the command line without them;
    returns the exit code."""
    parser = _parser()
    options, rest = parser.parse_known_args(arguments)
    if not rest or {"-h", "--help"} & set(rest):
        parser.print_help()
        return _native.command_line(["bufgym", *rest, *([] if rest else ["--help"])])
    cluster = _native.Cluster(build())
    try:
        _require_reachable(options.address)
        ray.init(address=options.address, log_to_driver=False, logging_level="warning")
    except (OSError, ValueError, RuntimeError, RayError) as error:
        print(f"error: no Ray cluster at {options.address}: {_line(error)}", file=sys.stderr)
        return 2
    try:
        # The command handles signals itself: the first ends a training after its round.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        cluster.start(["bufgym", *rest])
        return _Carrier(cluster, options.patience, options.learner_cpus).run()
    finally:
        ray.shutdown()


if __name__ == "__main__":
    # Actors find their class by the name of its module.
    from bufgym.ray import main as _main

    sys.exit(_main())
