"""What the remedies of the rules about the training step gain on their own examples, on a CPU.

    python benchmarks/training_step.py [--only short_steps] [--turns 7] [--write-docs]

In: the examples of those rules that a CPU can show, and here what the remedy replaces in each.  Out: a table of rows per
second and of speedups with 95 % intervals.

Script and changed script run by turns in one process. A run is timed twice, for few steps and for many; the difference is the
time of the steps between, so that start, tracing and compilation of the first step do not count. Rows per second are compared,
since a larger batch or several steps per call change what a step is.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import io
import os
import statistics
import sys
import time
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from published import machine_sentence, write_section

from advisor.model.outcome import Interval
from advisor.verify.order_statistics import median_interval

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Case:
    """An example, its remedy, and how long to run it."""

    name: str
    remedy: tuple[str, str]
    """Text of the script, and what takes its place."""
    rows: tuple[int, int]
    """Rows of a batch, before and after."""
    few: int
    """Steps of the short run; a multiple of the steps of one call."""
    many: int
    what: str


CASES = (
    Case(
        "full_precision",
        ('set_global_policy("float32")', 'set_global_policy("mixed_bfloat16")'),
        (256, 256),
        2,
        14,
        "`mixed_bfloat16` policy",
    ),
    Case(
        "short_steps",
        ('model.compile("adam", "mse")', 'model.compile("adam", "mse", steps_per_execution=32)'),
        (32, 32),
        64,
        2048,
        "`steps_per_execution=32`",
    ),
    Case("small_batch", (".batch(8,", ".batch(64,"), (8, 64), 5, 1005, "batch of 64 instead of 8"),
    Case(
        "no_xla",
        ("tf.function(train_step)", "tf.function(train_step, jit_compile=True)"),
        (64, 64),
        20,
        1220,
        "`jit_compile=True`",
    ),
    Case("eager_step", ("def train_step(", "@tf.function\ndef train_step("), (32, 32), 20, 420, "`@tf.function`"),
    Case(
        "retracing",
        ("0.01 / (1 + step))  #", "tf.constant(0.01 / (1 + step)))  #"),
        (32, 32),
        5,
        45,
        "the rate as a tensor",
    ),
    Case("step_outliers", ("% 25 == 24", "% 250 == 249"), (64, 64), 250, 750, "a tenth of the checkpoints"),
)


def main() -> None:
    """Measure the cases and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=[case.name for case in CASES], action="append")
    parser.add_argument("--turns", type=int, default=7, help="at least 6 for an interval")
    parser.add_argument("--write-docs", action="store_true", help="put the table into docs/benchmarks.md")
    options = parser.parse_args()
    rows = []
    for case in CASES:
        if not options.only or case.name in options.only:
            rows.append(row(case, measure(case, options.turns)))
            print(rows[-1], flush=True)
    sentence = f"{machine_sentence()} {options.turns} turns."
    print(sentence)
    if options.write_docs:
        head = ["| rule | remedy | rows/s as written | rows/s with it | gain |", "|---|---|---|---|---|"]
        write_section("training-step", [*head, *rows, "", sentence])


def measure(case: Case, turns: int) -> list[tuple[float, float]]:
    """(rows per second as written, with the remedy) of each turn."""
    path = ROOT / "examples" / f"{case.name}.py"
    written = path.read_text(encoding="utf-8")
    assert written.count(case.remedy[0]) == 1, f"{case.remedy[0]!r} must stand in {path.name} once"
    texts = (written, written.replace(*case.remedy))
    for text in texts:
        run_seconds(path, text, case.few)  # imports, thread pools, caches of the processor
    found = []
    for turn in range(turns):
        order = (0, 1) if turn % 2 else (1, 0)
        rates = {i: rate(path, texts[i], case, case.rows[i]) for i in order}
        found.append((rates[0], rates[1]))
    return found


def rate(path: Path, text: str, case: Case, batch: int) -> float:
    """Rows per second between the `few`th and the `many`th step."""
    seconds = run_seconds(path, text, case.many) - run_seconds(path, text, case.few)
    return (case.many - case.few) * batch / seconds


def run_seconds(path: Path, text: str, steps: int) -> float:
    """Seconds that the script runs for so many steps."""
    import keras

    keras.utils.clear_session()
    keras.mixed_precision.set_global_policy("float32")
    gc.collect()
    arguments, sys.argv = sys.argv, [str(path), "--steps", str(steps)]
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            start = time.perf_counter()
            exec(compile(text, str(path), "exec"), {"__name__": "__main__", "__file__": str(path)})
            return time.perf_counter() - start
    finally:
        sys.argv = arguments


def speedup(rates: list[tuple[float, float]]) -> Interval | None:
    """How many times as many rows per second."""
    return median_interval([after / before for before, after in rates])


def row(case: Case, rates: list[tuple[float, float]]) -> str:
    """One line of the table."""
    before, after = (statistics.median(column) for column in zip(*rates, strict=True))
    ratio = speedup(rates)
    gain = "too few turns" if ratio is None else f"{ratio.value:.2f}x ({ratio.low:.2f} to {ratio.high:.2f})"
    return f"| {case.name.replace('_', '-')} | {case.what} | {before:,.0f} | {after:,.0f} | {gain} |"


if __name__ == "__main__":
    main()
