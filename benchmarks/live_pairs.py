"""Do two live processes that take turns measure the same as fresh processes, and in how much less time?

    python benchmarks/live_pairs.py [--repeats 2] [--only NAME] [--results FILE] [--write-docs]

In: nothing.  Out: per comparison of known kind (A/A, or one change) the ratio of step times from fresh processes and from live
ones, with its 95 % interval, the seconds that it took, and why fresh processes were measured instead, if they were.

Both are measured as `advisor fix` would (`advisor.prove.measure.end_to_end`, `advisor.prove.measure.live_pairs`), the
sequential test included; which of them comes first alternates. Run it alone: it takes about an hour on two cores.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev

from published import machine_sentence, note_run, write_section

from advisor.capture.request import CaptureRequest
from advisor.model.intervals import t_quantile
from advisor.model.units import format_range
from advisor.prove.measure.end_to_end import measure_end_to_end
from advisor.prove.measure.live_pairs import measure_live_pairs

WINDOW_S = 4.0
WAYS = ("fresh", "live")
HEAD = """import time
import tensorflow as tf
weights = tf.random.normal([500, 500])
def train(n):
    x = weights
    for _ in range(n):
        x = tf.matmul(x, weights)
    return tf.reduce_sum(x).numpy()
def work(n):
    return lambda x: tf.reduce_sum(tf.random.normal([n]) * tf.cast(x, tf.float32))
