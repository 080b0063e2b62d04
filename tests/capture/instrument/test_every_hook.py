"""Every hook on a consumer is reached by some way to consume: nothing that is replaced in TensorFlow or Keras goes untested."""

from __future__ import annotations

import functools
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from advisor.capture import in_process
from advisor.capture.instrument import consumer_hooks, function_steps, keras_loops, keras_models
from advisor.capture.instrument.patches import Patches

pytestmark = pytest.mark.tensorflow
HOOKS = {str(Path(module.__file__)) for module in (consumer_hooks, function_steps, keras_loops, keras_models)}
"""The files whose functions stand in for the originals. Those that record calls of `tf.data` are tested with each method."""


class Counted(Patches):
    """Counts the calls of each hook."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.calls: Counter[str] = Counter()

    def set(self, owner: Any, name: str, value: Any) -> None:
        code = getattr(value, "__code__", None)
        super().set(owner, name, self.counted(f"{owner.__name__}.{name}", value) if code and is_hook(code) else value)

    def counted(self, name: str, hook: Any) -> Any:
        self.names.add(name)

        @functools.wraps(hook)
        def count(*args: Any, **kwargs: Any) -> Any:
            self.calls[name] += 1
            return hook(*args, **kwargs)

        return count


def is_hook(code: Any) -> bool:
    return code.co_filename in HOOKS


def consume_in_every_way() -> None:
    import keras
    import tensorflow as tf

    dataset = tf.data.Dataset.range(8).map(lambda x: (tf.ones([2]), tf.ones([1]))).batch(2)

    @tf.function
    def loop(data: Any) -> Any:
        total = 0.0
        for x, _ in data:
            total += tf.reduce_sum(x)
        return total

    for _ in dataset:
        with tf.GradientTape():
            pass
    for _ in tf.compat.v1.data.Dataset.range(2):
        pass
    next(iter(dataset))
    iter(dataset).get_next()
    list(dataset.as_numpy_iterator())
    dataset.reduce(0.0, lambda total, row: total + tf.reduce_sum(row[0]))
    loop(dataset)
    strategy = tf.distribute.MirroredStrategy(["/cpu:0"])
    for distributed in (
        strategy.experimental_distribute_dataset(dataset),
        strategy.distribute_datasets_from_function(lambda context: dataset),
    ):
        iterator = iter(distributed)
        next(iterator)
        iterator.get_next()
        loop(distributed)
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(dataset, validation_data=dataset, verbose=0)
    model.evaluate(dataset, verbose=0)
    model.predict(dataset, verbose=0)


def test_every_hook_is_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_process, "Patches", Counted)
    hooks = in_process.Hooks()
    hooks.acquire()
    try:
        consume_in_every_way()
    finally:
        hooks.release()
    counted = hooks._patches
    assert isinstance(counted, Counted)
    assert {
        "OwnedIterator.__next__",
        "Function.__call__",
        "CallbackList.on_epoch_end",
        "Trainer.compile",
    } <= counted.names
    assert counted.names == set(counted.calls)
    kinds = {consumer.kind for consumer in hooks.consumers.all()}
    assert {
        "reduce",
        "as_numpy_iterator",
        "distributed",
        "tf.function",
        "keras.fit",
        "keras.evaluate",
        "keras.predict",
    } <= kinds
