"""What a training gains from 1, 2, 4 and 8 workers of tf.data service, against what `advisor offload` predicts.

    python benchmarks/offload_proof.py [--workers 1 --workers 4] [--budget 6min] [--write-docs]

In: a script whose pipeline waits for storage instead of computing, so that more workers help although they share one machine.
Out: a table: elements per second that the training reads, predicted from one worker on this machine before any of the services
exists, and measured by `advisor offload --service` with services of 1, 2, 4 and 8 workers. Each process of the service has a
network of its own where the kernel allows it.

The waits are TensorFlow's own (`SleepDataset`), 20 ms before each record, in four files at a time: a worker delivers 200 records
per second at most, and so does the script's own pipeline. A training step waits for 8 ms, as for a model on an accelerator.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from published import machine_sentence, write_section
from running_service import RunningService, inside_own_network, may_isolate, prepare_own_network

WORKERS = (1, 2, 4, 8)
BATCH = 8
INSIDE = "--inside-own-network"
SCRIPT = f'''"""Trains on records that come from slow storage."""

import time

import tensorflow as tf
from tensorflow.python.data.experimental.ops.testing import sleep

FILES, RECORDS = 64, 16


def read(file):
    """Read one file: each record takes the storage 20 ms."""
    return tf.data.Dataset.range(file * RECORDS, (file + 1) * RECORDS).apply(sleep(20_000))


def train_step(batch):
    time.sleep(0.008)


dataset = tf.data.Dataset.range(FILES).repeat()
dataset = dataset.interleave(read, cycle_length=4, num_parallel_calls=4)
dataset = dataset.batch({BATCH})
for batch in dataset:
    train_step(batch)
'''


@dataclass(frozen=True)
class Row:
    """One service."""

    workers: int
    predicted_per_s: float
    """Batches per second of the training."""
    measured_per_s: float | None
    speedup: tuple[float, float, float] | None
    is_same: bool | None
    verdict: str

    def cells(self) -> str:
        """The row of the table."""
        if self.measured_per_s is None or self.speedup is None:
            return f"| {self.workers} | {self.predicted_per_s:.1f} | {self.verdict} | | | |"
        off = self.measured_per_s / self.predicted_per_s - 1
        value, low, high = self.speedup
        equal = {True: "equal", False: "other elements", None: "not compared"}[self.is_same]
        gain = f"{value:.2f}x ({low:.2f}x to {high:.2f}x), {self.verdict}"
        return f"| {self.workers} | {self.predicted_per_s:.1f} | {self.measured_per_s:.1f} | {off:+.0%} | {gain} | {equal} |"


def main() -> None:
    """Measure all services and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--workers", type=int, action="append", metavar="N", help="may be repeated (default: 1, 2, 4, 8)"
    )
    parser.add_argument("--budget", default="6min", metavar="T", help="of each proof (default: 6min)")
    parser.add_argument("--write-docs", action="store_true", help="put the table into docs/benchmarks.md")
    parser.add_argument(INSIDE, dest="is_isolated", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not options.is_isolated and may_isolate():
        inside_own_network([*sys.argv, INSIDE])
    if options.is_isolated:
        prepare_own_network()
    with tempfile.TemporaryDirectory(prefix="offload-proof-") as name:
        script = Path(name) / "train.py"
        script.write_text(SCRIPT)
        sizing = offload(script, "--budget", options.budget)["sizing"]
        print(sizing["sentence"], flush=True)
        rows = [proved(script, count, sizing, options) for count in options.workers or WORKERS]
    lines = report(rows, sizing, options.is_isolated)
    print("\n".join(lines))
    if options.write_docs:
        write_section("offload-proof", lines)


def proved(script: Path, count: int, sizing: dict[str, Any], options: argparse.Namespace) -> Row:
    """Start a service of `count` workers, prove the script with it, and end it."""
    with (
        tempfile.TemporaryDirectory(prefix="offload-service-") as name,
        RunningService(Path(name), options.is_isolated) as service,
    ):
        service.start_dispatcher()
        for _ in range(count):
            service.start_worker()
        found = offload(script, "--budget", options.budget, "--service", service.address)
    proof = found["proof"]
    step_ms, ratio = proof["after"]["step_time_ms"], proof["step_speedup"]
    predicted = min(sizing["wanted_elements_per_s"], count * sizing["worker_elements_per_s"])
    row = Row(
        count,
        predicted,
        None if step_ms is None else 1000 / step_ms,
        None if ratio is None else (ratio["speedup"], ratio["low"], ratio["high"]),
        found["measurement"]["same_elements"] if found["measurement"] else None,
        proof["verdict"],
    )
    print(row.cells(), proof["sentence"], flush=True)
    return row


def offload(script: Path, *options: str) -> dict[str, Any]:
    """Return the JSON of `advisor offload`."""
    command = [sys.executable, "-m", "advisor", "offload", *options, "--quiet", "--json", "-", str(script)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"advisor offload ended with {done.returncode}:\n{done.stderr[-2000:]}")
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def report(rows: Sequence[Row], sizing: dict[str, Any], is_isolated: bool) -> list[str]:
    """Return the table with what it was measured on."""
    where = (
        "each with a network of its own" if is_isolated else "without networks of their own, which the kernel refused"
    )
    return [
        machine_sentence(),
        f"One worker was measured to deliver {sizing['worker_elements_per_s']:.1f} batches/s; without waiting, the training "
        f"would read {sizing['wanted_elements_per_s']:.1f}. Dispatcher and workers are processes of this machine, {where}.",
        "",
        "| workers | predicted, batches/s | measured, batches/s | off | gain over the script's own pipeline | elements |",
        "|---|---|---|---|---|---|",
        *(row.cells() for row in rows),
    ]


if __name__ == "__main__":
    main()
