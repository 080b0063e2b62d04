"""late-shuffle: at the start of each epoch, training waits until costly maps have filled a shuffle buffer."""

from __future__ import annotations

from dataclasses import dataclass

from advisor.model.units import format_ns, format_share
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
    elements_per_epoch,
    is_editable,
    iterators_of_call,
    label,
    linear_chain,
    parallel_safety,
    place,
    predict_without_start,
)
from advisor.testing import (
    AUTOTUNE,
    SimulatedPipeline,
    batch,
    cache,
    fires,
    map_,
    pipeline,
    shuffle,
    silent,
    source,
    unknown_size,
)


@dataclass(frozen=True)
class LateShuffle(Rule):
    """Costly maps precede a shuffle, so every epoch starts with a wait until the buffer is full of processed elements.

    ## Why it is slow
    In every epoch, a shuffle emits its first element only when its buffer is full, and training is idle until then. The
    time that the preceding maps spend on these elements delays the epoch. After the shuffle, the same maps would run in
    parallel with training.

    ## What the fix does
    It moves the maps directly before the shuffle to a place after it. The buffer then holds the inputs of the maps, in
    the same shuffled order. Deterministic maps produce the same elements; maps that draw random numbers draw different
    ones. The fix is judged by a run of the whole script, because the pipeline alone does the same work either way.

    ## When not to
    When the pipeline is so slow that training waits for every element anyway; the time at which the work is done then
    makes no difference. If the maps make their elements much smaller, the buffer takes more memory than before; the
    finding includes this amount.

    ## What tf.data already does
    It preserves the order of maps and shuffles. A `prefetch` at the end does not help, because no element is available
    to prefetch.
    """

    min_fill_share: float = 0.1
    """Share of an epoch's time that the maps take to fill the buffer. With less, the delay is hardly noticeable."""

    def check(self, analysis: Analysis) -> Iter[Finding | Note]:
        """Yield a finding for each shuffle whose buffer takes a large part of an epoch to fill."""
        pipeline = analysis.main
        if pipeline is None or pipeline.num_elements <= 0:
            return
        for iterator in pipeline.iterators:
            call = next((call for call in iterator.calls if call.method == "shuffle"), None)
            if call is None or call.nested_in or catalog.base_type(iterator.name) not in catalog.SHUFFLES:
                continue
            maps = maps_before(analysis, call)
            count = elements_per_epoch(analysis, pipeline, call) if maps else None
            if count:
                yield from self._advice(analysis, pipeline, iterator, call, maps, count)

    def _advice(
        self, analysis: Analysis, pipeline: Pipeline, iterator: Iterator, call: Call, maps: tuple[Call, ...], count: int
    ) -> Iter[Finding]:
        size = call.arguments.get("buffer_size")
        element_cost_ns = sum(element_ns(pipeline, map_call) for map_call in maps)
        if not isinstance(size, int) or size <= 0 or not iterator.elements:
            return
        steps = count * pipeline.num_elements / iterator.elements
        held = min(size, count)
        fill_ns, epoch_ns = held * element_cost_ns, steps * pipeline.step_ns
        if epoch_ns <= 0 or fill_ns < self.min_fill_share * epoch_ns:
            return
        names = " and ".join(label(map_call) for map_call in reversed(maps))
        grown = max(0, (bytes_before(analysis, pipeline, maps[-1]) or 0) - (element_bytes(pipeline, call) or 0))
        safety = max((parallel_safety(map_call) for map_call in maps), key=list(Safety).index)
        edits = tuple(
            MoveAfter(map_call.id, call.id) for map_call in maps
        )  # nearest first: each move inserts before the previous one
        yield self.finding(
            f"Shuffle before {names}",
            f"shuffle at {place(call)} emits nothing until {names} {'have' if len(maps) > 1 else 'has'} produced "
            f"{held} elements: about {format_ns(fill_ns)} at the start of each epoch, "
            f"{format_share(fill_ns / epoch_ns)} of the time of its steps.",
            call=call,
            iterator=iterator,
            prediction=predict_without_start(analysis, pipeline, fill_ns, steps),
            memory_bytes=held * grown,
            fix=Fix(edits, safety, is_auto=True) if all(is_editable(edited) for edited in (call, *maps)) else None,
            evidence=(
                Evidence("fill", fill_ns, "ns"),
                Evidence("epoch", epoch_ns, "ns"),
                Evidence("buffer_elements", held, "elements"),
            ),
        )


def maps_before(analysis: Analysis, call: Call) -> tuple[Call, ...]:
    """The maps directly before the shuffle, nearest first."""
    maps = []
    for upstream in linear_chain(analysis, call)[1:]:
        if upstream.method != "map" or upstream.function is None or parallel_safety(upstream) is Safety.CHANGES:
            break
        maps.append(upstream)
    return tuple(maps)


def element_ns(pipeline: Pipeline, call: Call) -> float:
    """Time per element that the consumer waits for a map: its work divided by the number of its parallel calls."""
    per_element = (
        it.busy_ns / max(1, it.parallelism or 1) / it.elements
        for it in iterators_of_call(pipeline, call)
        if it.elements
    )
    return sum(per_element) * pipeline.unprofiled_ratio


def bytes_before(analysis: Analysis, pipeline: Pipeline, call: Call) -> int | None:
    """Size in bytes of the map's input elements.

    Args:
        analysis: The run.
        pipeline: The executed pipeline, which knows the sizes of elements.
        call: The map.

    Returns:
        The size; None if it is unknown.
    """
    feeding = linear_chain(analysis, call)[1:2]
    return element_bytes(pipeline, feeding[0]) if feeding else None


def _augmented(
    buffer_size: int = 2_000, elements: int = 4_000, consumer_ms: float = 30.0, random: bool = True
) -> SimulatedPipeline:
    """A cached dataset whose elements are augmented, at 1 ms per element, and then shuffled."""
    return pipeline(
        source(bytes=9_000, elements=elements),
        cache(),
        map_("augment", ms=1, random=random),
        shuffle(buffer_size),
        batch(32),
        consumer_ms=consumer_ms,
        cores=2,
        epochs=3,
    )


EXAMPLES = (
    fires(_augmented(), fixed="ds = ds.shuffle(2000)\nds = ds.map(augment)\nds = ds.batch(32)"),
    fires(_augmented(buffer_size=100_000), fixed="ds = ds.shuffle(100000)\nds = ds.map(augment)\nds = ds.batch(32)"),
    fires(
        pipeline(
            source(elements=4_000),
            cache(),
            map_("scale", ms=0.5),
            map_("augment", ms=0.5, random=True, calls=AUTOTUNE),
            shuffle(2_000),
            batch(32),
            consumer_ms=24,
            cores=2,
        ),
        fixed="ds = ds.shuffle(2000)\nds = ds.map(scale)\nds = ds.map(augment, num_parallel_calls=tf.data.AUTOTUNE)\n",
    ),
    silent(_augmented(buffer_size=100), because="the buffer fills quickly"),
    silent(_augmented(elements=4_000_000), because="an epoch is long compared with its start"),
    silent(_augmented(consumer_ms=1), because="training waits for every element anyway"),
    silent(
        pipeline(
            source(elements=4_000),
            shuffle(2_000),
            map_("augment", ms=1, random=True),
            batch(32),
            consumer_ms=30,
            cores=2,
        ),
        because="the shuffle precedes the map",
    ),
    silent(
        pipeline(
            unknown_size(source()),
            map_("augment", ms=1, random=True),
            shuffle(2_000),
            batch(32),
            consumer_ms=30,
            cores=2,
        ),
        because="the length of an epoch is unknown",
    ),
)
