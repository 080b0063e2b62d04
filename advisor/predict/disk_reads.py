"""Limits the predicted speedup of a cache or a stored dataset by the time to read its elements from disk.

In: a `CachePlace` and the disk's rate.  Out: the prediction for elements that come from a file.
"""

from __future__ import annotations

from dataclasses import replace

from advisor.model.finding import Prediction
from advisor.model.pipeline import Pipeline
from advisor.predict.caching import CachePlace


def read_from_disk(pipeline: Pipeline, place: CachePlace, bytes_per_s: float) -> Prediction:
    """Return the prediction for elements that are read from disk, in the first pass of a run as in later ones.

    No step can be shorter than the time to read its elements, unless the page cache still holds them. The upper bound of the
    range assumes that it does.

    Args:
        pipeline: The pipeline.
        place: The place whose elements are read.
        bytes_per_s: The read rate of the disk.
    """
    it = next((it for it in pipeline.iterators if any(call.id == place.call.id for call in it.calls)), None)
    if it is None or not it.elements or not pipeline.num_elements or not place.element_bytes:
        return replace(place.prediction, first_pass=None)
    is_fused = it.calls[-1].id != place.call.id
    size = it.calls[-1].arguments.get("batch_size") if is_fused else 1
    per_step = it.elements * (size if isinstance(size, int) else 1) / pipeline.num_elements
    most = max(1.0, pipeline.step_ns / 1e9 / (per_step * place.element_bytes / bytes_per_s))
    gain = place.prediction
    return replace(gain, value=min(gain.value, most), low=min(gain.low, most), first_pass=None)
