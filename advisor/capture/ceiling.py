"""The ceiling run: replaces the consumed dataset by its first element, repeated, so that the input costs almost nothing.

In: a dataset that is about to be consumed.  Out: `dataset.take(1).cache().repeat(n)` if it was made by the requested call,
where n is its cardinality if known. So finite epochs stay finite.
"""

from __future__ import annotations

import sys
from typing import Any

from advisor.capture.instrument.dataset_ids import call_id_of
from advisor.capture.instrument.recorder import Recorder

_SUBSTITUTE = "_tfadv_ceiling"


class Ceiling:
    """Replaces the datasets made by one call.

    Args:
        call_id: Id of the call whose datasets are replaced.
        recorder: Paused while the replacement is made, so that it is not recorded.
    """

    def __init__(self, call_id: str, recorder: Recorder) -> None:
        self._call_id, self._recorder = call_id, recorder
        self.replaced = 0

    def substitute(self, dataset: Any) -> Any:  # noqa: ANN401
        """Return the repeated first element, or `dataset` itself if another call made it.

        The replacement is kept on the dataset, so that all epochs share its cache.
        """
        if not hasattr(dataset, "_variant_tensor") or call_id_of(dataset) != self._call_id:
            return dataset
        existing = dataset.__dict__.get(_SUBSTITUTE)
        if existing is not None and sys.modules["tensorflow"].executing_eagerly():
            return existing
        with self._recorder.paused():
            cardinality = dataset.cardinality()
            length = int(cardinality) if hasattr(cardinality, "numpy") else -1
            substitute = dataset.take(1).cache().repeat(length if length >= 0 else None)
        object.__setattr__(dataset, _SUBSTITUTE, substitute)
        self.replaced += 1
        return substitute
