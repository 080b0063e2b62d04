"""late-shuffle: at the beginning of each epoch training waits until costly maps have filled a shuffle's buffer."""

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
    """Costly maps stand before a shuffle, so that every epoch begins with a wait until its buffer is full of finished elements.

    ## Why it is slow
    A shuffle gives nothing before its buffer is full, in every epoch, and nothing is trained meanwhile. What the maps before it
    do for those first elements is time in which training stands still. Behind the shuffle the same maps work beside the training.

    ## What the fix does
    The maps directly before the shuffle move behind it. The buffer then holds what the maps are given, in the same order; maps
    without chance make the same elements of it, maps that draw random numbers draw others. The whole script decides, for the
    pipeline alone does the same work before and after.

    ## When not to
    Where the pipeline is so slow that training waits for every element anyway: then it does not matter when the work is done.
    Where the maps make their elements much smaller, the buffer takes more memory than before; that is counted.

    ## What tf.data already does
    It keeps the order of maps and shuffles. A `prefetch` at the end does not help: no element is there to be fetched ahead.
    """

    min_fill_share: float = 0.1
    """Share of an epoch's time that the maps take for the elements of the buffer. With less, the epoch's beginning hardly
    shows."""

    def check(self, analysis: Analysis) -> Iter[Finding | Note]:
        """A finding for each shuffle whose filling takes a large part of an epoch."""
        pipeline = analysis.main
        if pipeline is None or pipeline.num_elements <= 0:
            return
        for iterator in pipeline.iterators:
            call = next((each for each in iterator.calls if each.method == "shuffle"), None)
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
        each_ns = sum(element_ns(pipeline, each) for each in maps)
        if not isinstance(size, int) or size <= 0 or not iterator.elements:
            return
        steps = count * pipeline.num_elements / iterator.elements
        held = min(size, count)
        fill_ns, epoch_ns = held * each_ns, steps * pipeline.step_ns
        if epoch_ns <= 0 or fill_ns < self.min_fill_share * epoch_ns:
            return
        names = " and ".join(label(each) for each in reversed(maps))
        grown = max(0, (bytes_before(analysis, pipeline, maps[-1]) or 0) - (element_bytes(pipeline, call) or 0))
        safety = max((parallel_safety(each) for each in maps), key=list(Safety).index)
        edits = tuple(
            MoveAfter(each.id, call.id) for each in maps
        )  # nearest first: the later one comes to stand before
        yield self.finding(
            f"Shuffle before {names}",
            f"shuffle at {place(call)} gives nothing before {names} {'have' if len(maps) > 1 else 'has'} made {held} elements: "
            f"about {format_ns(fill_ns)} at the beginning of each epoch, {format_share(fill_ns / epoch_ns)} of the time "
            "that its "
            "steps take.",
            call=call,
            iterator=iterator,
            prediction=predict_without_start(analysis, pipeline, fill_ns, steps),
            memory_bytes=held * grown,
            fix=Fix(edits, safety, is_auto=True) if all(is_editable(each) for each in (call, *maps)) else None,
            evidence=(
                Evidence("fill", fill_ns, "ns"),
                Evidence("epoch", epoch_ns, "ns"),
                Evidence("buffer_elements", held, "elements"),
            ),
        )


def maps_before(analysis: Analysis, call: Call) -> tuple[Call, ...]:
    """The maps directly before the shuffle, nearest first."""
    found = []
    for each in linear_chain(analysis, call)[1:]:
        if each.method != "map" or each.function is None or parallel_safety(each) is Safety.CHANGES:
            break
        found.append(each)
    return tuple(found)


def element_ns(pipeline: Pipeline, call: Call) -> float:
    """What a map keeps its consumer waiting for an element: its work over the threads that share it."""
    costs = [it for it in iterators_of_call(pipeline, call) if it.elements]
    return sum(it.busy_ns / max(1, it.parallelism or 1) / it.elements for it in costs) * pipeline.plain_over_profiled


def bytes_before(analysis: Analysis, pipeline: Pipeline, call: Call) -> int | None:
    """Bytes of an element that the map is given."""
    feeding = linear_chain(analysis, call)[1:2]
    return element_bytes(pipeline, feeding[0]) if feeding else None


def _augmented(
    buffer_size: int = 2_000, elements: int = 4_000, consumer_ms: float = 30.0, random: bool = True
) -> SimulatedPipeline:
    """A cached data set that is augmented, a millisecond an element, and shuffled."""
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
    silent(_augmented(buffer_size=100), because="the buffer is soon full"),
    silent(_augmented(elements=4_000_000), because="an epoch is so long that its beginning does not count"),
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
        because="the shuffle stands before the map",
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
        because="nobody knows how long an epoch is",
    ),
)
