"""cache-too-big: the elements to be cached do not fit in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from advisor.model.units import format_bytes
from advisor.rule import (
    Analysis,
    Call,
    Evidence,
    Finding,
    Fix,
    Host,
    InsertAfter,
    Iter,
    Note,
    Pipeline,
    Remove,
    Rule,
    Safety,
    cache_assumptions,
    cache_bytes,
    cache_obstacles,
    catalog,
    consumed_call,
    is_editable,
    iterators_of_call,
    label,
    linear_chain,
    place,
    upstream_calls,
)
from advisor.testing import batch, cache, fires, map_, pipeline, prefetch, silent, source, unknown_size

MIB = 1 << 20


@dataclass(frozen=True)
class CacheTooBig(Rule):
    """The elements to be cached in memory take more than the free memory.

    ## Why it is slow
    The first epoch fills the cache until the machine swaps or the process is killed. In a container, the process is
    killed when it reaches the container's limit. Often the script runs well on part of the data and fails on the full
    dataset.

    ## What the fix does
    It moves the cache upstream to a place where the elements fit (encoded images are smaller than decoded ones, decoded
    images smaller than float tensors) and are the same in every epoch. If there is no such place, it removes the cache.
    Elements and order stay the same. The benefit is a run that completes, so no speedup is predicted.

    ## When not to
    When the machine that runs the real training has more memory.

    ## What tf.data already does
    Nothing: autotuning's RAM budget covers buffers, not caches.
    """

    needs_input_bound: ClassVar[bool] = False

    max_memory_share: float = 1.0
    """Cache size as a share of the free memory plus the bytes that the cache already holds. Up to this share the cache
    fits."""
    fitting_share: float = 0.5
    """The same share at another place in the pipeline; the rest is left to the model and other buffers."""

    def check(self, analysis: Analysis) -> Iter[Finding | Note]:
        """Yield a finding for each in-memory cache whose elements are known to exceed the available memory."""
        pipeline, host = analysis.main, analysis.host
        consumed = consumed_call(analysis, pipeline) if pipeline else None
        if pipeline is None or host is None or consumed is None:
            return
        for call in upstream_calls(analysis, consumed):
            if call.method != "cache" or call.arguments.get("filename"):
                continue
            size, room = cache_bytes(analysis, pipeline, call), host.memory_free_bytes + held_bytes(pipeline, call)
            if size is None or size <= self.max_memory_share * room:
                continue
            yield self._advice(analysis, pipeline, host, call, size, room)

    def _advice(self, analysis: Analysis, pipeline: Pipeline, host: Host, call: Call, size: int, room: int) -> Finding:
        better, better_size = self._fitting_place(analysis, pipeline, call, room)
        edits = (Remove(call.id),) if better is None else (InsertAfter(better.id, "cache"), Remove(call.id))
        what = "Remove the cache" if better is None else f"Move the cache after {label(better)}"
        instead = (
            f" After {label(better)} at {place(better)} it would take {format_bytes(better_size)}."
            if better is not None and better_size is not None
            else " No earlier place in the pipeline has small enough elements that are the same in every epoch."
        )
        assumptions = cache_assumptions(analysis, better) if better is not None else ()
        is_written = is_editable(call) and (better is None or is_editable(better))
        return self.finding(
            what,
            f"Caching an epoch at {place(call)} takes {format_bytes(size)}, but only {format_bytes(room)} of "
            f"{format_bytes(host.memory_bytes)} of memory are available.{instead}",
            call=call,
            memory_bytes=better_size or 0,
            fix=Fix(edits, Safety.EXACT, is_auto=not assumptions, assumptions=assumptions) if is_written else None,
            evidence=(
                Evidence("cache_bytes", size, "bytes"),
                Evidence("free_memory", host.memory_free_bytes, "bytes"),
            ),
        )

    def _fitting_place(
        self, analysis: Analysis, pipeline: Pipeline, call: Call, room: int
    ) -> tuple[Call | None, int | None]:
        """The nearest upstream place, with its size in bytes, where a cache fits and every epoch is the same."""
        for upstream in linear_chain(analysis, call)[1:]:
            size = cache_bytes(analysis, pipeline, upstream)
            is_worth_it = upstream.method not in ("from_tensor_slices", "from_tensors", "range", "list_files")
            if is_worth_it and size is not None and size <= self.fitting_share * room:
                return (upstream, size) if not cache_obstacles(analysis, upstream) else (None, None)
        return None, None


def held_bytes(pipeline: Pipeline, call: Call) -> int:
    """Bytes already held by the cache when the free memory was measured."""
    for it in iterators_of_call(pipeline, call):
        held = it.parameters.get("buffered_bytes_MB")
        if catalog.is_cache(it.name) and isinstance(held, int | float):
            return int(held * MIB)
    return 0


EXAMPLES = (
    fires(
        pipeline(
            source(elements=200_000, bytes=20_000),
            map_("decode", ms=2, bytes=600_000),
            cache(),
            batch(32),
            prefetch(),
            consumer_ms=5,
            epochs=3,
        ),
        fixed="tf.data.TFRecordDataset(files).cache()\nds = ds.map(decode)\nds = ds.batch(32)",
    ),
    fires(
        pipeline(source(elements=1_000_000, bytes=100_000, ms=1), cache(), batch(32), consumer_ms=5, epochs=3),
        fixed="tf.data.TFRecordDataset(files)\nds = ds.batch(32)",
    ),
    silent(
        pipeline(source(elements=10_000, bytes=100_000, ms=1), cache(), batch(32), consumer_ms=5, epochs=3),
        because="1 GB fits in 16 GB",
    ),
    silent(
        pipeline(
            source(elements=200_000, bytes=20_000),
            cache(),
            map_("decode", ms=2, bytes=600_000),
            batch(32),
            consumer_ms=5,
            epochs=3,
        ),
        because="the cache holds the encoded images, which fit",
    ),
    silent(
        pipeline(
            source(elements=1_000_000, bytes=100_000, ms=1), cache("elements"), batch(32), consumer_ms=5, epochs=3
        ),
        because="the cache is on disk",
    ),
    silent(
        pipeline(unknown_size(source(bytes=100_000, ms=1)), cache(), batch(32), consumer_ms=5, epochs=3),
        because="the number of elements is unknown",
    ),
)
