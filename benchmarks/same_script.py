"""A/A: compares short scripts with identical copies and counts the verdicts `faster` and `slower`, which are all wrong.

    python benchmarks/same_script.py [--pairs 40] [--results FILE] [--write-docs]

In: nothing.  Out: one line per pair, then the counts; exit code 1 if more than one in forty was called faster or slower.

Each pair is one `advisor compare SCRIPT COPY` in its own process: three to eight turns of fresh runs of each script, alternating.
"""

from __future__ import annotations

import argparse
import itertools
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import msgspec
from published import machine_sentence, note_run, write_section

WINDOW = ("--steps", "60", "--warmup", "10", "--seconds", "2")
HEAD = """import time
import numpy as np
import tensorflow as tf
"""
SCRIPTS = {
    "CPU-bound map": """
def slow(x):
    for _ in range(3):
        x = tf.linalg.matmul(x, x) / tf.reduce_max(x)
    return tf.reduce_mean(x)
data = tf.data.Dataset.from_tensor_slices(tf.ones([64, 90, 90])).repeat().map(slow).batch(8)
for batch in data:
    time.sleep(0.002)
""",
    "parallel map and prefetch": """
def slow(x):
    return tf.reduce_sum(tf.random.normal([20_000]) * tf.cast(x, tf.float32))
data = tf.data.Dataset.range(10**9).map(slow, num_parallel_calls=tf.data.AUTOTUNE).batch(16).prefetch(tf.data.AUTOTUNE)
for batch in data:
    time.sleep(0.001)
""",
    "Python generator": """
def rows():
    while True:
        yield np.sort(np.random.rand(4_000)).astype(np.float32)
data = tf.data.Dataset.from_generator(rows, output_signature=tf.TensorSpec([4_000])).batch(8)
for batch in data:
    tf.reduce_sum(batch)
""",
    "Keras fit": """
model = tf.keras.Sequential([tf.keras.layers.Dense(64, activation="relu"), tf.keras.layers.Dense(1)])
model.compile("sgd", "mse")
data = tf.data.Dataset.range(10**9).map(lambda x: (tf.fill([32], tf.cast(x % 7, tf.float32)), [1.0])).batch(32)
model.fit(data, steps_per_epoch=200, epochs=1000, verbose=0)
""",
}


@dataclass(frozen=True)
class Comparison:
    """One script against its copy: speedup of the step time with its 95 % interval, and the seconds it took."""

    name: str
    beside: str
    verdict: str
    speedup: float | None
    low: float | None
    high: float | None
    seconds: float

    @property
    def is_wrong(self) -> bool:
        """Whether identical scripts were called different."""
        return self.verdict in ("faster", "slower")


def main() -> int:
    """Compare, count, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=40, help="number of comparisons, those in --results included")
    parser.add_argument("--beside", default="nothing else", help="what else runs meanwhile, for the table")
    parser.add_argument(
        "--results", type=Path, help="JSON lines of the comparisons so far, to which this run adds its own"
    )
    parser.add_argument("--write-docs", action="store_true", help="put the counts into docs/benchmarks.md")
    options = parser.parse_args()
    done: list[Comparison] = []
    if options.results and options.results.exists():
        done = [msgspec.json.decode(line, type=Comparison) for line in options.results.read_bytes().splitlines()]
    names = list(SCRIPTS)
    while len(done) < options.pairs:
        comparison = compared(names[len(done) % len(names)], options.beside)
        done.append(comparison)
        print(len(done), comparison, flush=True)
        if options.results:
            note_run(options.results)
            with options.results.open("ab") as lines:
                lines.write(msgspec.json.encode(comparison) + b"\n")
    section = table(done, machine_sentence(options.results))
    print("\n".join(["", *section]))
    if options.write_docs:
        write_section("same-script", section)
    return 1 if sum(each.is_wrong for each in done) > len(done) / 40 else 0


def compared(name: str, beside: str) -> Comparison:
    """Return the result of one comparison of a script with its copy."""
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="same-script-") as place:
        folder = Path(place)
        for file in ("train.py", "train_copy.py"):
            (folder / file).write_text(HEAD + SCRIPTS[name], encoding="utf-8")
        command = [sys.executable, "-m", "advisor", "compare", "--quiet", "--json", "report.json"]
        done = subprocess.run(
            [*command, *WINDOW, "train.py", "train_copy.py"], cwd=folder, capture_output=True, text=True, check=False
        )
        if not (folder / "report.json").exists():
            raise SystemExit(done.stderr or done.stdout)
        report = json.loads((folder / "report.json").read_text("utf-8"))
    interval = report["step_time"] or {}
    return Comparison(
        name,
        beside,
        report["verdict"],
        interval.get("speedup"),
        interval.get("low"),
        interval.get("high"),
        time.monotonic() - start,
    )


def table(done: list[Comparison], machine: str) -> list[str]:
    """Return the section of docs/benchmarks.md."""
    lines = [
        f"{machine} {len(done)} comparisons.",
        "",
        "| script | beside | same | faster | slower | other | high / low of the interval, median |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, beside in itertools.product(SCRIPTS, sorted({each.beside for each in done})):
        these = [each for each in done if (each.name, each.beside) == (name, beside)]
        if not these:
            continue
        count = Counter(each.verdict for each in these)
        others = len(these) - count["same"] - count["faster"] - count["slower"]
        widths = [each.high / each.low for each in these if each.low and each.high]
        width = f"{median(widths):.2f}" if widths else "none"
        lines.append(
            f"| {name} | {beside} | {count['same']} | {count['faster']} | {count['slower']} | {others} | {width} |"
        )
    wrong = sum(each.is_wrong for each in done)
    return [*lines, "", f"Called `faster` or `slower`, which is wrong: {wrong} of {len(done)}."]


if __name__ == "__main__":
    sys.exit(main())
