"""Helps a benchmark script to find its own bottleneck by intervention; under the advisor it only limits the time.

In: a script whose `main()` trains while `tick()` is false, and whose functions call `without("decode")` to find out whether to
skip the work of the node marked `# node: decode` (and return the same shapes and dtypes at almost no cost).
Out: without or under the advisor, the script trains once for `RUN_SECONDS`. With `BOTTLENECK_TRUTH` set to a path, it trains
unchanged and without each node, `TURNS` times in alternation, and writes the step rates to that path as JSON.

All variants run in one process, so that the state of the machine is the same, and they alternate, so that a slow drift (page
cache, clock rate, other processes) affects all of them equally. The dataset is rebuilt for each turn.
"""

from __future__ import annotations

import gc
import json
import os
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path

import tensorflow as tf

TRUTH_FILE = os.environ.get("BOTTLENECK_TRUTH")
TURNS = int(os.environ.get("BOTTLENECK_TURNS", "3"))
WARMUP_SECONDS = float(os.environ.get("BOTTLENECK_WARMUP_SECONDS", "0.5"))
"""Time after the first step: AUTOTUNE reacts within tens of milliseconds, the first call of a function takes longer."""
MEASURE_SECONDS = float(os.environ.get("BOTTLENECK_MEASURE_SECONDS", "0.8"))
RUN_SECONDS = float(os.environ.get("BOTTLENECK_RUN_SECONDS", "30"))
"""How long a script trains when its bottleneck is not being established."""
NODE_QUESTION = re.compile(r"without\(\"(\w+)\"\)")


class Turn:
    """One training run: which node is without cost, and when its steps ended (seconds, `perf_counter`)."""

    def __init__(self, without: str | None, warmup_seconds: float, measure_seconds: float) -> None:
        self.without = without
        self.warmup_seconds = warmup_seconds
        self.measure_seconds = measure_seconds
        self.first_end: float | None = None
        self.steps = 0
        self.measured_from: float | None = None
        self.measured_to = 0.0

    def tick(self, steps: int) -> bool:
        """Count `steps` that just ended. True when the turn is over."""
        now = time.perf_counter()
        if self.first_end is None:
            self.first_end = now
        elif self.measured_from is None:
            if now - self.first_end >= self.warmup_seconds:
                self.measured_from = now
        else:
            self.steps += steps
            self.measured_to = now
        return self.measured_from is not None and now - self.measured_from >= self.measure_seconds

    def steps_per_second(self) -> float:
        """Rate over the measured part. RuntimeError if it holds no whole step."""
        if self.measured_from is None or self.measured_to <= self.measured_from:
            raise RuntimeError(f"too few steps to measure without={self.without}")
        return self.steps / (self.measured_to - self.measured_from)


_turn = Turn(None, 0.0, RUN_SECONDS)


def without(node: str) -> bool:
    """True while the cost of `node` is to vanish."""
    return _turn.without == node


def tick(steps: int = 1) -> bool:
    """To be called behind every step of the training loop, which ends when this is True."""
    return _turn.tick(steps)


def keras_clock() -> tf.keras.callbacks.Callback:
    """`tick()` for Keras' `fit`."""

    class Clock(tf.keras.callbacks.Callback):
        def on_train_batch_end(self, batch: int, logs: object = None) -> None:
            if tick():
                self.model.stop_training = True

    return Clock()


def constant(*shape: int, dtype: tf.DType = tf.float32) -> tf.Tensor:
    """What a node without cost returns."""
    return tf.zeros(shape, dtype)


def without_batch(dataset: tf.data.Dataset, batch_size: int, batch: object) -> tf.data.Dataset:
    """`dataset.batch(batch_size)` with every element produced but none copied: each `batch_size`-th becomes `batch`."""
    return dataset.shard(batch_size, 0).map(lambda *element: batch)


def dense_step(features: int, work: int = 256) -> Callable[[tf.Tensor], tf.Tensor]:
    """A training step of a two-layer network on (batch, features), `work` units wide."""
    first = tf.Variable(tf.random.normal((features, work), stddev=0.01))
    second = tf.Variable(tf.random.normal((work, 1), stddev=0.01))

    @tf.function(reduce_retracing=True)
    def step(batch: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            inputs = tf.reshape(tf.cast(batch, tf.float32), (-1, features))
            loss = tf.reduce_mean(tf.square(tf.nn.relu(inputs @ first) @ second - 1.0))
        for variable, gradient in zip((first, second), tape.gradient(loss, (first, second)), strict=True):
            variable.assign_sub(0.001 * gradient)
        return loss

    compiled: Callable[[tf.Tensor], tf.Tensor] = step
    return compiled


def run(main: Callable[[], None]) -> None:
    """Train once; or, with `BOTTLENECK_TRUTH`, establish what each node costs the consumer."""
    global _turn
    if TRUTH_FILE is None:
        main()
        return
    script = Path(sys.modules["__main__"].__file__ or "")
    nodes = list(dict.fromkeys(NODE_QUESTION.findall(script.read_text(encoding="utf-8"))))
    rates: dict[str, list[float]] = {node: [] for node in ["", *nodes]}
    for turn in range(TURNS):
        order = list(rates)
        for node in order if turn % 2 == 0 else reversed(order):
            _turn = Turn(node or None, WARMUP_SECONDS, MEASURE_SECONDS)
            main()
            rates[node].append(_turn.steps_per_second())
            gc.collect()  # ends the iterator's background threads
    result = {"as_is": rates.pop(""), "without": rates}
    Path(TRUTH_FILE).write_text(json.dumps(result), encoding="utf-8")
