"""What a training gains from 1, 2, 4 and 8 workers of tf.data service, against what `advisor offload` predicts.

    python benchmarks/offload_proof.py [--storage] [--workers 1 --workers 4] [--budget 5min] [--results FILE] [--write-docs]

In: a script whose pipeline waits for storage instead of computing, so that more workers help although they share one machine.
Out: a table: batches per second that the training reads, predicted from one worker on this machine before any of the services
exists, and measured by `advisor offload --service` with services of 1, 2, 4 and 8 workers; and the bytes per second that arrive.
Each process of the service has a network of its own where the kernel allows it; the bytes are then those of the interface towards
the workers, and otherwise the rate times the size of a batch. At most 23 minutes for all four services.

The waits are TensorFlow's own (`SleepDataset`), 45 ms before each record, in four files at a time. With --storage, TFRecord files
are read, and each read of a file takes 100 ms longer (`slow_storage`). A worker delivers about 30 batches of 256 KiB per second,
and so does the script's own pipeline. A training step waits for 3 ms, as for a model on an accelerator: even 8 workers stay below
its rate.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from published import machine_sentence, write_section
from received_bytes import ReceivedBytes, steady_rate
from running_service import BRIDGE, RunningService, inside_own_network, may_isolate, prepare_own_network
from slow_storage import slow_storage, why_not

WORKERS = (1, 2, 4, 8)
BATCH, RECORD_BYTES = 4, 65536
FILES, RECORDS, FILES_AT_ONCE = 128, 2, 4
READ_US = 100_000
"""TensorFlow reads a file of this size twice: the second read finds its end."""
SIZING_BUDGET = "3min"
INSIDE = "--inside-own-network"
_STEP = f"""
def train_step(batch):
    time.sleep(0.003)


dataset = dataset.interleave(read, cycle_length={FILES_AT_ONCE}, num_parallel_calls={FILES_AT_ONCE})
dataset = dataset.batch({BATCH})
for batch in dataset:
    train_step(batch)
"""
SCRIPT = f'''"""Trains on records that come from slow storage."""

import time

import numpy as np
import tensorflow as tf
from tensorflow.python.data.experimental.ops.testing import sleep

RECORDS = {4 * RECORDS}
NOISE = tf.constant(np.random.default_rng(0).integers(0, 2**62, {RECORD_BYTES // 8}))  # cannot be compressed


def read(file):
    """Read one file: each record takes the storage 45 ms."""
    records = tf.data.Dataset.range(file * RECORDS, (file + 1) * RECORDS).apply(sleep(45_000))
    return records.map(lambda record: NOISE + record)


dataset = tf.data.Dataset.range({FILES // 4}).repeat()
{_STEP}'''
STORAGE_SCRIPT = f'''"""Trains on TFRecord files."""

import sys
import time
from pathlib import Path

import tensorflow as tf


def read(file):
    return tf.data.TFRecordDataset(file)


files = sorted(map(str, Path(sys.argv[1]).glob("*.tfrecord")))
dataset = tf.data.Dataset.from_tensor_slices(files).repeat()
{_STEP}'''
WRITE_FILES = f"""
import os
import sys

import tensorflow as tf

for number in range({FILES}):
    with tf.io.TFRecordWriter(f"{{sys.argv[1]}}/{{number:03}}.tfrecord") as writer:
        for _ in range({RECORDS}):
            writer.write(os.urandom({RECORD_BYTES}))
"""


@dataclass(frozen=True)
class Row:
    """One service."""

    workers: int
    predicted_per_s: float
    """Batches per second of the training."""
    measured_per_s: float | None
    speedup: list[float] | None
    """Value, low and high."""
    is_same: bool | None
    verdict: str
    bytes_per_s: float | None = None
    """What the training's host receives."""
    are_bytes_measured: bool = False

    def cells(self) -> str:
        """The row of the table."""
        if self.measured_per_s is None or self.speedup is None:
            return f"| {self.workers} | {self.predicted_per_s:.1f} | {self.verdict} | | | | |"
        off = self.measured_per_s / self.predicted_per_s - 1
        value, low, high = self.speedup
        equal = {True: "equal", False: "other elements", None: "not compared"}[self.is_same]
        gain = f"{value:.2f}x ({low:.2f}x to {high:.2f}x), {self.verdict}"
        received = "unknown" if self.bytes_per_s is None else f"{self.bytes_per_s / 1e6:.1f} MB/s"
        if self.bytes_per_s is not None and not self.are_bytes_measured:
            received += " (computed)"
        measured = f"| {self.workers} | {self.predicted_per_s:.1f} | {self.measured_per_s:.1f} | {off:+.0%} |"
        return f"{measured} {received} | {gain} | {equal} |"


@dataclass
class Results:
    """What was measured; one file holds it."""

    sizing: dict[str, Any]
    rows: list[Row]

    def save(self, path: Path | None) -> None:
        """Write all to the file, if there is one."""
        if path is not None:
            path.write_text(json.dumps({"sizing": self.sizing, "rows": [asdict(row) for row in self.rows]}), "utf-8")


def read_results(path: Path | None) -> Results:
    """The results of earlier runs; empty ones if there are none."""
    if path is None or not path.exists():
        return Results({}, [])
    stored = json.loads(path.read_text("utf-8"))
    return Results(stored["sizing"], [Row(**row) for row in stored["rows"]])


