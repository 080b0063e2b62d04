"""Times steps of Keras' `fit` without concurrent input: its train function gets the same batch again and again.

In: the model, at a step boundary.  Out: durations in `IdleSteps`; then `StopScript`, unless the script goes on.

`fit` takes its elements inside a tf.function, so the train function is called with another iterator. No callback is called in
these steps, as it might save files or evaluate the model. The time that callbacks took after the latest batches is added.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from statistics import median
from typing import Any, NoReturn

from advisor.capture.instrument.consumers import ConsumerSteps
from advisor.capture.window.idle_steps import IdleSteps


class FitIdleSteps:
    """Repeats the next batch of a `fit`.

    Args:
        idle_steps: Receives the durations. It has begun with the consumer when `begin` is called.
        quietly: Makes a context in which neither calls nor consumers of this thread are recorded.
        stop_script: Stops the script in this thread.
    """

    def __init__(
        self,
        idle_steps: IdleSteps,
        quietly: Callable[[], AbstractContextManager[object]],
        stop_script: Callable[[], NoReturn],
    ) -> None:
        self._idle_steps, self._quietly, self._stop_script = idle_steps, quietly, stop_script

    def begin(self, model: Any, consumer: ConsumerSteps) -> None:  # noqa: ANN401
        """Replace the train function of a model for one call, with which Keras passes its iterator.

        Args:
            model: The Keras model; None if it is unknown.
            consumer: The `fit`, whose thread this is.

        Raises:
            StopScript: The model has no train function, and the script does not go on.
        """
        train_function = getattr(model, "train_function", None)
        if not callable(train_function):
            self._end(consumer)
            return

        def repeat(*arguments: Any) -> Any:  # noqa: ANN401
            model.train_function = train_function
            rest = arguments
            try:
                with contextlib.suppress(Exception), self._quietly():
                    same = repeated(arguments)
                    if same is not None:
                        rest = (same,)  # its batch is the one that the step was to take
                        self._time(lambda: train_function(same), consumer)
            finally:
                self._idle_steps.end()
            self._end(consumer)
            return train_function(*rest)

        model.train_function = repeat

    def _time(self, step: Callable[[], object], consumer: ConsumerSteps) -> None:
        """Time calls of the train function. If one fails, there are no times."""
        try:
            self._idle_steps.make(step, int(median(consumer.callbacks_ns or (0,))))
        except BaseException:
            self._idle_steps.durations_ns.clear()
            raise

    def _end(self, consumer: ConsumerSteps) -> None:
        """Stop the script, or begin the step again that has been put off."""
        self._idle_steps.end()
        if not self._idle_steps.goes_on:
            self._stop_script()
        consumer.forget()
        consumer.begin(time.time_ns())


def repeated(arguments: tuple[Any, ...]) -> Any | None:  # noqa: ANN401
    """Return an iterator that gives the next element of another one for ever; None if that is impossible.

    It has the type of the other one, so that a tf.function is not traced again.

    Args:
        arguments: What Keras passes to the train function. A distributed iterator is not replaced, nor what JAX gets.

    Raises:
        Exception: The other iterator has no further element.
    """
    import tensorflow as tf
    from tensorflow.python.data.ops.iterator_ops import OwnedIterator

    if len(arguments) != 1 or type(arguments[0]) is not OwnedIterator:
        return None
    (iterator,) = arguments
    dataset = tf.data.Dataset.from_tensors(next(iterator)).repeat()
    variant = tf.data.experimental.to_variant(
        dataset
    )  # `from_tensors` knows the sizes of dimensions that the other leaves open
    return iter(tf.data.experimental.from_variant(variant, iterator.element_spec))
