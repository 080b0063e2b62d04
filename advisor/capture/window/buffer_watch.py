"""Notes in the window how full the last buffer of the training's pipeline is, from tf.data's own model of the iterator.

In: the consumer, as one of its steps begins, or at any time if its steps are not visible.  Out: `BufferLevels`.

A buffer that is full whenever a step begins shows that the pipeline is faster than the training, even if Python cannot see the
wait or there are only a few steps.
"""

from __future__ import annotations

from collections import deque

from advisor.capture.instrument.consumers import ConsumerSteps
from advisor.capture.instrument.iterator_model import buffer_now
from advisor.host.calibration.window import BUFFER_LOOK_NS
from advisor.model.window_readings import BufferLevels

_MOST = 2_000
"""Readings that are kept; a window of a minute has at most 1,200."""


class BufferWatch:
    """The readings of one consumer; those of another one replace them."""

    def __init__(self) -> None:
        self._consumer: ConsumerSteps | None = None
        self._transformation = ""
        self._is_at_steps = True
        self._rows: deque[tuple[int, int, int, int, int]] = deque(maxlen=_MOST)
        """(time, steps, elements taken, elements in the buffer, capacity)."""
        self._next_ns = 0

    def is_due(self, now_ns: int) -> bool:
        """Return whether the latest reading is old enough for another one."""
        return now_ns >= self._next_ns

    def read(self, consumer: ConsumerSteps, now_ns: int) -> None:
        """Read the buffer once. Nothing is noted if tf.data does not tell, or before the first element.

        Args:
            consumer: The consumer that the window follows.
            now_ns: Unix time.
        """
        self._next_ns = now_ns + BUFFER_LOOK_NS.value
        try:
            buffer = buffer_now(consumer)
        except Exception:  # the model is private, and an error here must not stop the script
            buffer = None
        if buffer is None or buffer.elements_taken <= 0:  # a buffer is filled from the first request on
            return
        if (consumer, buffer.transformation, not consumer.is_loop) != (
            self._consumer,
            self._transformation,
            self._is_at_steps,
        ):
            self._rows.clear()
        self._consumer, self._transformation, self._is_at_steps = consumer, buffer.transformation, not consumer.is_loop
        self._rows.append((now_ns, consumer.count, buffer.elements_taken, int(buffer.elements), int(buffer.capacity)))

    def levels(self) -> BufferLevels | None:
        """Return the readings; None if there are none."""
        rows = list(self._rows)
        if self._consumer is None or not rows:
            return None
        return BufferLevels(
            self._consumer.id, self._transformation, self._is_at_steps, *map(tuple, zip(*rows, strict=True))
        )