def main() -> None:
    """Measure all services and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--storage", action="store_true", help="read TFRecord files from storage that is made slow")
    parser.add_argument(
        "--workers", type=int, action="append", metavar="N", help="may be repeated (default: 1, 2, 4, 8)"
    )
    parser.add_argument("--budget", default="5min", metavar="T", help="of each proof (default: 5min)")
    parser.add_argument("--results", type=Path, metavar="FILE", help="results are read from it and added to it")
    parser.add_argument("--write-docs", action="store_true", help="put the table into docs/benchmarks.md")
    parser.add_argument(INSIDE, dest="is_isolated", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    results = read_results(options.results)
    asked = [count for count in options.workers or WORKERS if not any(row.workers == count for row in results.rows)]
    missing = missing_rows([*asked, *(row.workers for row in results.rows)])
    if options.write_docs and missing:
        parser.error(
            f"--write-docs needs the rows of all services, but {missing} are missing: add --results FILE with them"
        )
    if options.storage and why_not():
        raise SystemExit(why_not())
    if not options.is_isolated and may_isolate():
        inside_own_network([*sys.argv, INSIDE])
    if options.is_isolated:
        prepare_own_network()
    with tempfile.TemporaryDirectory(prefix="offload-proof-") as name:
        script = prepared(Path(name), options.storage)
        if not results.sizing:
            results.sizing = offload(script, "--budget", SIZING_BUDGET)["sizing"]
            results.save(options.results)
        print(results.sizing["sentence"], flush=True)
        for count in asked:
            results.rows.append(proved(script, count, results.sizing, options))
            results.save(options.results)
    lines = report(results, options.is_isolated, options.storage)
    print("\n".join(lines))
    if options.write_docs:
        write_section("offload-storage" if options.storage else "offload-proof", lines)


def missing_rows(counts: Sequence[int]) -> str:
    """The numbers of workers of the table that are not among these."""
    return ", ".join(str(count) for count in WORKERS if count not in counts)


def prepared(folder: Path, is_storage: bool) -> list[str]:
    """Write the script, and its files; from then on, reading these is slow for every process that is started.

    Returns:
        The script with its arguments.
    """
    script = folder / "train.py"
    if not is_storage:
        script.write_text(SCRIPT)
        return [str(script)]
    data = folder / "data"
    data.mkdir()
    script.write_text(STORAGE_SCRIPT)
    subprocess.run([sys.executable, "-c", WRITE_FILES, str(data)], check=True, stderr=subprocess.DEVNULL)
    os.environ.update(slow_storage(data, READ_US, folder))
    return [str(script), str(data)]


def proved(script: Sequence[str], count: int, sizing: dict[str, Any], options: argparse.Namespace) -> Row:
    """Start a service of `count` workers, prove the script with it, and end it."""
    with (
        tempfile.TemporaryDirectory(prefix="offload-service-") as name,
        RunningService(Path(name), options.is_isolated) as service,
    ):
        service.start_dispatcher()
        for _ in range(count):
            service.start_worker()
        received = ReceivedBytes(BRIDGE) if options.is_isolated else None
        with received or contextlib.nullcontext():
            found = offload(script, "--budget", options.budget, "--service", service.address)
    proof = found["proof"]
    step_ms, ratio = proof["after"]["step_time_ms"], proof["step_speedup"]
    measured = None if step_ms is None else 1000 / step_ms
    bytes_per_s = None if received is None else steady_rate(received.samples, proof["turns"])
    are_bytes_measured = bytes_per_s is not None
    if bytes_per_s is None and measured is not None:
        bytes_per_s = measured * BATCH * RECORD_BYTES
    row = Row(
        count,
        min(sizing["wanted_elements_per_s"], count * sizing["worker_elements_per_s"]),
        measured,
        None if ratio is None else [ratio["speedup"], ratio["low"], ratio["high"]],
        found["measurement"]["same_elements"] if found["measurement"] else None,
        proof["verdict"],
        bytes_per_s,
        are_bytes_measured,
    )
    print(row.cells(), proof["sentence"], flush=True)
    return row


def offload(script: Sequence[str], *options: str) -> dict[str, Any]:
    """Return the JSON of `advisor offload`."""
    command = [sys.executable, "-m", "advisor", "offload", *options, "--quiet", "--json", "-", *script]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"advisor offload ended with {done.returncode}:\n{done.stderr[-2000:]}")
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def report(results: Results, is_isolated: bool, is_storage: bool) -> list[str]:
    """Return the table with what it was measured on."""
    sizing = results.sizing
    where = (
        "each with a network of its own" if is_isolated else "without networks of their own, which the kernel refused"
    )
    return [
        machine_sentence(),
        f"One worker was measured to deliver {sizing['worker_elements_per_s']:.1f} batches/s; without waiting, the training "
        f"would read {sizing['wanted_elements_per_s']:.1f}. Dispatcher and workers are processes of this machine, {where}.",
        *([f"Each read of a file takes {READ_US / 1000:g} ms longer than the disk needs."] if is_storage else []),
        "",
        "| workers | predicted, batches/s | measured, batches/s | off | received by the training's host | gain over the script's "
        "own pipeline | elements |",
        "|---|---|---|---|---|---|---|",
        *(row.cells() for row in sorted(results.rows, key=lambda row: row.workers)),
    ]


if __name__ == "__main__":
    main()
