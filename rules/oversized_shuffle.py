"""oversized-shuffle: a shuffle buffer takes a large part of the memory."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import ClassVar

from advisor.model.units import format_bytes, format_share
from advisor.rule import (
    Analysis,
    Call,
    Evidence,
    Finding,
    Fix,
    Iter,
    Iterator,
    MoveAfter,
    Note,
    Pipeline,
    Rule,
    Safety,
    catalog,
    element_bytes,
    is_editable,
    label,
    linear_chain,
    parallel_safety,
    place,
)
from advisor.testing import SimulatedPipeline, batch, fires, map_, pipeline, prefetch, shuffle, silent, source


@dataclass(frozen=True)
class OversizedShuffle(Rule):
    """The elements in a shuffle buffer take a large part of the free memory.

    ## Why it is slow
    In every epoch, the buffer is filled before the shuffle emits its first element: the consumer waits, and the memory
    stays occupied for as long as the pipeline runs. Large decoded elements make both worse than necessary.

    ## What the fix does
    If maps directly before the shuffle make the elements large, it moves them after the shuffle. The buffer then holds
    the same number of small elements (file names, encoded images) in the same order, and the first element arrives
    sooner. Otherwise the recommendation is a smaller buffer combined with a shuffle of the file names. The benefit is
    memory and a faster start of each epoch, so no speedup is predicted.

    ## When not to
    When the machine that runs the real training has plenty of memory.

    ## What tf.data already does
    Nothing: autotuning's RAM budget does not cover shuffle buffers.
    """

    needs_input_bound: ClassVar[bool] = False

    max_memory_share: float = 0.25
    """Share of the free memory that the buffer takes. The model, other buffers and an evaluation pipeline need the
    rest."""

    def check(self, analysis: Analysis) -> Iter[Finding | Note]:
        """Yield a finding for each shuffle whose buffer is known to take too much memory."""
        pipeline, host = analysis.main, analysis.host
        if pipeline is None or host is None:
            return
        for iterator in pipeline.iterators:
            call = next((call for call in iterator.calls if call.method == "shuffle"), None)
            if catalog.base_type(iterator.name) not in catalog.SHUFFLES or call is None:
                continue
            size = element_bytes(pipeline, call) or inputs_bytes(pipeline, iterator)
            count = held_elements(analysis, call)
            if size is None or count is None:
                continue
            room = host.memory_free_bytes + held_bytes(iterator, size)
            if size * count <= self.max_memory_share * room:
                continue
            yield self._advice(analysis, pipeline, call, size, count, room)

    def _advice(self, analysis: Analysis, pipeline: Pipeline, call: Call, size: int, count: int, room: int) -> Finding:
        maps, small = maps_that_enlarge(analysis, pipeline, call, size)
        what = (
            f" Before {' and '.join(label(map_call) for map_call in reversed(maps))} the same elements take "
            f"{format_bytes(small * count)}."
            if maps and small is not None
            else " Shuffle the file names, and shuffle the elements with a smaller buffer."
        )
        safety = max((parallel_safety(map_call) for map_call in maps), key=list(Safety).index, default=Safety.EXACT)
        is_written = bool(maps) and all(is_editable(edited) for edited in (call, *maps))
        return self.finding(
            "Shuffle before the elements become large" if maps else "Make the shuffle buffer smaller",
            f"The buffer of shuffle at {place(call)} holds {count} elements of {format_bytes(size)}: "
            f"{format_bytes(size * count)}, or {format_share(size * count / max(1, room))} of the "
            f"{format_bytes(room)} of available memory.{what}",
            call=call,
            fix=Fix(tuple(MoveAfter(map_call.id, call.id) for map_call in maps), safety, is_auto=False)
            if is_written
            else None,
            evidence=(
                Evidence("buffer_bytes", size * count, "bytes"),
                Evidence("free_memory", room, "bytes"),
                Evidence("element_bytes", size, "bytes"),
            ),
        )


def held_elements(analysis: Analysis, call: Call) -> int | None:
    """The number of elements that the full buffer holds: its size or the dataset's, if smaller; None if unknown."""
    size = call.arguments.get("buffer_size")
    if not isinstance(size, int) or size <= 0:
        return None
    source_call = linear_chain(analysis, call)[1:2]
    whole = source_call[0].cardinality if source_call else None
    return min(size, whole) if whole is not None and whole >= 0 else size


def held_bytes(iterator: Iterator, size: int) -> int:
    """Bytes already held by the buffer when the free memory was measured."""
    return int((iterator.buffered_elements or 0) * size)


def inputs_bytes(pipeline: Pipeline, iterator: Iterator) -> int | None:
    """Size in bytes of an input element."""
    inputs = pipeline.inputs(iterator)
    return inputs[0].element_bytes if len(inputs) == 1 else None


def maps_that_enlarge(
    analysis: Analysis, pipeline: Pipeline, call: Call, size: int
) -> tuple[tuple[Call, ...], int | None]:
    """The maps directly before the shuffle, nearest first, whose inputs take at most a quarter of their outputs.

    Returns: The maps and the size of their input elements in bytes; `((), None)` if there are none.

    Args:
        analysis: The run.
        pipeline: The executed pipeline, which knows the sizes of elements.
        call: The shuffle.
        size: Size of an element of the shuffle in bytes.

    Returns:
        The maps and the size of their input elements in bytes; `((), None)` if there are none.
    """
    maps: list[Call] = []
    chain = linear_chain(analysis, call)
    for upstream, before in itertools.pairwise(chain[1:]):
        if upstream.method != "map" or upstream.function is None or upstream.function.python_ops:
            break
        maps.append(upstream)
        bytes_before = element_bytes(pipeline, before)
        if bytes_before is not None and 4 * bytes_before <= size:
            return tuple(maps), bytes_before
    return (), None


def _decoded(buffer_size: int, elements: int = 100_000, memory_gib: float = 16.0) -> SimulatedPipeline:
    """Images of 600 kB in a shuffle buffer, decoded from files of 10 kB."""
    return pipeline(
        source(bytes=10_000, elements=elements),
        map_("decode", ms=0.5, bytes=600_000),
        shuffle(buffer_size),
        batch(32),
        consumer_ms=5,
        memory_gib=memory_gib,
    )


EXAMPLES = (
    fires(_decoded(20_000), fixed="ds = ds.shuffle(20000)\nds = ds.map(decode)\nds = ds.batch(32)"),
    fires(
        pipeline(source(bytes=500_000, elements=100_000), shuffle(50_000), batch(32), prefetch(), consumer_ms=50),
    ),
    silent(_decoded(1_000), because="the buffer is small"),
    silent(_decoded(50_000, elements=2_000), because="the dataset has fewer elements than the buffer could hold"),
    silent(_decoded(20_000, memory_gib=512), because="the machine has enough memory"),
)
