"""Known effects: how often `advisor prove` finds a script that is 1.1, 1.3 or 2 times as fast, and with how many pairs.

    python benchmarks/known_effects.py [--effect 1.3] [--pairs-of 30] [--at-a-time 2] [--results FILE] [--write-docs]

In: nothing.  Out: one line per proof, then a table.

The pipeline of a short script waits for a known time per element, and its training for a known time per step. Nothing overlaps
them, so a step takes the sum of both. The changed script waits less. Each proof is one `advisor prove --with` in a process of its
own; it has found the effect if its verdict is `equal and faster`. `--results` keeps what was measured, as JSON lines, so that an
interrupted run goes on; `--pairs-of` is the number of proofs of each effect. With `--at-a-time 2`, two proofs disturb each other:
the script hardly uses the cores, but each start imports TensorFlow.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import msgspec
from published import machine_sentence, note_run, write_section

EFFECTS = (1.1, 1.3, 2.0)
PROOFS = 30
FOUND = "equal and faster"
STEP_S, WAIT_S = 0.005, 0.025
"""Waits of the training and of the unchanged pipeline. A step of 30 ms makes other costs of a step, about 0.2 ms, negligible."""
SCRIPT = """import time
import numpy as np
import tensorflow as tf

def wait(value):
    time.sleep({wait_s:.6f})
    return value

def read(value):
    return tf.ensure_shape(tf.numpy_function(wait, [value], tf.int64), ())

options = tf.data.Options()
options.experimental_optimization.inject_prefetch = False  # it would overlap both waits
for epoch in range(10_000):
    for value in tf.data.Dataset.range(100_000).map(read).with_options(options):
        time.sleep({step_s})
"""


class Proof(msgspec.Struct, frozen=True):
    """The result of one `advisor prove`."""

    effect: float
    verdict: str
    pairs: int
    speedup: float | None
    low: float | None
    high: float | None
    ended_because: str
    """Why the test stopped; empty without an interval."""
    runs: int
    seconds: float
    at_a_time: int = 1
    """Proofs that ran at the same time, this one included."""

    @property
    def is_found(self) -> bool:
        """Whether the verdict is right."""
        return self.verdict == FOUND

    @property
    def holds_truth(self) -> bool:
        """Whether the interval contains the effect."""
        return self.low is not None and self.high is not None and self.low <= self.effect <= self.high


def main() -> None:
    """Measure what `--results` does not hold yet, print, and write the table on `--write-docs`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--effect", type=float, action="append", choices=EFFECTS, help="may be repeated")
    parser.add_argument("--pairs-of", type=int, default=PROOFS, metavar="N", help="proofs of each effect")
    parser.add_argument("--results", type=Path, metavar="FILE", help="JSON lines of the proofs so far")
    parser.add_argument("--budget", default="10min", metavar="T", help="of each proof")
    parser.add_argument("--at-a-time", type=int, default=1, metavar="N", help="proofs that run at the same time")
    parser.add_argument("--note", default="", metavar="TEXT", help="what else the machine did, for the table")
    parser.add_argument("--write-docs", action="store_true", help="put the table into docs/benchmarks.md")
    options = parser.parse_args()
    done: list[Proof] = []
    if options.results and options.results.exists():
        done = [msgspec.json.decode(line, type=Proof) for line in options.results.read_bytes().splitlines()]
    effects = wanted(options.effect or EFFECTS, options.pairs_of, done)
    for proof in proofs(effects, options.budget, options.at_a_time):
        done.append(proof)
        print(proof, flush=True)
        if options.results:
            note_run(options.results)
            with options.results.open("ab") as lines:
                lines.write(msgspec.json.encode(proof) + b"\n")
    section = [f"{machine_sentence(options.results)} {options.note}".strip(), "", *table(done)]
    print("\n".join(["", *section]))
    if options.write_docs:
        write_section("known-effects", section)


