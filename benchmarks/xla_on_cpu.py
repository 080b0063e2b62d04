"""Measures what compiling a training step with XLA gains on a CPU, by the length of its ops.

    python benchmarks/xla_on_cpu.py [--pairs 9] [--write-docs]

In: steps made of element-wise ops, of optimizer updates, of small dense layers and of recurrent cells, with tensors of several
sizes.  Out: for each one the ops of a step, the time per op without XLA, and the speedup by `jit_compile=True`: the median over
pairs of (time without / time with), with its 95 % interval. With `--write-docs` the table is put into docs/benchmarks.md.

Turns without and with XLA alternate in one process, after both functions have been traced and compiled. Nothing else may run on
the machine meanwhile.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from published import machine_sentence, write_section

from advisor.model.intervals import median_interval
from advisor.model.units import format_ns, format_range

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import tensorflow as tf

TURN_S = 0.3
"""Length of a turn. Long in comparison with the time slices of the scheduler."""
SIZES = (64, 512, 4_096, 32_768)
"""Numbers of a tensor of the step, without weights."""

Step = Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Row:
    """What XLA gains for one step."""

    name: str
    size: int
    ops: int
    """Ops of the graph without those that hold constants and variables."""
    op_ns: int
    speedups: tuple[float, ...]


def element_wise(size: int) -> Step:
    """Forward and backward pass through 20 layers of element-wise ops, each with weights of its own."""
    values = tf.random.normal((size // 8, 8))
    scales = [tf.Variable(tf.ones((8,))) for _ in range(20)]

    def step() -> tf.Tensor:
        with tf.GradientTape() as tape:
            hidden = values
            for scale in scales:
                hidden = tf.tanh(hidden * scale) + 0.1 * tf.sigmoid(hidden)
            loss = tf.reduce_mean(tf.square(hidden - values))
        for scale, gradient in zip(scales, tape.gradient(loss, scales), strict=True):
            scale.assign_sub(0.001 * gradient)
        return loss

    return step


def optimizer(size: int) -> Step:
    """Adam's update of 20 variables."""
    variables = [tf.Variable(tf.random.normal((size,))) for _ in range(20)]
    moments = [(tf.Variable(tf.zeros((size,))), tf.Variable(tf.zeros((size,)))) for _ in variables]

    def step() -> tf.Tensor:
        for variable, (first, second) in zip(variables, moments, strict=True):
            gradient = 0.1 * variable
            first.assign(0.9 * first + 0.1 * gradient)
            second.assign(0.999 * second + 0.001 * tf.square(gradient))
            variable.assign_sub(0.001 * first / (tf.sqrt(second) + 1e-7))
        return tf.reduce_sum(variables[0])

    return step


def dense(size: int) -> Step:
    """Forward and backward pass through 10 square dense layers, with 16 rows."""
    width = size // 16
    values = tf.random.normal((16, width))
    weights = [tf.Variable(tf.random.normal((width, width), stddev=width**-0.5)) for _ in range(10)]

    def step() -> tf.Tensor:
        with tf.GradientTape() as tape:
            hidden = values
            for weight in weights:
                hidden = tf.nn.relu(hidden @ weight) + 0.01 * hidden
            loss = tf.reduce_mean(tf.square(hidden))
        for weight, gradient in zip(weights, tape.gradient(loss, weights), strict=True):
            weight.assign_sub(0.001 * gradient)
        return loss

    return step


def recurrent(size: int) -> Step:
    """Forward and backward pass through 12 steps of a gated recurrent cell, with 8 rows."""
    width = size // 8
    values = [tf.random.normal((8, width)) for _ in range(12)]
    weights = [tf.Variable(tf.random.normal((width, width), stddev=width**-0.5)) for _ in range(4)]

    def step() -> tf.Tensor:
        with tf.GradientTape() as tape:
            state = tf.zeros((8, width))
            for value in values:
                gate = tf.sigmoid(value @ weights[0] + state @ weights[1])
                state = gate * state + (1 - gate) * tf.tanh(value @ weights[2] + state @ weights[3])
            loss = tf.reduce_mean(tf.square(state))
        for weight, gradient in zip(weights, tape.gradient(loss, weights), strict=True):
            weight.assign_sub(0.001 * gradient)
        return loss

    return step


STEPS = {
    "element-wise": (element_wise, SIZES),
    "optimizer": (optimizer, SIZES),
    "dense": (dense, SIZES),
    "recurrent": (recurrent, SIZES[:-1]),
}
"""The largest recurrent cell would have weights of 256 MiB."""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--write-docs", action="store_true", help="put the table into docs/benchmarks.md")
    options = parser.parse_args()
    rows = []
    for row in measured(options.pairs):
        rows.append(row)
        print(line(row), flush=True)
    lines = [machine_sentence() + f" {options.pairs} pairs of turns of {TURN_S} s.", "", *table(rows)]
    if options.write_docs:
        write_section("xla-on-cpu", lines)


def measured(pairs: int) -> Iterator[Row]:
    """Yield the rows as they are measured."""
    for name, (make, sizes) in STEPS.items():
        for size in sizes:
            step = make(size)
            without, compiled = tf.function(step), tf.function(step, jit_compile=True)
            for function in (without, compiled, without, compiled):
                function().numpy()
            ops = number_of_ops(without)
            times = [(turn(without), turn(compiled)) for _ in range(pairs)]
            op_s = min(first for first, _ in times) / ops
            yield Row(name, size, ops, round(op_s * 1e9), tuple(first / second for first, second in times))


def turn(function: Step) -> float:
    """The seconds of a call, over a turn."""
    calls, began = 0, time.perf_counter()
    while time.perf_counter() - began < TURN_S:
        function().numpy()
        calls += 1
    return (time.perf_counter() - began) / calls


def number_of_ops(function: Any) -> int:
    """The ops that a call executes."""
    graph = function.get_concrete_function().graph
    return sum(
        op.type not in ("Const", "Placeholder", "ReadVariableOp", "NoOp", "Identity") for op in graph.get_operations()
    )


def table(rows: list[Row]) -> list[str]:
    """The table as Markdown."""
    head = ["| step | numbers per tensor | ops | time per op | speedup by XLA |", "|---|---|---|---|---|"]
    return [*head, *(f"| {line(row)} |" for row in rows)]


def line(row: Row) -> str:
    """The cells of a row."""
    gain = median_interval(row.speedups)
    speedup = "-" if gain is None else format_range(gain.value, gain.low, gain.high)
    return f"{row.name} | {row.size:,} | {row.ops} | {format_ns(row.op_ns)} | {speedup}"


if __name__ == "__main__":
    main()
