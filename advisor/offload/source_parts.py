"""Into how many parts the dispatcher can divide the sources of a pipeline.

In: an `Analysis` and the calls of the pipeline.  Out: the number of files or elements of the source with the fewest; a worker
without a part gets nothing to do.
"""

from __future__ import annotations

from collections.abc import Iterable

from advisor.model.calls import Call
from advisor.model.pipeline import Analysis
from advisor.offload.data_files import READERS
from advisor.predict.structure import file_count


def max_workers(analysis: Analysis, upstream: Iterable[Call]) -> int | None:
    """Return the number of parts of the source; None if it is unknown, or if there are none."""
    parts = []
    for call in upstream:
        if call.inputs:
            continue
        count = file_count(analysis, call) if call.method in READERS else call.cardinality
        if count is None or count < 0:
            return None
        parts.append(count)
    return min(parts, default=0) or None
