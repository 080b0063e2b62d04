"""late-filter: costly work is done on elements that a filter then drops."""

from __future__ import annotations

from dataclasses import dataclass

from advisor.model.units import format_share
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
    is_cached_behind,
    is_editable,
    iterators_of_call,
    label,
    linear_chain,
    parallel_safety,
    place,
    predict_speedup,
)
from advisor.testing import AUTOTUNE, batch, filter_, fires, map_, pipeline, silent, source


@dataclass(frozen=True)
class LateFilter(Rule):
    """A `filter` drops elements after a costly `map` that it does not depend on.

    ## Why it is slow
    What the map does to the elements that are dropped is thrown away.

    ## What the fix does
    The map moves behind the filter. The rule speaks only where the graphs of both functions show that the filter reads nothing
    that the map makes: every component that the filter reads passes through the map as it is, at the same place. The elements
    that remain, and their order, are the same; a map that draws random numbers draws others. Since a filter is a function of the
    whole element, whose other components it must accept too, the change is applied only when asked for, and proved on real
    elements.

    ## When not to
    When the map makes what the filter looks at.

    ## What tf.data already does
    Nothing here: it keeps the order of maps and filters.
    """

    min_dropped_share: float = 0.1
    """Share of the elements that the filter drops. With less, next to nothing is saved."""

    def check(self, analysis: Analysis) -> Iter[Finding | Note]:
        """A finding for each filter with a map directly before it that it is independent of."""
        pipeline = analysis.main
        if pipeline is None:
            return
        for iterator in pipeline.iterators:
            call = next((each for each in iterator.calls if each.method == "filter"), None)
            dropped = dropped_share(pipeline, iterator)
            if call is None or dropped is None or dropped < self.min_dropped_share:
                continue
            maps = independent_maps(analysis, call)
            costs = [it for each in maps for it in iterators_of_call(pipeline, each)]
            if not maps or not costs or is_cached_behind(analysis, pipeline, call):
                continue
            kept = {it.id: 1 - dropped for it in costs}
            share = sum(it.blame_share for it in costs)
            names = " and ".join(label(each) for each in reversed(maps))
            safety = max((parallel_safety(each) for each in maps), key=list(Safety).index)
            edits = tuple(
                MoveAfter(each.id, call.id) for each in maps
            )  # nearest first: the later one comes to stand before
            yield self.finding(
                f"Filter before {names}",
                f"{label(call)} at {place(call)} drops {format_share(dropped)} of the elements that {names} worked on, "
                f"which causes {format_share(share)} of the wait for input, and reads nothing that {names} makes.",
                call=call,
                iterator=iterator,
                prediction=predict_speedup(analysis, pipeline, kept, kept),
                fix=Fix(edits, safety, is_auto=False) if all(is_editable(each) for each in (call, *maps)) else None,
                evidence=(
                    Evidence("blame_share", share, "share"),
                    Evidence("dropped_share", dropped, "share"),
                ),
            )


def dropped_share(pipeline: Pipeline, iterator: Iterator) -> float | None:
    """Share of its input's elements that a filter dropped in the window; None: not a filter, or not counted."""
    if catalog.base_type(iterator.name) not in ("Filter", "ParallelFilter"):
        return None
    inputs = pipeline.inputs(iterator)
    taken = inputs[0].elements if len(inputs) == 1 else None
    if taken and iterator.elements and taken >= iterator.elements:
        return 1 - iterator.elements / taken
    passed, dropped = iterator.parameters.get("passed"), iterator.parameters.get("filtered")
    if isinstance(passed, int) and isinstance(dropped, int) and passed + dropped > 0:
        return dropped / (passed + dropped)
    return None


def independent_maps(analysis: Analysis, call: Call) -> tuple[Call, ...]:
    """The maps directly before a filter that make nothing of what it reads; nearest first."""
    reads = call.function.used_inputs if call.function else None
    found: list[Call] = []
    for each in linear_chain(analysis, call)[1:]:
        if each.method != "map" or each.function is None or reads is None or not reads:
            break
        if not {(component, component) for component in reads} <= set(each.function.unchanged):
            break
        found.append(each)
    return tuple(found)


EXAMPLES = (
    fires(
        pipeline(
            source(),
            map_("load", ms=3, calls=AUTOTUNE, unchanged=[(1, 1)]),
            filter_("is_wanted", ms=0.01, keep=0.25, reads=[1]),
            batch(16),
            consumer_ms=5,
            cores=4,
        ),
        fixed="ds = ds.filter(is_wanted)\nds = ds.map(load, num_parallel_calls=tf.data.AUTOTUNE)\nds = ds.batch(16)",
    ),
    fires(
        pipeline(
            source(),
            map_("read", ms=1, unchanged=[(1, 1)]),
            map_("decode", ms=3, unchanged=[(1, 1)]),
            filter_("is_wanted", ms=0.01, keep=0.5, reads=[1]),
            batch(16),
            consumer_ms=5,
            cores=4,
        ),
        fixed="ds = ds.filter(is_wanted)\nds = ds.map(read)\nds = ds.map(decode)\nds = ds.batch(16)",
    ),
    silent(
        pipeline(
            source(),
            map_("load", ms=3, unchanged=[(1, 1)]),
            filter_("is_bright", ms=0.01, keep=0.25, reads=[0, 1]),
            batch(16),
            consumer_ms=5,
            cores=4,
        ),
        because="the filter looks at what the map makes",
    ),
    silent(
        pipeline(
            source(),
            map_("load", ms=3, unchanged=[(1, 1)]),
            filter_("is_wanted", ms=0.01, keep=0.98, reads=[1]),
            batch(16),
            consumer_ms=5,
            cores=4,
        ),
        because="the filter drops hardly anything",
    ),
    silent(
        pipeline(
            source(),
            filter_("is_wanted", ms=0.01, keep=0.25, reads=[1]),
            map_("load", ms=3, unchanged=[(1, 1)]),
            batch(16),
            consumer_ms=5,
            cores=4,
        ),
        because="the filter stands before the map",
    ),
)
