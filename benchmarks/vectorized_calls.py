"""What a vectorised function costs in comparison with one written for batches: per call, and per iterator.

    python benchmarks/vectorized_calls.py [--turns 9] [--write-docs]

In: three functions of one element, and the same functions as an expert writes them for a batch.  Out: a table: how many ops the
function of the `map` has, how long a call with a batch takes, and how long it takes to create an iterator of the dataset, which
a training does in every epoch. The last row is an empty function. All datasets take turns in one process; medians.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tensorflow as tf
from published import machine_sentence, write_section

sys.path.insert(0, str(Path(__file__).parent / "by_hand"))
import workload

CALLS, WARM_UP = 2_000, 100
DOCS = Path(__file__).parents[1] / "docs" / "vectorization.md"
COUNT = len(workload.WORDS)


def draws(positive: tf.Tensor) -> tf.Tensor:
    """Draws numbers and puts them behind that of the element (`negative_samples`)."""
    negatives = tf.random.uniform([8], maxval=COUNT, dtype=tf.int64)
    return tf.concat([positive[None], negatives], 0)


def draws_by_hand(positives: tf.Tensor) -> tf.Tensor:
    """The same of a batch."""
    negatives = tf.random.uniform([tf.size(positives), 8], maxval=COUNT, dtype=tf.int64)
    return tf.concat([positives[:, None], negatives], 1)


def jitter(point: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Scales a vector and adds noise (`sensor_noise`)."""
    scaled = (point - tf.reduce_mean(point)) / (tf.math.reduce_std(point) + 1e-6)
    noisy = scaled + tf.random.normal([32], stddev=0.05)
    return tf.roll(noisy, shift=3, axis=0), tf.reduce_max(tf.abs(noisy))


def jitter_by_hand(points: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """The same of a batch."""
    spread = tf.math.reduce_std(points, axis=1, keepdims=True) + 1e-6
    noisy = (points - tf.reduce_mean(points, axis=1, keepdims=True)) / spread
    noisy += tf.random.normal(tf.shape(points), stddev=0.05)
    return tf.roll(noisy, shift=3, axis=1), tf.reduce_max(tf.abs(noisy), axis=1)


def pair(row: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Takes the last number of a row off and adds noise to the others (`windows`)."""
    return row[:-1] + tf.random.normal([48], stddev=0.01), row[-1]


def pair_by_hand(rows: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """The same of a batch."""
    return rows[:, :-1] + tf.random.normal([tf.shape(rows)[0], 48], stddev=0.01), rows[:, -1]


CASES = (
    ("draws", draws, draws_by_hand, tf.range(512, dtype=tf.int64)),
    ("jitter", jitter, jitter_by_hand, tf.random.stateless_normal([256, 32], [3, 4])),
    ("pair", pair, pair_by_hand, tf.random.stateless_normal([64, 49], [5, 6])),
)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=9, help="how often each dataset is measured (default: 9)")
    parser.add_argument("--write-docs", action="store_true", help="put the table into docs/vectorization.md")
    options = parser.parse_args()
    datasets: dict[tuple[str, str], Any] = {}
    for name, of_one, by_hand, batch in CASES:
        datasets[name, "by hand"] = calls_of(by_hand, batch)
        datasets[name, "vectorised"] = calls_of(vectorised(of_one), batch)
    datasets["nothing", ""] = calls_of(lambda batch: batch, CASES[0][3])
    starts: dict[tuple[str, str], list[float]] = {key: [] for key in datasets}
    calls: dict[tuple[str, str], list[float]] = {key: [] for key in datasets}
    for _ in range(options.turns):
        for key, data in datasets.items():
            for _ in range(5):
                begin = time.perf_counter()
                iterator = iter(data)
                starts[key].append(time.perf_counter() - begin)
            for _ in range(WARM_UP):
                next(iterator)
            begin = time.perf_counter()
            for _ in range(CALLS):
                next(iterator)
            calls[key].append((time.perf_counter() - begin) / CALLS)
    lines = [machine_sentence() + " Nothing else was running.", "", "| function | written | ops | call | iterator |"]
    lines += ["|---|---|---|---|---|"]
    for key, data in datasets.items():
        ops = len(data._map_func.function.graph.get_operations())
        call, start = statistics.median(calls[key]) * 1e6, statistics.median(starts[key]) * 1e3
        lines.append(f"| {key[0]} | {key[1]} | {ops} | {call:.0f} us | {start:.1f} ms |")
    print("\n".join(lines))
    if options.write_docs:
        write_section("vectorized-calls", lines, DOCS)


def vectorised(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return the function as `advisor fix` writes it for batches."""
    return lambda rows: tf.vectorized_map(function, rows, fallback_to_while_loop=False)


def calls_of(function: Callable[[Any], Any], batch: tf.Tensor) -> Any:
    """Return a dataset that applies a function to the same batch again and again, whose size it does not know."""
    shape = [None, *batch.shape[1:]]
    data = tf.data.Dataset.from_tensors(batch).repeat(CALLS + WARM_UP + 1)
    return data.map(lambda batch: function(tf.raw_ops.PlaceholderWithDefault(input=batch, shape=shape)))


if __name__ == "__main__":
    main()
