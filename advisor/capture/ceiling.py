"""The ceiling run: the consumed dataset becomes its first element, over and over, so that input costs nothing.

In: a dataset at the point where it is consumed.  Out: `dataset.take(1).cache().repeat(n)` if the asked-for call made it, n
being its cardinality where that is known, so that finite epochs stay finite.
"""

from __future__ import annotations

import sys
from typing import Any

from advisor.capture.instrument.recorder import Recorder, call_id_of

_SUBSTITUTE = "_tfadv_ceiling"


class Ceiling:
    """Substitutes the datasets of one call."""

    def __init__(self, call_id: str, recorder: Recorder) -> None:
        self._call_id, self._recorder = call_id, recorder
        self.replaced = 0

    def substitute(self, dataset: Any) -> Any:  # noqa: ANN401
        """The repeated first element, or `dataset` itself if another call made it. One per dataset, so that all epochs
        share its cache."""
        if not hasattr(dataset, "_variant_tensor") or call_id_of(dataset) != self._call_id:
            return dataset
        known = dataset.__dict__.get(_SUBSTITUTE)
        if known is not None and sys.modules["tensorflow"].executing_eagerly():
            return known
        with self._recorder.paused():
            length = dataset.cardinality()
            length = int(length) if hasattr(length, "numpy") else -1
            result = dataset.take(1).cache().repeat(length if length >= 0 else None)
        object.__setattr__(dataset, _SUBSTITUTE, result)
        self.replaced += 1
        return result
