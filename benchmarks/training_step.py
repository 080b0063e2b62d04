"""Measures on a CPU the gain of the fixes advised by the rules about the training step, on the rules' examples.

    python benchmarks/training_step.py [--only short_steps] [--turns 7] [--write-docs]

In: the examples of those rules that a CPU can show, and the replacement that applies each fix.  Out: a table of rows per
second and of speedups with 95 % intervals.

The original and the changed script alternate in one process. The clock starts after some steps, so start-up, tracing and
compilation do not count. The metric is rows per second, because a larger batch or several steps per call change the meaning
of a step.
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
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from published import machine_sentence, write_section

from advisor.model.intervals import median_interval
from advisor.model.outcome import Interval

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Case:
    """An example, its fix, and how long to run it."""

    name: str
    change: tuple[str, str]
    """Text in the script, and its replacement."""
    rows: tuple[int, int]
    """Rows per batch, before and after."""
    skipped: int
    """Steps before the clock starts; a multiple of the steps per call."""
    steps: int
    """Number of all steps."""
    label: str
    """The change as text for the table."""


CASES = (
    Case(
        "full_precision",
        (
            "import tensorflow as tf\n",
            'import tensorflow as tf\n\nkeras.mixed_precision.set_global_policy("mixed_bfloat16")\n',
        ),
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
        1984,
        "`steps_per_execution=32`",
    ),
    Case("small_batch", (".batch(8,", ".batch(64,"), (8, 64), 20, 1020, "batch of 64 instead of 8"),
    Case(
        "no_xla",
        ("tf.function(train_step)", "tf.function(train_step, jit_compile=True)"),
        (32, 32),
        20,
        820,
        "`jit_compile=True`",
    ),
    Case("eager_step", ("def train_step(", "@tf.function\ndef train_step("), (32, 32), 20, 520, "`@tf.function`"),
    Case(
        "retracing",
        ("0.01 / (1 + step))  #", "tf.constant(0.01 / (1 + step)))  #"),
        (32, 32),
        5,
        65,
        "the rate as a tensor",
    ),
    Case("step_outliers", ("% 25 == 24", "% 250 == 249"), (64, 64), 250, 1000, "a tenth of the checkpoints"),
)
CLOCKED = (
    ("for batch in dataset:", "for batch in clock.over(dataset):"),
    ("enumerate(dataset)", "enumerate(clock.over(dataset))"),
    ("verbose=2)", "verbose=2, callbacks=[clock.callback()])"),
)
"""Text in the script, and its replacement that reports each step to the clock; every script contains one of these."""


class Clock:
    """Measures the time from the beginning of one step to the end of the last one."""

    def __init__(self, skipped: int) -> None:
        """Create a clock that starts after `skipped` steps."""
        self.skipped, self.start_s, self.end_s = skipped, 0.0, 0.0

    def over(self, dataset: Iterable[Any]) -> Iterator[Any]:
        """Yield the elements of a custom training loop."""
        for step, element in enumerate(dataset):
            if step == self.skipped:
                self.start_s = time.perf_counter()
            yield element
        self.end_s = time.perf_counter()

    def callback(self) -> Any:
        """Return a callback for `fit`. Keras passes the number of the first step of each call."""
        import keras

        def begin(step: int, logs: object = None) -> None:
            if step == self.skipped:
                self.start_s = time.perf_counter()

        def end(logs: object = None) -> None:
            self.end_s = time.perf_counter()

        return keras.callbacks.LambdaCallback(on_train_batch_begin=begin, on_train_end=end)


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
        head = ["| rule | fix | rows/s without | rows/s with | gain |", "|---|---|---|---|---|"]
        write_section("training-step", [*head, *rows, "", sentence])


def measure(case: Case, turns: int) -> list[tuple[float, float]]:
    """Return (rows per second of the original, rows per second with the fix) for each turn."""
    path = ROOT / "examples" / f"{case.name}.py"
    written = path.read_text(encoding="utf-8")
    assert written.count(case.change[0]) == 1, f"{case.change[0]!r} must occur once in {path.name}"
    texts = tuple(clocked(text) for text in (written, written.replace(*case.change)))
    pairs = []
    for turn in range(-1, turns):  # the first one warms up thread pools and caches
        order = (0, 1) if turn % 2 else (1, 0)
        rates = {i: rate(path, texts[i], case, case.rows[i]) for i in order}
        if turn >= 0:
            pairs.append((rates[0], rates[1]))
    return pairs


def clocked(text: str) -> str:
    """Return the script with the clock inserted."""
    (pair,) = [pair for pair in CLOCKED if text.count(pair[0]) == 1]
    return text.replace(*pair)


def rate(path: Path, text: str, case: Case, batch: int) -> float:
    """Return the rows per second of one run, without its first steps."""
    import keras

    keras.utils.clear_session()
    keras.mixed_precision.set_global_policy("float32")
    gc.collect()
    clock = Clock(case.skipped)
    arguments, sys.argv = sys.argv, [str(path), "--steps", str(case.steps)]
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(text, str(path), "exec"), {"__name__": "__main__", "__file__": str(path), "clock": clock})
    finally:
        sys.argv = arguments
    return (case.steps - case.skipped) * batch / (clock.end_s - clock.start_s)


def speedup(rates: list[tuple[float, float]]) -> Interval | None:
    """Return the ratio of rows per second with its 95 % interval; None if there are too few turns."""
    return median_interval([after / before for before, after in rates])


def row(case: Case, rates: list[tuple[float, float]]) -> str:
    """Return one line of the table."""
    before, after = (statistics.median(column) for column in zip(*rates, strict=True))
    ratio = speedup(rates)
    gain = "too few turns" if ratio is None else f"{ratio.value:.2f}x ({ratio.low:.2f} to {ratio.high:.2f})"
    return f"| {case.name.replace('_', '-')} | {case.label} | {before:,.0f} | {after:,.0f} | {gain} |"


if __name__ == "__main__":
    main()
