"""Limits the predicted speedup of a cache or a stored dataset by the time to read its elements from disk.

In: a `CachePlace` and the disk's rate.  Out: the prediction for elements that come from a file.
"""

from __future__ import annotations

from dataclasses import replace

from advisor.model.finding import Prediction
from advisor.model.pipeline import Analysis, Pipeline
from advisor.model.units import NS_PER_S
from advisor.predict.caching import CachePlace
from advisor.predict.machine_costs import machine_costs


def read_from_disk(analysis: Analysis, pipeline: Pipeline, place: CachePlace, bytes_per_s: float) -> Prediction:
    """Return the prediction for elements that are read from disk, in the first pass of a run as in later ones.

    No step can be shorter than the time to read its elements, unless the page cache still holds them. The upper bound of the
    range assumes that it does; reading from there takes time, too, which counts if it was measured on the machine of the run.

    Args:
        analysis: The analysis.
        pipeline: One of its pipelines.
        place: The place whose elements are read.
        bytes_per_s: The read rate of the disk.
    """
    it = next((it for it in pipeline.iterators if any(call.id == place.call.id for call in it.calls)), None)
    if it is None or not it.elements or not pipeline.num_elements or not place.element_bytes:
        return replace(place.prediction, first_pass=None)
    is_fused = it.calls[-1].id != place.call.id
    size = it.calls[-1].arguments.get("batch_size") if is_fused else 1
    per_step = it.elements * (size if isinstance(size, int) else 1) / pipeline.num_elements
    step_bytes = per_step * place.element_bytes
    most = max(1.0, pipeline.step_ns / NS_PER_S * bytes_per_s / step_bytes)
    from_page_cache = machine_costs(analysis).page_cache_bytes_per_ns
    highest = max(most, pipeline.step_ns * from_page_cache / step_bytes) if from_page_cache else float("inf")
    gain = place.prediction
    return replace(
        gain,
        value=min(gain.value, most),
        low=min(gain.low, most),
        high=min(gain.high, highest),
        first_pass=None,
    )
