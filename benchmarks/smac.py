"""Stepping StarCraft battles on one core: how fast, whether twice the copies cost twice as much.

With ``SMAX_PYTHON`` set to an interpreter that has JaxMARL (``pip install jaxmarl`` into a virtual
environment of its own), its SMAX, which is the same kind of engine, is measured in the same run.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import torch
from tensordict import TensorDictBase

from benchmarks.table import Row, main
from benchmarks.timing import in_turns, make_row
from sipo_trl.envs import SMACEnv

ENVS, STEPS = 512, 10
LEAST = {"2m_vs_1z": 50_000, "2c_vs_64zg": 2_500}
"""Environment steps per second that are wanted on one core."""


def rows(*, quick: bool) -> Iterator[Row]:
    """Measure everything at the sizes of ``docs/benchmarks.md``."""
    rounds = 5 if quick else 15
    for name, least in LEAST.items():
        yield stepping(name, rounds=rounds, least=least)
        yield resetting(name, rounds=rounds)
    interpreter = os.environ.get("SMAX_PYTHON")
    if interpreter is None:
        print("SMAX is left out: SMAX_PYTHON names no interpreter with JaxMARL.", file=sys.stderr)
    else:
        yield against_smax(interpreter, rounds=rounds)


def stepping(name: str, *, rounds: int, least: int, envs: int = ENVS, steps: int = STEPS) -> Row:
    """Compare steps of many battles with as many of a quarter of them, four times."""
    few, many = Stepper(name, envs // 4, steps), Stepper(name, envs, steps)
    times = in_turns({"ours": many.step, "fewer": few.step}, rounds=rounds)
    return make_row(
        f"{steps} steps of {envs} battles, {name}",
        times["ours"],
        "a quarter of them, four times",
        [4 * seconds for seconds in times["fewer"]],
        most_ratio=1.1,
        most=envs * steps / least,
    )


def resetting(name: str, *, rounds: int, envs: int = ENVS, steps: int = STEPS) -> Row:
    """Compare steps as a collector makes them, TorchRL's resets of few copies included."""
    ours = Stepper(name, envs, steps)
    times = in_turns({"ours": ours.collect, "steps": ours.step}, rounds=rounds)
    what = f"{steps} steps of {envs} battles, {name}, with resets as they are due"
    return make_row(what, times["ours"], "the steps alone", times["steps"])


class Stepper:
    """Our environment with random legal actions.

    Args:
        name: of the map.
        envs: number of copies.
        steps: of one call.
    """

    def __init__(self, name: str, envs: int, steps: int) -> None:
        self.env, self.steps = SMACEnv(name, batch_size=[envs], seed=0), steps
        self.data = self.env.reset()
        for _ in range(3):
            self.collect()

    def step(self) -> None:
        """Makes some steps; battles that end go on without a side."""
        for _ in range(self.steps):
            self.data = self.env.step(self._act())["next"]

    def collect(self) -> None:
        """Makes some steps, with the resets that are due."""
        for _ in range(self.steps):
            _, self.data = self.env.step_and_maybe_reset(self._act())

    def _act(self) -> TensorDictBase:
        mask = self.data["agents", "action_mask"]
        # The largest of random numbers: faster than to draw from a distribution.
        action = (torch.rand_like(mask, dtype=torch.float32) * mask).argmax(-1)
        return self.data.set(("agents", "action"), action)


def against_smax(interpreter: str, *, rounds: int, envs: int = ENVS, steps: int = STEPS) -> Row:
    """Compare 2s3z with the scenario of the same name in JaxMARL, one core each, in wall time."""
    script = Path(__file__).with_name("smax.py")
    ours = Stepper("2s3z", envs, steps)
    command = [interpreter, str(script), str(envs), str(steps), str(rounds)]
    # Both in wall time, one after the other: JAX has threads of its own.
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    theirs = [float(seconds) for seconds in run.stdout.splitlines()[-1].split()]
    times = in_turns({"ours": ours.collect}, rounds=rounds, clock=time.perf_counter)["ours"]
    what = f"{steps} steps of {envs} battles, 2s3z"
    return make_row(what, times, "JaxMARL's SMAX, 2s3z, compiled", theirs)


if __name__ == "__main__":
    sys.exit(main(only="smac"))
