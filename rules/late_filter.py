"""late-filter: costly work is done on elements that a later filter drops."""

from __future__ import annotations

from dataclasses import dataclass

from advisor.model.units import format_share
from advisor.rule import (
    NEAR_SHARE,
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
    Rejected,
    Rule,
    Safety,
    catalog,
    is_cached_downstream,
    is_editable,
    is_retraced_alike,
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
    The work that the map does on the dropped elements is wasted.

    ## What the fix does
    It moves the map after the filter. A finding requires that the graphs of both functions show that the filter is
    independent of the map: every component read by the filter passes through the map unchanged, at the same position.
    The remaining elements and their order stay the same; a map that draws random numbers draws different ones. The
    fix is tried unasked if both functions are known to be pure and the map changes neither the types nor the shapes of
    its components, or if the text of the filter names only components of which it changes neither (`lambda image,
    label: label < 3`). Otherwise TensorFlow traces the filter again, for the unmapped form of the other components: its
    Python code may refuse this form, or decide by it (`if image.shape.rank == 3`), which compared elements need not
    show. In that case the fix is tried only on request and verified on real elements.

    ## When not to
    When the filter depends on the output of the map.

    ## What tf.data already does
    Nothing: it preserves the order of maps and filters.
    """

    min_dropped_share: float = 0.1
    """Share of the elements that the filter drops. With less, the saving is negligible."""

    def check(self, analysis: Analysis) -> Iter[Finding | Note | Rejected]:
        """Yield a finding for each filter directly preceded by maps that it does not depend on."""
        pipeline = analysis.main
        if pipeline is None:
            return
        for iterator in pipeline.iterators:
            call = next((call for call in iterator.calls if call.method == "filter"), None)
            dropped = dropped_share(pipeline, iterator)
            if call is None or dropped is None:
                continue
            maps = independent_maps(analysis, call)
            costs = [it for map_call in maps for it in iterators_of_call(pipeline, map_call)]
            if is_cached_downstream(analysis, pipeline, call):
                continue
            if not maps or dropped < self.min_dropped_share:
                yield from self._staying(analysis, pipeline, call, dropped, maps)
                continue
            if not costs:
                continue
            kept = {it.id: 1 - dropped for it in costs}
            share = sum(it.blame_share for it in costs)
            names = " and ".join(label(map_call) for map_call in reversed(maps))
            safety = max((parallel_safety(map_call) for map_call in maps), key=list(Safety).index)
            edits = tuple(
                MoveAfter(map_call.id, call.id) for map_call in maps
            )  # nearest first: each move inserts before the previous one
            yield self.finding(
                f"Filter before {names}",
                f"{label(call)} at {place(call)} drops {format_share(dropped)} of the elements processed by {names}, "
                f"which causes {format_share(share)} of the wait for input, and does not depend on the output of "
                f"{names}.",
                call=call,
                iterator=iterator,
                prediction=predict_speedup(analysis, pipeline, kept, kept),
                fix=Fix(edits, safety, is_auto=is_known_to_hold(analysis, call, maps))
                if all(is_editable(edited) for edited in (call, *maps))
                else None,
                evidence=(
                    Evidence("blame_share", share, "share"),
                    Evidence("dropped_share", dropped, "share"),
                ),
            )

    def _staying(
        self, analysis: Analysis, pipeline: Pipeline, call: Call, dropped: float, maps: tuple[Call, ...]
    ) -> Iter[Rejected]:
        """Yield why a costly map directly before a filter stays there, unless the filter drops nothing."""
        before = linear_chain(analysis, call)[1:2]
        share = sum(it.blame_share for other in before for it in iterators_of_call(pipeline, other))
        if not before or before[0].method != "map" or share < NEAR_SHARE or dropped <= 0:
            return
        reason = f"the filter drops {format_share(dropped)} of its elements"
        if not maps:
            is_known = call.function is not None and call.function.used_inputs is not None
            what = "reads what the map makes" if is_known else "may read what the map makes"
            reason = f"{reason}, but {what}"
        yield self.rejected(
            f"Filter before {label(before[0])}",
            reason,
            call=call,
            evidence=(Evidence("blame_share", share, "share"), Evidence("dropped_share", dropped, "share")),
        )


def dropped_share(pipeline: Pipeline, iterator: Iterator) -> float | None:
    """Share of its input that a filter dropped in the window; None if it is not a filter or was not counted."""
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


def is_known_to_hold(analysis: Analysis, call: Call, maps: tuple[Call, ...]) -> bool:
    """Whether a filter is known to be the same function before the maps as after them, and all of them are pure.

    Args:
        analysis: The analysis.
        call: The filter.
        maps: The maps directly before it, nearest first, on which it does not depend.
    """
    return is_retraced_alike(analysis, call, maps) and all(
        other.function is not None
        and other.function.is_traced
        and not other.function.is_stateful
        and other.function.stateful_ops == ()
        and not (other.function.random_ops or other.function.python_ops)
        and not (other.function.resources or other.function.captured)
        for other in (call, *maps)
    )


def independent_maps(analysis: Analysis, call: Call) -> tuple[Call, ...]:
    """The maps directly before a filter that do not produce anything it reads; nearest first."""
    reads = call.function.used_inputs if call.function else None
    independent: list[Call] = []
    for upstream in linear_chain(analysis, call)[1:]:
        if upstream.method != "map" or upstream.function is None or reads is None or not reads:
            break
        if not {(component, component) for component in reads} <= set(upstream.function.unchanged):
            break
        independent.append(upstream)
    return tuple(independent)


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
        because="the filter depends on the output of the map",
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
        because="the filter precedes the map",
    ),
)
