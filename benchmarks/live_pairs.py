"""Do two processes that are alive and take turns measure the same as fresh processes?

    python benchmarks/live_pairs.py [--pairs 5] [--only NAME] [--results FILE] [--write-docs]

In: nothing.  Out: per comparison of known kind (A/A, or one change) the ratio of step times from fresh processes and from live
ones, their spread, and the time that a pair takes.

Fresh: each turn is a new process: start, warm-up, window. Live: both scripts start once. Each turn, one of them goes on for a
while (SIGCONT) and then stops itself between two steps (SIGSTOP to its process group), so that its buffers stay as they are. Two
pairs of live processes take turns one after the other, to see what differs from process to process. What to drop at the beginning
of a turn is chosen afterwards: each choice has a column.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median, stdev
from typing import IO

from published import machine_sentence, write_section

from advisor.capture.request import CaptureRequest
from advisor.capture.script_process import environment, session_request
from advisor.model.codec import encode_message

WARMUP_S = 3.0
WINDOW_S = 4.0
DROPPED_S = (0.0, 0.5, 1.0)
STARTS = 2
"""Beginnings of a live turn that are dropped, each evaluated."""
CHILD = Path(__file__).with_name("live_turns.py")
HEAD = """import time
import numpy as np
import tensorflow as tf
weights = tf.random.normal([500, 500])
def train(n):
    x = weights
    for _ in range(n):
        x = tf.matmul(x, weights)
    return tf.reduce_sum(x).numpy()
def work(n):
    return lambda x: tf.reduce_sum(tf.random.stateless_normal([n], [1, 2]) * tf.cast(x, tf.float32))
"""
_LOOP = "\nfor batch in data:\n    train({n})\n"
SERIAL = HEAD + "data = tf.data.Dataset.range(10**9).map(work(30_000)).batch(16)" + _LOOP.format(n=1)
PARALLEL = SERIAL.replace("work(30_000))", "work(30_000), num_parallel_calls=tf.data.AUTOTUNE)")
SLEEPING = (
    HEAD
    + "data = tf.data.Dataset.range(10**9).map(work(30_000)).batch(16)\nfor batch in data:\n    time.sleep(0.008)\n"
)
PREFETCHED = SLEEPING.replace(".batch(16)", ".batch(16).prefetch(2)")
EPOCHS = (
    HEAD + "data = tf.data.Dataset.range(960).map(work(30_000)).batch(16)\n"
    "for epoch in range(10**6):\n    for batch in data:\n        train(2)\n"
)
CACHED = EPOCHS.replace(".batch(16)", ".batch(16).cache()")
KERAS = HEAD + (
    "model = tf.keras.Sequential([tf.keras.layers.Dense(256, activation='relu'), tf.keras.layers.Dense(1)])\n"
    "model.compile('sgd', 'mse')\n"
    "data = tf.data.Dataset.range(10**9).map(lambda x: (tf.fill([256], work(20_000)(x)), [1.0]), "
    "num_parallel_calls=tf.data.AUTOTUNE).batch(32).prefetch(tf.data.AUTOTUNE)\n"
    "model.fit(data, steps_per_epoch=10**8, verbose=0)\n"
)
COMPARISONS = {
    "A/A, a serial map": (SERIAL, SERIAL),
    "A/A, a parallel map": (PARALLEL, PARALLEL),
    "A/A, Keras, parallel map, prefetch": (KERAS, KERAS),
    "a tenth less work": (SERIAL, SERIAL.replace("30_000", "27_000")),
    "a parallel map": (SERIAL, PARALLEL),
    "a prefetch": (SLEEPING, PREFETCHED),
    "a cache": (EPOCHS, CACHED),
}


@dataclass(frozen=True)
class Found:
    """The log ratios of the turns of one comparison, and what a pair costs."""

    name: str
    fresh: list[float]
    live: dict[str, list[list[float]]]
    """Per dropped beginning in seconds, and per pair of processes."""
    fresh_pair_s: float
    live_pair_s: float
    live_start_s: float


class Process:
    """A script that stops after each turn."""

    def __init__(self, script: Path, first_s: float, later_s: float) -> None:
        read, write = os.pipe()
        request = CaptureRequest(script.parent, script, to_end=True, is_profiled=False)
        self._child = subprocess.Popen(
            [sys.executable, str(CHILD), encode_message(session_request(request, write))],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(write,),
            start_new_session=True,
            env={**environment(), "TURNS": f"{first_s},{later_s}"},
        )
        os.close(write)
        self._pipe: IO[bytes] = os.fdopen(read, "rb")

    def turn(self) -> list[int]:
        """Wait for the end of the turn and return the durations of its steps, ns."""
        deadline = time.monotonic() + 300
        while time.monotonic() < deadline:
            ready, _, _ = select.select([self._pipe], [], [], 1.0)
            line = self._pipe.readline() if ready else b""
            if line.startswith(b"["):
                while self._state() != "T":
                    time.sleep(0.002)
                durations: list[int] = json.loads(line)
                return durations
            if self._child.poll() is not None:
                break
        raise RuntimeError("The script ended, or its turn did not.")

    def go_on(self) -> None:
        """Begin the next turn."""
        os.killpg(self._child.pid, signal.SIGCONT)

    def end(self) -> None:
        """Kill the process, stopped or not."""
        os.killpg(self._child.pid, signal.SIGKILL)
        self._child.wait()
        self._pipe.close()

    def _state(self) -> str:
        return Path(f"/proc/{self._child.pid}/stat").read_text().rpartition(")")[2].split()[0]


def mean_after(durations: Sequence[int], dropped_s: float) -> float:
    """The mean step in ns without those that began within so many seconds."""
    elapsed, kept = 0.0, []
    for duration in durations:
        if elapsed >= dropped_s * 1e9:
            kept.append(duration)
        elapsed += duration
    return fmean(kept)


def measure(name: str, before: Path, after: Path, pairs: int) -> Found:
    """Both kinds of pairs; which side begins alternates."""
    fresh, began = list[float](), time.monotonic()
    for number in range(pairs):
        means = {}
        for script in (before, after) if number % 2 == 0 else (after, before):
            process = Process(script, WARMUP_S + WINDOW_S, 1.0)
            try:
                means[script] = mean_after(process.turn(), WARMUP_S)
            finally:
                process.end()
        fresh.append(math.log(means[before] / means[after]))
    fresh_pair_s, began = (time.monotonic() - began) / pairs, time.monotonic()
    live: dict[str, list[list[float]]] = {str(dropped): [] for dropped in DROPPED_S}
    starts_s, turns_s = [], []
    for _ in range(STARTS):
        start_s, turn_s = measure_live(before, after, pairs, live)
        starts_s.append(start_s)
        turns_s.append(turn_s)
    return Found(name, fresh, live, fresh_pair_s, fmean(turns_s), fmean(starts_s))


def measure_live(before: Path, after: Path, pairs: int, live: dict[str, list[list[float]]]) -> tuple[float, float]:
    """One pair of live processes; adds its log ratios and returns the seconds of the start and of each pair of turns."""
    began = time.monotonic()
    for logs in live.values():
        logs.append([])
    sides: list[Process] = []
    try:
        for script in (before, after):  # one after the other: the second one starts beside a stopped one
            sides.append(Process(script, WARMUP_S, max(DROPPED_S) + WINDOW_S))
            sides[-1].turn()
        start_s, began = time.monotonic() - began, time.monotonic()
        for number in range(pairs):
            turns: dict[int, list[int]] = {}
            for side in (0, 1) if number % 2 == 0 else (1, 0):
                sides[side].go_on()
                turns[side] = sides[side].turn()
            for dropped in DROPPED_S:
                one, two = (mean_after(turns[side], dropped) for side in (0, 1))
                live[str(dropped)][-1].append(math.log(one / two))
    finally:
        for process in sides:
            process.end()
    return start_s, (time.monotonic() - began) / pairs


def _ratio(logs: Sequence[float]) -> str:
    half = 0.0 if len(logs) < 2 else _T95[min(len(logs), 10)] * stdev(logs) / math.sqrt(len(logs))
    middle = fmean(logs)
    low, high = math.exp(middle - half), math.exp(middle + half)
    return f"{math.exp(middle):.3f} ({low:.3f} to {high:.3f})"


_T95 = {2: 12.71, 3: 4.30, 4: 3.18, 5: 2.78, 6: 2.57, 7: 2.45, 8: 2.36, 9: 2.31, 10: 2.26}
"""Student's t, 97.5 %, by number of values."""