def wanted(effects: Sequence[float], proofs: int, done: Sequence[Proof]) -> list[float]:
    """The effects that are still to be proved, one after the other, so that a machine that changes affects all of them."""
    missing = {effect: proofs - sum(proof.effect == effect for proof in done) for effect in effects}
    return [effect for number in range(proofs) for effect in effects if number < missing[effect]]


def text_of(effect: float) -> str:
    """The script with a step that is so many times as short as that of `text_of(1)`."""
    return SCRIPT.format(wait_s=(STEP_S + WAIT_S) / effect - STEP_S, step_s=STEP_S)


def proofs(effects: Sequence[float], budget: str, at_a_time: int) -> Iterator[Proof]:
    """Yield the proofs as they end; the first that fails ends all."""
    pool = ThreadPoolExecutor(at_a_time)
    try:
        for proof in as_completed([pool.submit(prove, effect, budget, at_a_time) for effect in effects]):
            yield proof.result()
    finally:
        pool.shutdown(cancel_futures=True)


def prove(effect: float, budget: str, at_a_time: int) -> Proof:
    """Let `advisor prove` judge the faster script, while others may be judged, too."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="known-effects-") as place:
        folder = Path(place)
        (folder / "train.py").write_text(text_of(1.0), encoding="utf-8")
        (folder / "other.py").write_text(text_of(effect), encoding="utf-8")
        command = [sys.executable, "-m", "advisor", "prove", "--quiet", "--json", "-", "--budget", budget]
        done = subprocess.run(
            [*command, "--with", "other.py", "train.py"], cwd=folder, capture_output=True, text=True, check=False
        )
    if done.returncode:
        raise SystemExit(f"{effect}x: {done.stderr or done.stdout}")
    proof = proof_of(effect, json.loads(done.stdout), time.monotonic() - began)
    return msgspec.structs.replace(proof, at_a_time=at_a_time)


def proof_of(effect: float, result: dict[str, Any], seconds: float) -> Proof:
    """Read the JSON of `advisor prove`."""
    speedup = result["speedup"] or {}
    return Proof(
        effect,
        result["verdict"],
        result["turns"],
        speedup.get("speedup"),
        speedup.get("low"),
        speedup.get("high"),
        (result["test"] or {}).get("ended_because", ""),
        result["runs"],
        seconds,
    )


def table(done: Sequence[Proof]) -> list[str]:
    """The lines of Markdown."""
    lines = [
        "| effect | found | other verdicts | interval holds the effect | measured, median | pairs of runs | mean pairs | "
        "starts | seconds |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for effect in sorted({proof.effect for proof in done}):
        proofs = [proof for proof in done if proof.effect == effect]
        found = sum(proof.is_found for proof in proofs)
        others = Counter(proof.verdict for proof in proofs if not proof.is_found)
        pairs = Counter(proof.pairs for proof in proofs)
        speedups = [proof.speedup for proof in proofs if proof.speedup is not None]
        cells = (
            f"{effect:g}x",
            f"{found} of {len(proofs)}",
            ", ".join(f"{count} `{verdict}`" for verdict, count in sorted(others.items())) or "-",
            f"{sum(proof.holds_truth for proof in proofs)} of {len(proofs)}",
            f"{statistics.median(speedups):.3f}x" if speedups else "-",
            ", ".join(f"{count} with {number}" for number, count in sorted(pairs.items())),
            f"{statistics.fmean(proof.pairs for proof in proofs):.1f}",
            f"{statistics.fmean(proof.runs for proof in proofs):.0f}",
            f"{statistics.median(proof.seconds for proof in proofs):.0f}",
        )
        lines.append(f"| {' | '.join(cells)} |")
    beside = Counter(proof.at_a_time for proof in done if proof.at_a_time > 1)
    for at_a_time, count in sorted(beside.items()):
        lines += [
            "",
            f"{count} of these {len(done)} proofs ran {at_a_time} at a time, so that they disturbed each other.",
        ]
    return lines


if __name__ == "__main__":
    main()
