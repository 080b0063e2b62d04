"""A/A: compares short scripts with identical copies and counts the verdicts `faster` and `slower`, which are all wrong.

    python benchmarks/same_script.py [--pairs 40] [--write-docs]

In: nothing.  Out: one line per pair, then the counts; exit code 1 if more than one in forty was called faster or slower.

Each pair is one `advisor compare SCRIPT COPY` in its own process: six turns of fresh runs of each script, alternating.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from published import machine_sentence, write_section

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


def main() -> int:
    """Compare, count, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=40, help="number of comparisons (default: 40)")
    parser.add_argument("--beside", default="nothing else running", help="what else ran, for the table")
    parser.add_argument("--write-docs", action="store_true", help="put the counts into docs/benchmarks.md")
    options = parser.parse_args()
    counts: dict[str, Counter[str]] = {name: Counter() for name in SCRIPTS}
    widths: dict[str, list[float]] = {name: [] for name in SCRIPTS}
    names = list(SCRIPTS)
    for number in range(options.pairs):
        name = names[number % len(names)]
        start = time.monotonic()
        report = compared(HEAD + SCRIPTS[name])
        interval = report["step_time"] or {}
        counts[name][report["verdict"]] += 1
        if interval.get("low"):
            widths[name].append(interval["high"] / interval["low"])
        print(
            f"{number + 1} {name}: {report['verdict']}, {interval.get('speedup')} ({interval.get('low')} to "
            f"{interval.get('high')}), {time.monotonic() - start:.0f} s",
            flush=True,
        )
    wrong = sum(count["faster"] + count["slower"] for count in counts.values())
    lines = table(counts, widths, wrong, options.pairs, options.beside)
    print("\n".join(["", *lines]))
    if options.write_docs:
        write_section("same-script", lines)
    return 1 if wrong > options.pairs / 40 else 0


def compared(text: str) -> dict[str, object] | dict[str, dict[str, float]]:
    """Return the report of one comparison of a script with its copy."""
    with tempfile.TemporaryDirectory(prefix="same-script-") as place:
        folder = Path(place)
        for name in ("train.py", "copy.py"):
            (folder / name).write_text(text, encoding="utf-8")
        command = [sys.executable, "-m", "advisor", "compare", "--quiet", "--json", "report.json", "--out", "run"]
        done = subprocess.run(
            [*command, *WINDOW, "train.py", "copy.py"], cwd=folder, capture_output=True, text=True, check=False
        )
        if not (folder / "report.json").exists():
            raise SystemExit(done.stderr or done.stdout)
        return json.loads((folder / "report.json").read_text("utf-8"))


def table(
    counts: dict[str, Counter[str]], widths: dict[str, list[float]], wrong: int, pairs: int, beside: str
) -> list[str]:
    """Return the section of docs/benchmarks.md."""
    lines = [
        f"{machine_sentence()} {pairs} comparisons, {beside}.",
        "",
        "| script | same | faster | slower | other | width of the interval (median of high / low) |",
        "|---|---|---|---|---|---|",
    ]
    for name, count in counts.items():
        others = sum(count.values()) - count["same"] - count["faster"] - count["slower"]
        middle = sorted(widths[name])[len(widths[name]) // 2] if widths[name] else float("nan")
        lines.append(f"| {name} | {count['same']} | {count['faster']} | {count['slower']} | {others} | {middle:.2f} |")
    return [*lines, "", f"Called `faster` or `slower`, which is wrong: {wrong} of {pairs}."]


if __name__ == "__main__":
    sys.exit(main())
