"""Measures what the sampler of Python functions costs the pipelines that it samples.

    python benchmarks/sampler_overhead.py [--only "loop, 4 threads"] [--pairs 20] [--seconds 2]

In: pipelines that spend their time in Python functions, serial and with contending threads.  Out: for each one the median over
pairs of (time per element with the sampler / without it), with its 95 % interval, and the CPU time of the sampler.

Stretches with and without the sampler alternate in one process and on one iterator, so that nothing else differs.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

from advisor.capture.instrument.call_sites import SiteFinder
from advisor.capture.window.python_sampler import PythonSampler
from advisor.host.machine import describe_host

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import tensorflow as tf

VALUES = np.random.default_rng(0).random(50_000)


def loop(number: Any) -> np.float32:
    """Compute in Python, with the interpreter lock held."""
    total = float(number)
    for value in range(20_000):
        total += value * 0.5
    return np.float32(total)


def sort(number: Any) -> np.float32:
    """Compute in NumPy, which releases the lock."""
    return np.float32(np.sort(VALUES * float(number))[0])


def short(number: Any) -> np.float32:
    """Do nearly nothing, so that the calls themselves are the cost."""
    return np.float32(number)


def numbers() -> Iterator[np.float32]:
    """Yield small elements."""
    for number in itertools.count():
        yield np.float32(number % 7)


def mapped(function: Callable[[Any], np.float32], parallel: int | None) -> tf.data.Dataset:
    """Return a dataset that calls a Python function for each element."""
    return tf.data.Dataset.range(10**12).map(
        lambda number: tf.numpy_function(function, [number], tf.float32), num_parallel_calls=parallel
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", metavar="NAME", help="a pipeline; may be repeated")
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=2.0, help="length of each stretch")
    options = parser.parse_args()
    pipelines = {
        "loop": mapped(loop, None),
        "loop, 4 threads": mapped(loop, 4),
        "sort": mapped(sort, None),
        "sort, 4 threads": mapped(sort, 4),
        "short": mapped(short, None),
        "short, 4 threads": mapped(short, 4),
        "generator": tf.data.Dataset.from_generator(numbers, output_signature=tf.TensorSpec((), tf.float32)),
    }
    for name, dataset in pipelines.items():
        if options.only and name not in options.only:
            continue
        elements = iter(dataset.batch(8))
        stretch(elements, 1.0)
        ratios, cpu, ticks = [], [], 0
        for _ in range(options.pairs):
            order = [True, False]
            random.shuffle(order)
            times = {}
            for is_sampled in order:
                sampler = PythonSampler(SiteFinder()) if is_sampled else None
                if sampler is not None:
                    sampler.start(may_switch_faster=True)
                times[is_sampled] = stretch(elements, options.seconds)
                if sampler is not None:
                    ticks += sampler.stop().ticks
                    cpu.append(sampler.cpu_ns / 1e9 / options.seconds)
            ratios.append(times[True] / times[False])
        low, high = interval(ratios)
        print(
            f"{name:18} {statistics.median(ratios):.4f} ({low:.4f} to {high:.4f})   "
            f"sampler {statistics.mean(cpu):.2%} of a core, {ticks / options.pairs / options.seconds:.0f} looks/s",
            flush=True,
        )
    host = describe_host()
    print(f"{host.cores:g} cores, {host.cpu_model}, {options.pairs} pairs of {options.seconds:g} s")


def stretch(elements: Iterator[Any], seconds: float) -> float:
    """Take elements for some seconds and return the time per element, in seconds."""
    start = now = time.perf_counter()
    count = 0
    while now - start < seconds:
        next(elements)
        count += 1
        now = time.perf_counter()
    return (now - start) / count


def interval(values: list[float]) -> tuple[float, float]:
    """Return the 95 % interval of the median, by bootstrap."""
    medians = sorted(statistics.median(random.choices(values, k=len(values))) for _ in range(2000))
    return medians[50], medians[-51]


if __name__ == "__main__":
    main()
