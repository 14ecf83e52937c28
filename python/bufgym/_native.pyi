"""The base of the package, in Rust. Programs use the classes around it."""

from typing import Any, final

import numpy as np
from numpy.typing import NDArray

__version__: str
#: The control factors that actions stand for: 2^-2, 2^-1, ..., 2^5.
ALPHAS: list[float]
#: What is observed of a port at a decision, each with its scale.
FEATURE_NAMES: list[str]
#: What only the simulator knows of a port.
PRIVILEGED_NAMES: list[str]
#: Decisions in an observation.
HISTORY: int

_Real = NDArray[np.float32]
#: Shape, least and largest value.
_Bounds = tuple[list[int], float, float]
#: A name, or name, function and heuristic.
_Policy = str | tuple[str, Any, str]

def environments() -> list[tuple[str, str, bool]]:
    """Name, summary and whether it is a network, of every registered environment."""

def command_line(arguments: list[str]) -> int:
    """Runs the command line with these arguments, the first of which is the program's name, and returns
    the exit code."""

def simulate(policy: _Policy, arguments: dict[str, Any]) -> tuple[str, str, list[dict[str, Any]]]:
    """Runs one trace under one policy. Returns the policy's name, the summary as JSON, and the columns of
    flows, switches, timeline and pauses."""

def evaluate(policies: list[_Policy], arguments: dict[str, Any]) -> Evaluation:
    """Runs every policy on every trace."""

def save_network(folder: str, tensors: dict[str, _Real], origin: dict[str, Any]) -> None:
    """Writes a checkpoint, which replaces an existing one."""

@final
class Cluster:
    """The head of a training, comparison, search or set of figures: runs a command whose simulations hosts do."""

    def __new__(cls, build: str) -> Cluster: ...
    def join(self, hello: bytes) -> int:
        """Takes a host in and returns its number; ``ValueError`` where it may not join."""

    def lose(self, host: int, why: str) -> None:
        """Gives up a host."""

    def start(self, arguments: list[str]) -> None:
        """Begins to run the command with these arguments, the first of which is the program's name."""

    def next(self, patience: float) -> tuple[int, int, bytes] | None:
        """The next request, the host that it is for, and its bytes; None where there is none for ``patience``
        seconds."""

    def answer(self, request: int, answer: bytes) -> None:
        """Brings an answer; ``ValueError`` where it cannot be used, and its host is given up."""

    def close(self, reason: str) -> None:
        """Says that no host will come any more; the command then fails with this reason."""

    def exit_code(self) -> int | None:
        """The exit code of the command; None while it runs."""

    def traffic(self) -> tuple[int, int, int]:
        """Requests so far, bytes of them, and bytes of their answers."""

@final
class Host:
    """Plays rollout workers and runs simulations."""

    def __new__(cls, build: str, threads: int) -> Host: ...
    def hello(self, name: str) -> bytes:
        """Returns the facts that the head checks before this host may join."""

    def serve(self, request: bytes) -> bytes:
        """Does what a request asks for."""

@final
class Env:
    """A single switch under control."""

    def __new__(cls, id: str, arguments: dict[str, Any]) -> Env: ...
    def observation_space(self) -> _Bounds: ...
    def action_space(self) -> _Bounds: ...
    def reset(self, seed: int | None = None, trace: int | None = None) -> tuple[_Real, dict[str, Any]]: ...
    def step(self, action: _Real) -> tuple[_Real, float, bool, bool, dict[str, Any]]: ...
    def render(self) -> NDArray[np.uint8]:
        """uint8 [height, width, 3]."""

    def snapshot(self) -> str: ...
    def restore(self, snapshot: str) -> tuple[_Real, dict[str, Any]] | None: ...
    def trace_index(self) -> int | None: ...
    def scenario(self) -> str: ...

@final
class VectorEnv:
    """Switches under control that step in parallel."""

    def __new__(cls, id: str, envs: int, mode: str, threads: int, arguments: dict[str, Any]) -> VectorEnv: ...
    def observation_space(self) -> _Bounds: ...
    def action_space(self) -> _Bounds: ...
    def threads(self) -> int: ...
    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays that every call writes to, by name; those of infos by their names there."""

    def reset(
        self, seeds: list[int | None], mask: list[bool] | None = None, trace: int | None = None
    ) -> None: ...
    def step(self, actions: _Real) -> list[tuple[int, dict[str, Any]]]:
        """Returns the statistics of episodes that have ended, each with the number of its environment."""

    def render(self) -> list[NDArray[np.uint8]]: ...

@final
class NetworkEnv:
    """A network of switches, each an agent."""

    def __new__(cls, id: str, arguments: dict[str, Any]) -> NetworkEnv: ...
    def agents(self) -> list[str]: ...
    def observation_spaces(self) -> list[_Bounds]: ...
    def action_spaces(self) -> list[_Bounds]: ...
    def turn(self) -> int: ...
    def reset(self, seed: int | None = None, trace: int | None = None) -> None: ...
    def step(self, action: _Real) -> tuple[bool, bool]:
        """Returns two flags: terminated, truncated."""

    def told(self) -> list[tuple[_Real, float, dict[str, Any]]]:
        """Observation, reward and info of every agent."""

@final
class Network:
    """A network as Rust runs it, from a checkpoint."""

    def __new__(cls, folder: str) -> Network: ...
    def manifest(self) -> str: ...
    def outputs(self) -> int: ...
    def tensors(self) -> dict[str, _Real]: ...
    def forward(self, observations: _Real) -> tuple[_Real, _Real]:
        """Mean before tanh and logarithm of the standard deviation, each [batch, ports, outputs], for
        observations float32 [batch, ports, 8, 5]."""

@final
class Sac:
    """Soft actor-critic with plain networks and a replay of its own. Actions are in (-1, 1)."""

    def __new__(cls, sizes: tuple[int, int, int, int], discount: float, seed: int, settings: str) -> Sac: ...
    @staticmethod
    def load(folder: str) -> Sac: ...
    def sizes(self) -> tuple[int, int]: ...
    def save(self, folder: str) -> None: ...
    def random_action(self) -> _Real: ...
    def act(self, observation: _Real, explores: bool) -> _Real: ...
    def push(self, observation: _Real, action: _Real, reward: float, next: _Real, terminated: bool) -> None: ...
    def update(self, updates: int) -> dict[str, float | None]: ...

@final
class Evaluation:
    """A finished evaluation."""

    def per_trace(self) -> dict[str, Any]: ...
    def policies(self) -> dict[str, Any]: ...
    def report(self) -> str: ...
    def text(self) -> str: ...
    def findings(self) -> list[str]: ...
    def write(self, folder: str, force: bool) -> None: ...
