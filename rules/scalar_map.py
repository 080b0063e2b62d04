"""scalar-map: a cheap function is called so often that calling it is the cost."""

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
    batch_behind,
    catalog,
    is_editable,
    label,
    place,
    predict_speedup,
)
from advisor.testing import batch, fires, map_, pipeline, prefetch, shuffle, silent, source


@dataclass(frozen=True)
class ScalarMap(Rule):
    """A `map` before the `batch` does next to nothing for each element, and calling it is what costs.

    ## Why it is slow
    Every call of a map's function costs some microseconds before its first op runs. For a function that adds two numbers, a
    batch of a thousand elements pays that a thousand times.

    ## What the fix does
    The `map` moves behind the `batch`. The function then runs once per batch, on tensors with one more dimension in front. The
    rule speaks only of functions of whose graph it is certain that they give the same values either way: every op works element
    by element, all tensors that stem from the element have the same number of dimensions, and no constant has more. `advisor fix`
    compares real elements, bit for bit, before it keeps the change.

    ## When not to
    When the function looks at the shape of its element, or elements have different shapes (`padded_batch`, ragged tensors).

    ## What tf.data already does
    It runs such maps in parallel and fuses them with the `batch` (`MapAndBatch`), which spreads the calls over threads but makes
    them no fewer.
    """

    min_batch_size: int = 8
    """Elements per batch. With fewer, there are few calls to save."""
    max_call_us: float = 100.0
    """Microseconds of one call, ops included. Calling a function costs about 10 to 50 us; what takes longer does real work."""
    max_op_share: float = 0.5
    """Share of the call's time inside its ops. Above a half, the ops are the cost."""

    def check(self, analysis: Analysis) -> Iter[Finding | Note]:
        """A finding for each map of element-wise ops whose calls cost more than their ops."""
        pipeline = analysis.main
        if pipeline is None:
            return
        for iterator in pipeline.iterators:
            call = next((call for call in iterator.calls if call.method == "map"), None)
            if catalog.base_type(iterator.name) not in catalog.MAPS or call is None or not is_elementwise(call):
                continue
            batched = batch_behind(pipeline, iterator)
            size = batched.arguments.get("batch_size") if batched else None
            if batched is None or not isinstance(size, int):
                continue
            is_fused = any(each.id == batched.id for each in iterator.calls)
            calls = (iterator.elements or 0) * (size if is_fused else 1)
            op_share = sum(op.total_ns for op in iterator.ops) / iterator.busy_ns if iterator.busy_ns else 1.0
            if not calls or size < self.min_batch_size or op_share > self.max_op_share:
                continue
            call_ns = iterator.busy_ns / calls
            if call_ns > self.max_call_us * 1_000:
                continue
            yield self._advice(analysis, pipeline, iterator, call, batched, size, call_ns, op_share)

    def _advice(
        self,
        analysis: Analysis,
        pipeline: Pipeline,
        iterator: Iterator,
        call: Call,
        batched: Call,
        size: int,
        call_ns: float,
        op_share: float,
    ) -> Finding:
        left = op_share + (1 - op_share) / size
        prediction = predict_speedup(analysis, pipeline, {iterator.id: left}, {iterator.id: left})
        ops = (
            f"its ops take {format_share(op_share)} of that"
            if op_share
            else "its ops too short for the profile to show"
        )
        because = (
            f"{label(call)} at {place(call)} is called once per element, {format_ns(call_ns)} a call, {ops}, and "
            f"causes {format_share(iterator.blame_share)} of the wait for input. Its ops work element by element, so "
            f"one call per batch of {size} gives the same values."
        )
        return self.finding(
            f"Batch before {label(call)}: .batch({size}).map({call.function.name if call.function else ''})",
            because,
            call=call,
            iterator=iterator,
            prediction=prediction,
            fix=Fix((MoveAfter(call.id, batched.id),), Safety.EXACT, is_auto=True)
            if call.function and call.function.is_elementwise and is_editable(call) and is_editable(batched)
            else None,
            evidence=(
                Evidence("blame_share", iterator.blame_share, "share"),
                Evidence("time_per_call", call_ns, "ns"),
                Evidence("op_share", op_share, "share"),
                Evidence("batch_size", size, "elements"),
            ),
        )


def is_elementwise(call: Call) -> bool:
    """Whether the function gives the same on a batch as on its elements. Recordings made before the graph was looked at say
    nothing of its shapes: then its ops decide, and nothing is changed.
    """
    function = call.function
    if function is None or not function.ops or not catalog.ELEMENTWISE_OPS.issuperset(function.ops):
        return False
    return function.is_elementwise is not False


_SCALE = ("Cast", "RealDiv", "Sub")

EXAMPLES = (
    fires(
        pipeline(
            source("Range"),
            map_("scale", ms=0.02, ops=_SCALE, op_share=0.1, elementwise=True),
            batch(1024),
            consumer_ms=1,
            cores=2,
        ),
        fixed="ds = ds.batch(1024)\nds = ds.map(scale)",
    ),
    fires(
        pipeline(
            source(),
            map_("scale", ms=0.03, ops=_SCALE, op_share=0.2, elementwise=True),
            shuffle(),
            batch(256),
            prefetch(),
            consumer_ms=0.5,
            cores=4,
        ),
        fixed="ds = ds.batch(256)\nds = ds.map(scale)",
    ),
    fires(
        pipeline(source("Range"), map_("scale", ms=0.02, ops=_SCALE, op_share=0.1), batch(1024), consumer_ms=1, cores=2)
    ),
    silent(
        pipeline(
            source(),
            map_("scale", ms=0.02, ops=_SCALE, op_share=0.1, elementwise=False),
            batch(1024),
            consumer_ms=1,
            cores=2,
        ),
        because="its shapes make it something else on a batch",
    ),
    silent(
        pipeline(
            source(),
            map_("scale", ms=0.02, ops=_SCALE, op_share=0.1, elementwise=True),
            map_("make_image", ms=0.001, bytes=5_000, calls=1),
            batch(1024),
            consumer_ms=1,
            cores=2,
        ),
        because="another map takes its single elements",
    ),
    silent(
        pipeline(source("Range"), batch(1024), map_("scale", ms=5, ops=_SCALE, op_share=0.9), consumer_ms=1, cores=2),
        because="it runs on batches already",
    ),
    silent(
        pipeline(
            source(), map_("decode", ms=0.05, ops=("DecodeJpeg",), op_share=0.4), batch(64), consumer_ms=0.1, cores=2
        ),
        because="its op works on one element only",
    ),
    silent(
        pipeline(
            source("Range"), map_("scale", ms=0.02, ops=_SCALE, op_share=0.9), batch(1024), consumer_ms=1, cores=2
        ),
        because="its ops are the cost, not the calls",
    ),
    silent(
        pipeline(
            source("Range"), map_("scale", ms=0.02, ops=_SCALE, op_share=0.1), batch(4), consumer_ms=0.01, cores=2
        ),
        because="a batch of four saves few calls",
    ),
)
