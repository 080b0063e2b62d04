"""Measures how two threads share the work of one, and what handing elements between threads costs.

The results are the source of `EFFICIENCY` and `HANDOFF_OVERHEAD_NS` in `advisor.host.calibration.prediction`.
`advisor.capture.cost_measurement` measures the hand-over in the same way, in a few tenths of a second.

    python benchmarks/hand_over.py [--seconds 3] [--turns 3]

In: maps of different cost, from an addition to decoding and resizing a photograph.  Out: for each map the time per element on one
thread, on two, and with AUTOTUNE, the CPU time, and the efficiency: the share of two threads' time spent working.
Rewrites that would hide the difference (automatic parallel maps, fusion of map and batch) are off. Run it on an idle machine.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))

import sample_data
import tensorflow as tf

from advisor.capture.cost_measurement import matmuls

TEXT = "Lorem ipsum, dolor sit amet; consectetur (adipiscing) elit, sed do " * 3
BATCH = 8
"""Small enough that a batch of photographs takes only a few milliseconds."""


def add(x: Any) -> Any:
    """Measures the cost of calling a function."""
    return x + 1


def words(x: Any) -> Any:
    """Split a line of text into lower-case words."""
    text = tf.strings.lower(tf.strings.as_string(x) + TEXT)
    return tf.size(tf.strings.split(tf.strings.regex_replace(text, "[^a-z0-9_]+", " ")))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--turns", type=int, default=3)
    options = parser.parse_args()
    files = sorted(str(file) for file in sample_data.image_folder(480).glob("*/*.jpg"))

    def photo(x: Any) -> Any:
        image = tf.io.decode_jpeg(tf.io.read_file(tf.gather(files, x % len(files))), channels=3)
        return tf.image.resize(image, (64, 64), antialias=True) / 255.0

    print("| map | one thread | two | AUTOTUNE | CPU on one | on two | efficiency of two |")
    print("|---|---|---|---|---|---|---|")
    cases = {"add": add, "words": words, **{f"{count} matmuls": matmuls(tf, count) for count in (2, 8, 40)}}
    for name, function in {**cases, "photo": photo}.items():
        seen: dict[int | None, list[tuple[float, float]]] = {None: [], 2: [], tf.data.AUTOTUNE: []}
        for _ in range(options.turns):
            for calls, found in seen.items():
                found.append(measure(function, calls, options.seconds))
        one, two, auto = (statistics.median(wall for wall, _ in found) for found in seen.values())
        cpu_one, cpu_two, _ = (statistics.median(cpu for _, cpu in found) for found in seen.values())
        times = " | ".join(f"{us:.1f} us" for us in (one, two, auto, cpu_one, cpu_two))
        print(f"| {name} | {times} | {one / two / 2:.2f} |", flush=True)


def measure(function: Callable[[Any], Any], calls: int | None, seconds: float) -> tuple[float, float]:
    """Time and CPU time per element, in microseconds."""
    plain = tf.data.Options()
    plain.experimental_optimization.map_and_batch_fusion = False
    plain.experimental_optimization.map_parallelization = False
    dataset = tf.data.Dataset.range(1 << 40).map(function, num_parallel_calls=calls).batch(BATCH).with_options(plain)
    iterator = iter(dataset)
    end = time.perf_counter() + seconds / 2  # AUTOTUNE settles meanwhile
    while time.perf_counter() < end:
        next(iterator)
    start, cpu, count = time.perf_counter(), cpu_s(), 0
    while time.perf_counter() - start < seconds:
        next(iterator)
        count += BATCH
    return (time.perf_counter() - start) / count * 1e6, (cpu_s() - cpu) / count * 1e6


def cpu_s() -> float:
    """CPU time of this process so far, in seconds."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    main()