def table(found: Sequence[Found], sentence: str) -> list[str]:
    """The section of docs/benchmarks.md."""
    heads = " | ".join(f"live, {dropped:g} s dropped" for dropped in DROPPED_S)
    lines = [
        sentence,
        "",
        f"| comparison | fresh processes | {heads} | each pair of processes | a fresh pair | a live pair |",
        "|---|---|" + "---|" * len(DROPPED_S) + "---|---|---|",
    ]
    for each in found:
        cells = " | ".join(_ratio(list(itertools.chain(*each.live[str(dropped)]))) for dropped in DROPPED_S)
        apart = " and ".join(f"{math.exp(fmean(logs)):.3f}" for logs in each.live[str(DROPPED_S[1])])
        lines.append(
            f"| {each.name} | {_ratio(each.fresh)} | {cells} | {apart} | {each.fresh_pair_s:.1f} s | {each.live_pair_s:.1f} s |"
        )
    starts = median(each.live_start_s for each in found)
    lines += ["", f"Both live processes together start and warm up in {starts:.0f} s (median), once."]
    return lines


def main() -> int:
    """Run the comparisons."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--only", help="comparisons whose name contains this")
    parser.add_argument(
        "--results", type=Path, help="one line of JSON per comparison; those that are in it are not repeated"
    )
    parser.add_argument("--write-docs", action="store_true")
    options = parser.parse_args()
    found = []
    if options.results is not None and options.results.exists():
        found = [Found(**json.loads(line)) for line in options.results.read_text().splitlines()]
    done = {each.name for each in found}
    machine = machine_sentence()
    for name, texts in COMPARISONS.items():
        if name in done or (options.only or "") not in name:
            continue
        with tempfile.TemporaryDirectory(prefix="live-pairs-") as folder:
            scripts = []
            for side, text in zip(itertools.count(), texts):
                (Path(folder) / f"side{side}").mkdir()
                scripts.append(Path(folder) / f"side{side}" / "train.py")
                scripts[-1].write_text(text)
            found.append(measure(name, scripts[0], scripts[1], options.pairs))
        print("\n".join(table(found[-1:], "")[4:5]), flush=True)
        if options.results is not None:
            with options.results.open("a") as file:
                file.write(json.dumps(vars(found[-1])) + "\n")
    lines = table(found, f"{machine} {options.pairs} pairs each; mean and 95 % interval of the ratio of step times.")
    print("\n".join(lines))
    if options.write_docs:
        write_section("live-pairs", lines)
    return 0


if __name__ == "__main__":
    sys.exit(main())
