"""The loss of the first steps of a training loop that is not Keras' `fit`.

In: what a step differentiates, or what a `tf.function` that differentiates returns.  Out: the mean loss so far, like Keras'.

While the loop runs, nothing is computed and no device is waited for: the tensors, a number each, are kept and read at the end.
"""

from __future__ import annotations

import contextlib
import math
from typing import Any

from advisor.capture.instrument.consumers import ConsumerSteps
from advisor.capture.instrument.keras_models import MAX_BATCHES

GRADIENT, RETURNED = "gradient", "returned"
"""Where a loss was seen: differentiated outside a tf.function, or returned by one."""


class LoopLosses:
    """Follows the first loop that trains."""

    def __init__(self) -> None:
        self.source = ""
        """`GRADIENT` or `RETURNED`; empty before the first loss."""
        self._kept: list[Any] = []
        self._consumer: ConsumerSteps | None = None
        self._step_ns = 0
        self.is_over = False
        """Whether no more losses are kept."""

    def note(self, consumer: ConsumerSteps | None, value: Any, source: str) -> None:  # noqa: ANN401
        """Note a loss. The first one of a step counts: a step may train two models, one after the other.

        Args:
            consumer: The loop whose step is open; None if there is none.
            value: A tensor, or what a function returned: the loss is the only scalar in it, or is called `loss`.
            source: `GRADIENT` or `RETURNED`.
        """
        if self.is_over or consumer is None or not consumer.open_since_ns or consumer.is_loop:
            return
        if self._consumer is not None and (consumer is not self._consumer or consumer.open_since_ns == self._step_ns):
            return
        try:
            loss = _scalar_in(value)
        except Exception:  # an object of the script with attributes of its own
            loss = None
        if loss is None or self.source not in ("", source):
            self.is_over = True
            return
        self._consumer, self._step_ns, self.source = consumer, consumer.open_since_ns, source
        self._kept.append(loss)
        self.is_over = len(self._kept) >= MAX_BATCHES

    def read(self) -> tuple[tuple[int, float | None], ...]:
        """Return (steps so far, mean loss over them; None if it is not finite)."""
        losses: list[tuple[int, float | None]] = []
        total = 0.0
        with contextlib.suppress(Exception):  # the device may be gone
            for count, loss in enumerate(self._kept, 1):
                total += float(loss)
                losses.append((count, total / count if math.isfinite(total) else None))
        return tuple(losses)


def _scalar_in(value: Any) -> Any:  # noqa: ANN401
    """Return the only floating-point scalar, or the one called `loss`; None if there is none, or more than one."""
    if isinstance(value, dict) and "loss" in value:
        value = value["loss"]
    values = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else (value,)
    scalars = [item for item in values if _is_scalar(item)]
    return scalars[0] if len(scalars) == 1 else None


def _is_scalar(value: Any) -> bool:  # noqa: ANN401
    """Whether a value is a tensor of TensorFlow that holds one floating-point number."""
    dtype, shape = getattr(value, "dtype", None), getattr(value, "shape", None)
    return bool(getattr(dtype, "is_floating", False)) and getattr(shape, "rank", None) == 0
