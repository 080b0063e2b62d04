"""cache-too-big: what a cache is to hold does not fit in memory."""

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
    """The elements that a cache in memory is to hold take more than the memory that is free.

    ## Why it is slow
    The first epoch fills the cache until the machine swaps or the process is killed; in a container it is killed when it
    reaches the container's limit. Often the script runs well on a part of the data and dies on all of it.

    ## What the fix does
    The cache moves to a place upstream where it fits (encoded images are smaller than decoded ones, decoded ones smaller than
    floats), if there is one where every epoch is the same; else it goes. Elements and order stay the same. No gain is predicted:
    what is gained is that the run comes to its end.

    ## When not to
    When the memory will be larger where the script really runs.

    ## What tf.data already does
    Nothing: the RAM budget of its autotuning counts buffers, not caches.
    """

    needs_input_bound: ClassVar[bool] = False

    max_memory_share: float = 1.0
    """Share of the free memory, with what the cache holds already, that its elements may take: below that, it works."""
    fitting_share: float = 0.5
    """Share that it may take in another place, so that the model and other buffers have the rest."""

    def check(self, analysis: Analysis) -> Iter[Finding | Note]:
        """A finding for each cache in memory whose elements are known to take more than there is."""
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
        what = "Remove the cache" if better is None else f"Put the cache behind {label(better)}"
        instead = (
            f" Behind {label(better)} at {place(better)} it holds {format_bytes(better_size)}."
            if better is not None and better_size is not None
            else " No place before it holds few enough bytes and is the same in every epoch."
        )
        assumptions = cache_assumptions(analysis, better) if better is not None else ()
        is_written = is_editable(call) and (better is None or is_editable(better))
        return self.finding(
            what,
            f"The elements of an epoch at the cache at {place(call)} take {format_bytes(size)}, but only {format_bytes(room)} of "
            f"memory are there for them ({format_bytes(host.memory_bytes)} in all).{instead}",
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
        """The nearest place upstream where a cache fits and every epoch is the same, with its bytes."""
        for each in linear_chain(analysis, call)[1:]:
            size = cache_bytes(analysis, pipeline, each)
            is_worth_it = each.method not in ("from_tensor_slices", "from_tensors", "range", "list_files")
            if is_worth_it and size is not None and size <= self.fitting_share * room:
                return (each, size) if not cache_obstacles(analysis, each) else (None, None)
        return None, None


def held_bytes(pipeline: Pipeline, call: Call) -> int:
    """What the cache held already when the machine's free memory was read."""
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
        because="1 GB of 16 is not too much",
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
        because="it is on the disk",
    ),
    silent(
        pipeline(unknown_size(source(bytes=100_000, ms=1)), cache(), batch(32), consumer_ms=5, epochs=3),
        because="nobody knows how many elements there are",
    ),
)
