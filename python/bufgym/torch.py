"""The permutation-equivariant network in PyTorch: ``pip install 'bufgym[torch]'``.

It is the network that ``bufgym train`` trains (Wang et al., §IV-A and §V-A), with the same weights by the same
names, and reads and writes the same checkpoints. So a policy that is trained here runs in
``bufgym eval --policy ndt:FOLDER`` and in a switch after ``bufgym export``.
"""

import json
import math
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import softplus

from bufgym import _native
from bufgym.arguments import settings_of
from bufgym.evaluation import Policy

#: Range to which the logarithm of the standard deviation is softly clamped.
LOG_STD_RANGE = (-5.0, 2.0)


class Actor(nn.Module):
    """A tanh-Gaussian policy per port, whose weights all ports share: any number of ports, in any order.

    Args:
        outputs: values of an action per port: 1 for α, 2 for α and early drop.
    """

    def __init__(self, outputs: int = 1) -> None:
        super().__init__()
        self.outputs = outputs
        self.conv = nn.Conv1d(5, 80, 3, padding=1, groups=5)
        self.embed = nn.Linear(640, 64)
        self.mix = nn.Linear(128, 32)
        self.mean = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, outputs))
        self.log_std = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, outputs))

    def forward(self, observation: Tensor) -> tuple[Tensor, Tensor]:
        """Returns mean before tanh and logarithm of the standard deviation, each [batch, ports, outputs], for
        observations [batch, ports, 8, 5]."""
        batch, ports = observation.shape[:2]
        convolved = torch.relu(self.conv(observation.reshape(-1, 8, 5).transpose(1, 2)))
        own = torch.relu(self.embed(convolved.flatten(1))).reshape(batch, ports, 64)
        mean = own.mean(1, keepdim=True).expand_as(own)
        mixed = torch.relu(self.mix(torch.cat([own, mean], 2)))
        return self.mean(mixed), soft_clamp(self.log_std(mixed))

    def act(self, observation: Tensor) -> Tensor:
        """Returns the action without noise, [batch, ports] or [batch, ports, outputs], in [-1, 1]."""
        return self._flat(torch.tanh(self(observation)[0]))

    def sample(self, observation: Tensor) -> tuple[Tensor, Tensor]:
        """Returns an action with noise, [batch, ports] or [batch, ports, outputs], and the logarithm of its density,
        [batch]; gradients go through both."""
        mean, log_std = self(observation)
        before = mean + log_std.exp() * torch.randn_like(mean)
        return self._flat(torch.tanh(before)), _log_density(before, mean, log_std)

    def log_density(self, observation: Tensor, action: Tensor) -> Tensor:
        """Returns the logarithm of the density of an action, [batch], as for policy gradients."""
        mean, log_std = self(observation)
        # Of an action that was rounded to one of the ends, the inverse of tanh is infinite.
        inside = action.reshape(mean.shape).clamp(-1 + 1e-6, 1 - 1e-6)
        return _log_density(torch.atanh(inside), mean, log_std)

    @property
    def _low_level(self) -> str:
        return "dt" if self.outputs == 1 else "dt+early"

    def _flat(self, action: Tensor) -> Tensor:
        return action.squeeze(2) if self.outputs == 1 else action

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> "Actor":
        """Reads the network of a checkpoint, whose manifest is ``actor.manifest`` then.

        Raises:
            ValueError: the folder is no checkpoint, or is damaged; the line says which file and why.
            OSError: it cannot be read.
        """
        native = _native.Network(os.fspath(folder))
        actor = cls(native.outputs())
        actor.load_state_dict({name: torch.from_numpy(values) for name, values in native.tensors().items()})
        actor.manifest = json.loads(native.manifest())
        return actor

    #: Of a network that was loaded: what ``manifest.json`` says.
    manifest: dict[str, Any] | None = None

    def save(
        self,
        folder: str | os.PathLike[str],
        *,
        scenario: str = "ndt-16x1g",
        settings: Mapping[str, Any] | None = None,
        objective: str = "fct",
        low_level: str | None = None,
        seed: int = 0,
        decisions: int = 0,
        updates: int = 0,
    ) -> None:
        """Writes a checkpoint, which replaces one that is there.

        Args:
            folder: where.
            scenario: preset or file that it was trained in; ``bufgym export`` records observations there.
            settings: settings that were changed in it.
            objective: of the training.
            low_level: heuristic whose α it sets: Dynamic Threshold, or ``"dt+early"`` with two outputs.
            seed: of the training.
            decisions: taken in training.
            updates: of the weights.
        """
        tensors = {
            name: np.ascontiguousarray(values.detach().cpu().numpy(), dtype=np.float32)
            for name, values in self.state_dict().items()
        }
        origin = {
            "scenario": scenario,
            "settings": settings_of(settings),
            "objective": objective,
            "low_level": low_level or self._low_level,
            "seed": seed,
            "decisions": decisions,
            "updates": updates,
        }
        _native.save_network(os.fspath(folder), tensors, origin)

    def policy(self, name: str = "torch", low_level: str | None = None) -> Policy:
        """Returns the network without noise for ``bufgym.evaluate`` and ``bufgym.simulate``."""

        @torch.no_grad()
        def decide(observation: NDArray[np.float32]) -> NDArray[np.float32]:
            device = self.embed.weight.device
            return self.act(torch.from_numpy(observation).to(device)[None])[0].cpu().numpy()

        return Policy(decide, name, low_level or self._low_level)


def _log_density(before: Tensor, mean: Tensor, log_std: Tensor) -> Tensor:
    """Returns the logarithm of the density of the tanh of ``before``, a Gaussian's, summed over outputs, [batch]."""
    gaussian = -0.5 * ((before - mean) / log_std.exp()) ** 2 - log_std - 0.5 * math.log(2.0 * math.pi)
    # log(1 - tanh(x)^2) = 2 (log 2 - x - softplus(-2x)).
    slope = 2.0 * (math.log(2.0) - before - softplus(-2.0 * before))
    return (gaussian - slope).flatten(1).sum(1)


def soft_clamp(x: Tensor) -> Tensor:
    """Returns nearly ``x`` inside of :data:`LOG_STD_RANGE`, and never quite one of the ends."""
    low, high = LOG_STD_RANGE
    below = high - softplus(high - x)
    return low + softplus(below - low)
