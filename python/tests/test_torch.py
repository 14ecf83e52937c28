"""The network in PyTorch against that in Rust."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import bufgym
from bufgym import _native
from bufgym.torch import Actor
from conftest import SMALL

SHIPPED = Path(__file__).resolve().parents[2] / "checkpoints"


def random_observations(ports, batch=5):
    return np.random.default_rng(ports).uniform(-1, 1, (batch, ports, 8, 5)).astype(np.float32)


@pytest.mark.parametrize("folder", ["ndt-fct", "ndt-fct-alpha"])
@pytest.mark.parametrize("ports", [1, 4, 16, 96])
def test_a_checkpoint_has_the_same_outputs(folder, ports):
    native, actor = _native.Network(str(SHIPPED / folder)), Actor.load(SHIPPED / folder)
    assert actor.manifest == json.loads((SHIPPED / folder / "manifest.json").read_text())
    x = random_observations(ports)
    with torch.no_grad():
        mean, log_std = actor(torch.from_numpy(x))
    expected_mean, expected_log_std = native.forward(x)
    assert np.abs(np.tanh(mean.numpy()) - np.tanh(expected_mean)).max() < 1e-5
    assert np.abs(log_std.numpy() - expected_log_std).max() < 1e-4
    assert actor.act(torch.from_numpy(x)).shape == ((5, ports) if actor.outputs == 1 else (5, ports, 2))


@pytest.mark.parametrize("outputs", [1, 2])
def test_what_is_saved_is_what_rust_computes(tmp_path, outputs):
    torch.manual_seed(outputs)
    actor = Actor(outputs)
    actor.save(tmp_path / "mine", settings=SMALL, objective="fct=1,loss=0.1", seed=9, decisions=7, updates=3)
    native = _native.Network(str(tmp_path / "mine"))
    x = random_observations(16)
    with torch.no_grad():
        mean, log_std = actor(torch.from_numpy(x))
    assert np.abs(np.tanh(mean.numpy()) - np.tanh(native.forward(x)[0])).max() < 1e-5
    assert np.abs(log_std.numpy() - native.forward(x)[1]).max() < 1e-5
    manifest = json.loads(native.manifest())
    assert (manifest["seed"], manifest["decisions"], manifest["updates"]) == (9, 7, 3)
    assert manifest["objective"] == "fct=1,loss=0.1"
    again = Actor.load(tmp_path / "mine")
    assert all(a.equal(b) for a, b in zip(actor.state_dict().values(), again.state_dict().values()))


@pytest.mark.parametrize(
    ("checkpoint", "names"), [("ndt-fct-alpha", ["actions"]), ("ndt-fct", ["actions", "early-actions"])]
)
def test_the_program_that_comes_with_an_export_computes_the_same(tmp_path, checkpoint, names):
    command = [sys.executable, "-m", "bufgym", "export", "--checkpoint", SHIPPED / checkpoint]
    subprocess.run([*command, "--format", "safetensors", "--out", "exported"], check=True, cwd=tmp_path)
    folder = tmp_path / "exported"
    for ports in (1, 4, 16, 96):
        arrays = [folder / f"golden/{name}-{ports}.npy" for name in ("observations", *names)]
        # It fails where its actions are not those that must come out.
        done = subprocess.run(
            [sys.executable, folder / "load_in_pytorch.py", folder, *arrays], check=True, capture_output=True, text=True
        )
        assert done.stdout.count("equal to ") == len(names)


def test_ports_may_be_in_any_order():
    actor = Actor()
    x = torch.from_numpy(random_observations(16))
    order = torch.randperm(16)
    with torch.no_grad():
        assert torch.allclose(actor.act(x)[:, order], actor.act(x[:, order]), atol=1e-6)


def test_the_density_of_a_sample_is_that_of_torch():
    torch.manual_seed(0)
    actor, x = Actor(2).double(), torch.from_numpy(random_observations(3)).double()
    action, density = actor.sample(x)
    mean, log_std = actor(x)
    before = torch.atanh(action)
    normal = torch.distributions.Normal(mean, log_std.exp())
    expected = (normal.log_prob(before) - torch.log(1 - action**2)).flatten(1).sum(1)
    assert torch.allclose(density, expected, atol=1e-6)
    assert torch.allclose(actor.log_density(x, action), expected, atol=1e-6)


def test_its_policy_is_judged_like_its_checkpoint(tmp_path):
    torch.manual_seed(3)
    actor = Actor()
    actor.save(tmp_path / "mine", settings=SMALL)
    result = bufgym.evaluate([actor.policy("mine"), f"ndt:{tmp_path / 'mine'}"], traces=3, **SMALL)
    means = result.policies.to_pydict()
    first, second = means["mean_fct_ms"][:2]
    # The outputs differ in the last bits, which very rarely changes a level.
    assert first == pytest.approx(second, rel=1e-3)


def test_what_is_wrong_with_a_checkpoint_is_said(tmp_path):
    with pytest.raises(OSError, match="nothing"):
        Actor.load(tmp_path / "nothing")
    with pytest.raises(ValueError, match="is not a checkpoint: it has no manifest.json"):
        Actor.load(tmp_path)
    Actor().save(tmp_path / "mine")
    weights = tmp_path / "mine" / "actor.safetensors"
    weights.write_bytes(weights.read_bytes()[:-4] + b"\0\0\0\0")
    with pytest.raises(ValueError, match="the file is damaged or belongs to another checkpoint"):
        Actor.load(tmp_path / "mine")
    with pytest.raises(ValueError, match=r"tensor mean.2.weight: an array float32\[2, 32\] given where"):
        Actor(2).save(tmp_path / "mine", low_level="dt")
