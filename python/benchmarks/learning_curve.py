"""SAC of Stable-Baselines3 on the validation traces of ``bufgym train``, and its curve beside those of trainings:

    bufgym train --steps 50000 --config random-start.toml --out runs/mine
    python benchmarks/learning_curve.py --decisions 50000 --out curves runs/mine

A training's weights are judged on 32 validation traces, by mean FCT relative to DT with α = 1; so are those of
Stable-Baselines3 here, as a checkpoint that Rust runs. Both have the same network as their actor, the same reward,
and as many updates of the same batch size per decision. Critics, exploration and discounts are each library's own: a
discount of Stable-Baselines3 counts steps, and is the mean of those of the environment.

``curves/sb3-sac/metrics.csv`` has the columns of a training that ``bufgym runs curves`` reads; ``curves/curves.svg`` is what
it draws of this one and of the run folders. The best weights of every run folder are judged again first, which has to
give the number in their manifest: then the traces are the same.

Needs ``pip install 'bufgym[sb3,torch,arrow]'``.
"""

import argparse
import csv
import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import torch
from stable_baselines3 import SAC
from stable_baselines3.common.callbacks import BaseCallback

import bufgym
from bufgym.sb3 import BufferVecEnv, PortSACPolicy

SCENARIO, ENV_ID = "ndt-16x1g", "bufgym/NDT-16x1G-v0"
#: The defaults of `bufgym train`.
LOW_LEVEL = "fab:alpha_short=2048,short_bytes=10000,idle_us=10000+early:from=front"
ENVS, BATCH, LEARNING_STARTS, REPLAY = 32, 64, 10_000, 300_000
DECISIONS_PER_UPDATE = 16
REWARD = {"low_level": LOW_LEVEL, "unlimited_baseline": True, "tau_s": 1.0, "horizon_s": 0.1}
VALIDATION_SEED, TRACES = 0, 32


class Validation:
    """The traces that choose the best weights of a training, with DT's results."""

    def __init__(self, traces: int) -> None:
        self.baseline = [self._mean_fct_ms("dt", index) for index in range(traces)]

    def ratio(self, checkpoint: Path) -> float:
        """Mean over the traces of mean FCT relative to DT's; infinite if a flow did not finish."""
        own = [self._mean_fct_ms(f"ndt:{checkpoint}", index) for index in range(len(self.baseline))]
        return float(np.mean(np.divide(own, self.baseline)))

    @staticmethod
    def _mean_fct_ms(policy: str, index: int) -> float:
        run = bufgym.simulate(policy, SCENARIO, VALIDATION_SEED, index=index, split="validation")
        finished = run.summary["completed"] == run.summary["flows"]
        return run.summary["mean_fct_ms"] if finished else float("inf")


class Judge(BaseCallback):
    """Judges the actor every so many decisions and writes a row each time."""

    def __init__(self, folder: Path, validation: Validation, every: int) -> None:
        super().__init__()
        self.folder, self.validation, self.every = folder, validation, every
        self.next = every
        self.began, self.judging = time.perf_counter(), 0.0
        folder.mkdir(parents=True, exist_ok=True)
        self.table = (folder / "metrics.csv").open("w", newline="")
        self.rows = csv.writer(self.table)
        self.rows.writerow(["decisions", "updates", "validation", "learning_s"])

    def _on_step(self) -> bool:
        if self.num_timesteps >= self.next:
            self.judge()
            self.next += self.every
        return True

    def judge(self) -> None:
        """Of the actor as it is."""
        start = time.perf_counter()
        checkpoint = self.folder / "checkpoint"
        self.model.actor.net.save(
            checkpoint, scenario=SCENARIO, low_level=LOW_LEVEL, seed=self.model.seed, decisions=self.num_timesteps
        )
        value = self.validation.ratio(checkpoint)
        self.judging += time.perf_counter() - start
        learning = time.perf_counter() - self.began - self.judging
        self.rows.writerow([self.num_timesteps, self.model._n_updates, value, f"{learning:.1f}"])
        self.table.flush()
        print(f"{self.num_timesteps} decisions, {self.model._n_updates} updates, {learning:.0f} s: {value:.4f}", flush=True)


def mean_discount() -> float:
    """Of a step with random actions."""
    envs = bufgym.make_vec(ENV_ID, ENVS, autoreset_mode="SameStep", threads=1, **REWARD)
    envs.reset(seed=1)
    rng = np.random.default_rng(1)
    shape = envs.action_space.shape
    steps = [envs.step(rng.uniform(-1, 1, shape).astype(np.float32))[4]["discount"].mean() for _ in range(50)]
    return float(np.mean(steps))


def check(run: Path, validation: Validation) -> None:
    """That a run was judged on the same traces."""
    best = run / "checkpoints" / "best"
    told = json.loads((best / "manifest.json").read_text())["validation"]["value"]
    found = validation.ratio(best)
    if abs(told - found) > 1e-9:
        sys.exit(f"{best}: {found} on these traces, {told} in its manifest; the run has other validation traces")
    print(f"{best}: {found:.4f}, as its manifest says")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("runs", nargs="*", type=Path, help="run folders of `bufgym train`")
    parser.add_argument("--decisions", type=int, default=50_000, help="of Stable-Baselines3's training")
    parser.add_argument("--every", type=int, default=5_000, help="decisions between two validations")
    parser.add_argument("--traces", type=int, default=TRACES, help="of a validation")
    parser.add_argument("--threads", type=int, default=1, help="of PyTorch and of the environments")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, required=True, help="folder of the results")
    options = parser.parse_args()

    torch.set_num_threads(options.threads)
    validation = Validation(options.traces)
    for run in options.runs:
        check(run, validation)
    gamma = mean_discount()
    print(f"the discount of a step is {gamma:.4f}")
    envs = BufferVecEnv(ENV_ID, ENVS, threads=options.threads, seed=options.seed, **REWARD)
    model = SAC(
        PortSACPolicy,
        envs,
        gamma=gamma,
        batch_size=BATCH,
        buffer_size=REPLAY,
        learning_starts=min(LEARNING_STARTS, options.decisions // 5),
        train_freq=1,
        gradient_steps=ENVS // DECISIONS_PER_UPDATE,
        seed=options.seed,
        device="cpu",
    )
    judge = Judge(options.out / "sb3-sac", validation, options.every)
    model.learn(options.decisions, callback=judge)
    figure = options.out / "curves.svg"
    command = [sys.executable, "-m", "bufgym", "curves", options.out / "sb3-sac", *options.runs, "--out", figure]
    subprocess.run([*command, "--force"], check=True)


if __name__ == "__main__":
    main()
