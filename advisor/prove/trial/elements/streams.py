"""Streams of digested elements, which are compared without TensorFlow.

In: nothing.  Out: the type `Stream`, which `advisor.prove.trial.elements.element_digests` makes; errors of pipelines.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

Row = tuple[bytes, ...]
"""The digests of the components of one element."""
OPAQUE = "opaque"
"""Kind of a component without a comparable value: a variant or a resource."""


@dataclass(slots=True)
class Stream:
    """The digested elements of a dataset."""

    rows: list[Row] = field(default_factory=list)
    """The digests of each element's components."""
    figures: list[tuple[tuple[float, ...], ...]] = field(default_factory=list)
    """For each element and component: mean, standard deviation, minimum, maximum, share of finite values, number of values;
    empty if the component is not numeric.
    """
    kinds: tuple[str, ...] = ()
    """The kind of each component: `numbers`, `text`, `dataset` or `OPAQUE`; empty before the first element."""
    size_bytes: int = 0
    """Total size of the elements."""
    is_complete: bool = False
    """The dataset ended within the bounds."""
    error: str = ""
    """The exception raised by the dataset, in one line."""

    def column(self, component: int) -> list[bytes]:
        """Return the digests of one component."""
        return [row[component] for row in self.rows]

    def epoch(self, number: int, length: int) -> Stream:
        """Return the elements of pass `number` (from 0), if a pass has `length` elements."""
        part = slice(number * length, (number + 1) * length)
        return Stream(self.rows[part], self.figures[part], self.kinds)

    @property
    def opaque(self) -> tuple[int, ...]:
        """Indices of the components that cannot be compared."""
        return tuple(component for component, kind in enumerate(self.kinds) if kind == OPAQUE)

    def counted(self) -> Counter[Row]:
        """Return the elements without their order."""
        return Counter(self.rows)


class OriginalFails(Exception):
    """The script's own pipeline raises an exception; the message is that of the exception."""


_WRAPPINGS = re.compile(
    r"\{\{function_node [^}]*\}\}\s*"
    r"|Failed to get element from worker [^ ]+: |Failed to get an element, with a nonretryable error: |Failed to get element: "
)
"""What TensorFlow and tf.data service put before a message."""


def tensorflow_message(error: BaseException) -> str:
    """Return type and message of an exception in one line, without TensorFlow's node names and stack traces."""
    text = getattr(error, "message", "") or str(error)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    cause = next((line for line in reversed(lines) if line.split(":")[0].endswith(("Error", "Exception"))), None)
    first = (cause or (lines[0] if lines else "")).split(" [[{{node")[0].split(" [Op:")[0]
    first = _WRAPPINGS.sub("", first)
    name = type(error).__name__
    return (first if cause else f"{name}: {first}")[:300]