"""
SERIAL = HEAD + ("data = tf.data.Dataset.range(10**9).map(work(30_000)).batch(16)\nfor batch in data:\n    train(1)\n")
SHORT = SERIAL.replace("train(1)", "time.sleep(0.001)")
PARALLEL = SHORT.replace("work(30_000))", "work(30_000), num_parallel_calls=tf.data.AUTOTUNE)")
SLEEPING = HEAD + (
    "options = tf.data.Options()\noptions.experimental_optimization.inject_prefetch = False\n"
    "data = tf.data.Dataset.range(10**9).map(work(600_000)).with_options(options)\n"
    "for value in data:\n    time.sleep(0.008)\n"
)
PREFETCHED = SLEEPING.replace("with_options", "prefetch(2).with_options")
EPOCHS = HEAD + (
    "data = tf.data.Dataset.range(960).map(work(30_000)).batch(16)\n"
    "for epoch in range(10**6):\n    for batch in data:\n        train(2)\n"
)
CACHED = EPOCHS.replace(".batch(16)", ".batch(16).cache()")
FLOAT32 = HEAD.replace("[500, 500]", "[1000, 1000]") + (
    "data = tf.data.Dataset.range(10**9).map(work(10_000)).batch(4).prefetch(2)\nfor batch in data:\n    train(2)\n"
)
BFLOAT16 = FLOAT32.replace("def train", "weights = tf.cast(weights, tf.bfloat16)\ndef train")
KERAS = HEAD + (
    "model = tf.keras.Sequential([tf.keras.layers.Dense(256, activation='relu'), tf.keras.layers.Dense(1)])\n"
    "model.compile('sgd', 'mse')\n"
    "data = tf.data.Dataset.range(10**9).map(lambda x: (tf.fill([256], work(20_000)(x)), [1.0]), "
    "num_parallel_calls=tf.data.AUTOTUNE).batch(32).prefetch(tf.data.AUTOTUNE)\n"
    "model.fit(data, steps_per_epoch=10**8, verbose=0)\n"
)
COMPARISONS = {
    "A/A, a serial map": (SERIAL, SERIAL, None),
    "A/A, Keras, a parallel map and a prefetch": (KERAS, KERAS, None),
    "a parallel map": (SHORT, PARALLEL, None),
    "a prefetch": (SLEEPING, PREFETCHED, None),
    "a cache": (EPOCHS, CACHED, 80),
    "bfloat16": (FLOAT32, BFLOAT16, None),
}
"""Name -> (unchanged text, changed text, steps of the warm-up; None: adaptive). An epoch of the cache has 60 steps."""


@dataclass(frozen=True)
class Measured:
    """One comparison, measured in one way."""

    name: str
    repeat: int
    way: str
    """One of `WAYS`."""
    ratios: list[float]
    """Step time before / after of each pair."""
    seconds: float
    starts: int
    verdict: str
    how: str
    """As in `EndToEnd`; empty for fresh processes."""


def measure(name: str, repeat: int, way: str) -> Measured:
    """Measure one comparison in one way."""
    before, after, warmup = COMPARISONS[name]
    with tempfile.TemporaryDirectory(prefix="live-pairs-") as folder:
        sides = []
        for side, text in (("before", before), ("after", after)):
            script = Path(folder) / side / "train.py"
            script.parent.mkdir()
            script.write_text(text)
            sides.append(CaptureRequest(Path("unused"), script, seconds=WINDOW_S, warmup=warmup))
        began = time.monotonic()
        compare = measure_live_pairs if way == "live" else measure_end_to_end
        whole = compare(sides[0], sides[1], lambda progress: None)
        seconds = time.monotonic() - began
    ratios = [one.step_ns / two.step_ns for one, two in zip(whole.before, whole.after, strict=True)]
    return Measured(name, repeat, way, ratios, seconds, whole.runs, whole.verdict, whole.how)


def todo(repeats: int, only: str, done: Sequence[Measured]) -> Iterator[tuple[str, int, str]]:
    """Yield what is still to be measured: comparison, number of the repetition, way."""
    known = {(measured.name, measured.repeat, measured.way) for measured in done}
    for repeat in range(repeats):
        for name in COMPARISONS:
            for way in WAYS if repeat % 2 == 0 else WAYS[::-1]:
                if only in name and (name, repeat, way) not in known:
                    yield name, repeat, way


def interval(ratios: Sequence[float]) -> str:
    """Return the geometric mean of the ratios with its 95 % interval."""
    logs = [math.log(ratio) for ratio in ratios]
    middle = fmean(logs)
    half = t_quantile(len(logs) - 1) * stdev(logs) / math.sqrt(len(logs)) if len(logs) > 1 else math.inf
    return format_range(math.exp(middle), math.exp(middle - half), math.exp(middle + half))


def table(measured: Sequence[Measured], sentence: str) -> list[str]:
    """Return the section of docs/benchmarks.md."""
    lines = [
        sentence,
        "",
        "| comparison | processes | ratio with 95 % interval | verdict | pairs | starts | time |",
        "|---|---|---|---|---|---|---|",
    ]
    order = list(COMPARISONS)
    for row in sorted(measured, key=lambda row: (order.index(row.name), row.repeat, WAYS.index(row.way))):
        ratio = interval(row.ratios) if row.ratios else "none"
        way = "fresh after all" if row.how.startswith("Fresh") else row.way
        lines.append(
            f"| {row.name} | {way} | {ratio} | {row.verdict} | {len(row.ratios)} | {row.starts} | {row.seconds:.0f} s |"
        )
    totals = {way: sum(row.seconds for row in measured if row.way == way) for way in WAYS}
    lines += ["", f"In total {totals['fresh']:.0f} s with fresh processes and {totals['live']:.0f} s with live ones."]
    lines += [f"\n{row.name}: {row.how}" for row in measured if row.how.startswith("Fresh")]
    return lines


def main() -> int:
    """Run the comparisons."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--only", default="", help="comparisons whose name contains this")
    parser.add_argument("--results", type=Path, help="one line of JSON per measurement; those in it are not repeated")
    parser.add_argument("--write-docs", action="store_true")
    options = parser.parse_args()
    measured = []
    if options.results is not None and options.results.exists():
        measured = [Measured(**json.loads(line)) for line in options.results.read_text().splitlines()]
    for name, repeat, way in todo(options.repeats, options.only, measured):
        measured.append(measure(name, repeat, way))
        print(table(measured[-1:], "")[4], flush=True)
        if options.results is not None:
            note_run(options.results)
            with options.results.open("a") as file:
                file.write(json.dumps(vars(measured[-1])) + "\n")
    lines = table(measured, machine_sentence(options.results))
    print("\n".join(lines))
    if options.write_docs:
        write_section("live-pairs", lines)
    return 0


if __name__ == "__main__":
    sys.exit(main())
