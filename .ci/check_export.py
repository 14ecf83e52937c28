"""Runs exported networks with other programs' arithmetic and compares.

check_export.py BUFGYM CHECKPOINT EXPORTED RECORDED RANDOM EARLY_CHECKPOINT EARLY_EXPORTED

BUFGYM is the program, EXPORTED a folder written by `export --format all`, RECORDED one of the example
record_observations, RANDOM one of the example random_networks. The last two are the checkpoint and the
export of a network that sets early drop besides alpha."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from safetensors.numpy import load_file

program, checkpoint, exported, recorded, random, early, early_exported = sys.argv[1:]
exported, recorded, random, early_exported = map(Path, (exported, recorded, random, early_exported))
TOLERANCE = 1e-5
RARE = 10_000


def infer(observations, checkpoint=checkpoint):
    """Actions of `bufgym infer`."""
    with tempfile.TemporaryDirectory() as folder:
        np.save(f"{folder}/observations.npy", observations)
        command = [program, "infer", "--quiet", "--checkpoint", checkpoint]
        command += ["--observations", f"{folder}/observations.npy", "--out", f"{folder}/actions.npy"]
        subprocess.run(command, check=True)
        return np.load(f"{folder}/actions.npy")


def session(path):
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    inferred = onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
    for value in inferred.graph.value_info:
        dims = value.type.tensor_type.shape.dim
        assert len(dims) >= 2 and dims[0].dim_param == "batch", f"{path}: {value.name} lost its batch"
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])


def levels_of(actions):
    return np.clip(np.floor((actions + np.float32(1)) * np.float32(0.5) * np.float32(8)), 0, 7)


def compare(name, observations, exact, expected, actions, levels=None):
    """Actions must be within TOLERANCE of exact arithmetic, and of infer's, which is rounded too: there
    one in RARE may be up to twice as far. Levels may differ where an edge lies between the actions."""
    assert actions.shape == expected.shape == exact.shape, name
    difference = np.abs(actions - expected)
    worst, rounding = difference.max(initial=0), np.abs(actions - exact).max(initial=0)
    beyond = (difference > TOLERANCE).sum()
    assert rounding < TOLERANCE, f"{name}: off by {rounding}"
    assert worst < 2 * TOLERANCE and beyond * RARE <= actions.size, f"{name}: {beyond} off by up to {worst}"
    off = 0
    if levels is not None:
        differ = levels != levels_of(expected)
        cells = (expected.astype(np.float64) + 1) * 4
        edges = np.abs(cells - np.round(cells)) / 4
        assert (edges <= difference + 1e-7)[differ].all(), f"{name}: levels differ away from an edge"
        off = differ.sum()
    print(
        f"{name} {list(observations.shape)}: within {worst:.1e} of infer, {rounding:.1e} of exact arithmetic, "
        f"{off} levels differ"
    )


def numpy_actions(tensors, x):
    """The network of the exported tensors, written out, in the precision of its arguments. Actions
    [batch, ports, outputs]."""
    batch, ports = x.shape[:2]
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (0, 0)))
    windows = np.stack([padded[:, :, tap : tap + 8] for tap in range(3)], -1)
    filters = tensors["conv.weight"].reshape(5, 16, 3)
    convolved = np.einsum("bpsft,fct->bpfcs", windows, filters)
    convolved += tensors["conv.bias"].reshape(5, 16, 1)

    def linear(name, x):
        return x @ tensors[f"{name}.weight"].T + tensors[f"{name}.bias"]

    e = np.maximum(linear("embed", np.maximum(convolved, 0).reshape(batch, ports, 640)), 0)
    mixed = np.concatenate([e, np.broadcast_to(e.mean(1, keepdims=True), e.shape)], 2)
    z = np.maximum(linear("mix", mixed), 0)
    return np.tanh(linear("mean.2", np.maximum(linear("mean.0", z), 0)))


def batches():
    generator = np.random.default_rng(1)
    for ports in (1, 4, 16, 96):
        yield "golden", np.load(exported / f"golden/observations-{ports}.npy")
        for batch in (1, 7, 64):
            shape = (batch, ports, 8, 5)
            yield "random", generator.uniform(-1, 1, shape).astype(np.float32)
    yield "recorded", np.load(recorded / "observations-16.npy")


def check_alpha():
    """The one output of a network that sets alpha alone."""
    graph = session(exported / "onnx/actor.onnx")
    tensors = load_file(exported / "safetensors/actor.safetensors")
    doubles = {name: values.astype(np.float64) for name, values in tensors.items()}
    manifest = json.loads((exported / "safetensors/manifest.json").read_text())
    for field in ("features", "actions", "low_level", "weights_sha256"):
        assert field in manifest, f"manifest.json has no {field}"
    facts = {entry.key: entry.value for entry in onnx.load(exported / "onnx/actor.onnx").metadata_props}
    assert facts["weights_sha256"] == manifest["weights_sha256"]
    assert json.loads(facts["features"])[0]["name"] == manifest["features"][0]["name"]
    for name, x in batches():
        expected = infer(x)
        actions, levels = graph.run(["action", "level"], {"observation": x})
        assert levels.dtype == np.int64
        exact = numpy_actions(doubles, x.astype(np.float64))[..., 0]
        compare(f"onnx, {name}", x, exact, expected, actions, levels)
        compare(f"safetensors, {name}", x, exact, expected, numpy_actions(tensors, x)[..., 0])
    x = np.load(recorded / "observations-16.npy")
    assert x.size >= 100_000 * 40, "too few recorded observations"
    assert (np.load(recorded / "actions-16.npy") == infer(x)).all(), "recorded actions are not infer's"
    assert (np.load(recorded / "levels-16.npy") == levels_of(infer(x))).all()


def check_early():
    """Both outputs of a network that sets early drop besides alpha."""
    graph = session(early_exported / "onnx/actor.onnx")
    tensors = load_file(early_exported / "safetensors/actor.safetensors")
    doubles = {name: values.astype(np.float64) for name, values in tensors.items()}
    manifest = json.loads((early_exported / "safetensors/manifest.json").read_text())
    metadata = onnx.load(early_exported / "onnx/actor.onnx").metadata_props
    gaps = next(entry.value for entry in metadata if entry.key == "early_gaps")
    assert [int(gap) for gap in gaps.split(", ")] == manifest["actions"]["early_gaps"]
    names = ["action", "level", "early_action", "early_level"]
    for name, x in batches():
        expected = infer(x, early)
        exact = numpy_actions(doubles, x.astype(np.float64))
        values = graph.run(names, {"observation": x})
        for output, of in enumerate(("alpha", "early drop")):
            actions, levels = values[2 * output : 2 * output + 2]
            parts = (x, exact[..., output], expected[..., output])
            compare(f"onnx, {of}, {name}", *parts, actions, levels)
            compare(f"safetensors, {of}, {name}", *parts, numpy_actions(tensors, x)[..., output])
    for ports in (1, 4, 16, 96):
        golden = early_exported / "golden"
        expected = infer(np.load(golden / f"observations-{ports}.npy"), early)
        for output, prefix in enumerate(("", "early-")):
            actions = np.load(golden / f"{prefix}actions-{ports}.npy")
            assert (actions == expected[..., output]).all(), f"{prefix}actions-{ports} are not infer's"
            levels = np.load(golden / f"{prefix}levels-{ports}.npy")
            assert (levels == levels_of(actions)).all()


def check_random():
    folders = sorted(random.iterdir(), key=lambda folder: int(folder.name))
    worst, early = 0, 0
    for folder in folders:
        graph = session(folder / "network.onnx")
        for ports in (1, 4, 13):
            x = np.load(folder / f"observations-{ports}.npy")
            for name, output in (("means", "action"), ("early-means", "early_action")):
                if not (folder / f"{name}-{ports}.npy").exists():
                    continue
                expected = np.tanh(np.load(folder / f"{name}-{ports}.npy"))
                (actions,) = graph.run([output], {"observation": x})
                difference = np.abs(actions - expected).max()
                assert difference < TOLERANCE, f"{folder}, {ports} ports: off by {difference}"
                worst = max(worst, difference)
                early += output == "early_action"
    assert len(folders) >= 30 and early >= 20
    print(f"{len(folders)} random networks in onnxruntime: within {worst:.1e}")


check_alpha()
check_early()
check_random()
