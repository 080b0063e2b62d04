"""scalar-map: a function is called for each element although its ops take whole batches as they are."""

from __future__ import annotations

from dataclasses import dataclass, replace

from advisor.model.units import format_ns, format_share
from advisor.rule import (
    NEAR_SHARE,
    Analysis,
    Call,
    Edit,
    Evidence,
    Finding,
    Fix,
    Iter,
    Iterator,
    Note,
    Prediction,
    Rejected,
    Rule,
    Safety,
    batch_after,
    catalog,
    edits_to_batch_first,
    is_cached_downstream,
    is_editable,
    iterators_of_call,
    label,
    moves_after_batch,
    padding_obstacle,
    place,
    predict_batched,
    predict_speedup,
    record_parser,
    wait_share_of,
)
from advisor.testing import batch, fires, map_, padded_batch, pipeline, prefetch, shuffle, silent, source


@dataclass(frozen=True)
class ScalarMap(Rule):
    """A `map` before the `batch` calls its function for each element, although its ops take whole batches as they are.

    ## Why it is slow
    Each call of a map's function costs some microseconds before its first op runs, and each op one or two before it
    computes anything. For a function that adds two numbers, a batch of a thousand elements pays this cost a thousand times.

    ## What the fix does
    It moves the `map` after the `batch`. The function then runs once per batch, on tensors with an additional leading
    dimension. An edit is proposed only if the graph of the function guarantees the same values either way: every op
    is element-wise or accepts batches as they are (look-ups in tables, `tf.gather` from a constant, `one_hot`,
    `decode_raw`, `decode_csv`, `tf.strings` functions, `tf.image.resize`; a `tf.numpy_function` if its function is straight
    code that calls only NumPy's element-wise functions, and others along an axis counted from the end), tensors derived
    from the element that meet in an op have the same number of dimensions, and no constant there has more. Functions with
    other ops may be vectorised (`vectorizable-map`). `advisor fix` compares real elements bit for bit before it keeps the
    change.

    ## When not to
    When the function depends on the shape of its element, or elements have different shapes (ragged tensors). After a
    `padded_batch` that pads, the function also gets the padding. The map moves only if every op is element-wise and the
    function makes 0, False and the empty string of themselves, which is tried out while the script is recorded:
    `x / 255` does, `x - 1` does not. Otherwise the report names the reason.

    ## What tf.data already does
    It runs such maps in parallel and fuses them with the `batch` (`MapAndBatch`). This distributes the calls over
    threads but does not reduce their number.
    """

    min_batch_size: int = 8
    """Elements per batch. With fewer, few calls are saved."""

    def check(self, analysis: Analysis) -> Iter[Finding | Note | Rejected]:
        """Yield a finding for each map of element-wise ops of which one call per batch is worth it."""
        pipeline = analysis.main
        if pipeline is None:
            return
        for iterator in pipeline.iterators:
            call = next((call for call in iterator.calls if call.method == "map"), None)
            if catalog.base_type(iterator.name) not in catalog.MAPS or call is None or not is_elementwise(call):
                continue
            batched = batch_after(pipeline, iterator, ("batch", "padded_batch"))
            size = batched.arguments.get("batch_size") if batched else None
            if batched is None or not isinstance(size, int):
                continue
            if batched.method == "batch" and record_parser(call) is not None:
                continue  # left to parse-per-record
            is_python = call.function is not None and call.function.is_python_row_wise
            # NumPy may make equal shapes of different ones, which the spec of its results does not tell.
            move = moves_after_batch if is_python else edits_to_batch_first
            edits = move(analysis, call, batched)
            is_fused = any(fused.id == batched.id for fused in iterator.calls)
            calls = (iterator.elements or 0) * (size if is_fused else 1)
            op_share = sum(op.total_ns for op in iterator.ops) / iterator.busy_ns if iterator.busy_ns else 1.0
            if not calls or is_cached_downstream(analysis, pipeline, call):
                continue
            prediction = predict_batched(analysis, pipeline, call, iterator, size) if edits is not None else None
            factors = {copy.id: 1 / size for copy in iterators_of_call(pipeline, call)} if is_python else {}
            most = predict_speedup(analysis, pipeline, factors, factors)
            if is_python and prediction is not None and most is not None:
                # How much of its op's time is the way into Python, which one call per batch saves, is unknown.
                value, high = max(prediction.value, (1 + most.value) / 2), max(prediction.high, most.high)
                prediction = replace(prediction, value=value, high=high, best_effects=most.effects)
            call_ns = iterator.busy_ns / calls
            obstacle = None
            if size < self.min_batch_size:
                obstacle = f"with batches of {size}, few calls are saved"
            elif edits is None:
                obstacle = place_obstacle(analysis, call, batched)
            elif prediction is not None and prediction.value < self.min_speedup:
                obstacle = f"its ops take {format_share(op_share)} of the {format_ns(call_ns)} of a call"
                obstacle += ", and one call per batch saves only the rest and the start of each op"
            if obstacle is not None:
                if wait_share_of(pipeline, call) >= NEAR_SHARE:
                    share = Evidence("op_share", op_share, "share")
                    blame = Evidence("blame_share", wait_share_of(pipeline, call), "share")
                    yield self.rejected(f"Batch before {label(call)}", obstacle, call=call, evidence=(blame, share))
                continue
            if edits is None or prediction is None:
                continue
            yield self._advice(
                iterator, call, batched, edits, size, call_ns, op_share, wait_share_of(pipeline, call), prediction
            )

    def _advice(
        self,
        iterator: Iterator,
        call: Call,
        batched: Call,
        edits: tuple[Edit, ...],
        size: int,
        call_ns: float,
        op_share: float,
        blame_share: float,
        prediction: Prediction,
    ) -> Finding:
        ops = (
            f"of which its ops take {format_share(op_share)}"
            if op_share
            else "with ops too short to appear in the profile"
        )
        because = (
            f"{label(call)} at {place(call)} is called once per element, {format_ns(call_ns)} per call, {ops}, and "
            f"causes {format_share(blame_share)} of the wait for input. {why_same(call)}, so one call "
            f"per batch of {size} produces the same values."
        )
        return self.finding(
            f"Batch before {label(call)}: .batch({size}).map({call.function.name if call.function else ''})",
            because,
            call=call,
            iterator=iterator,
            prediction=prediction,
            fix=Fix(edits, Safety.EXACT, is_auto=True)
            if call.function and call.function.is_elementwise and is_editable(call) and is_editable(batched)
            else None,
            evidence=(
                Evidence("blame_share", blame_share, "share"),
                Evidence("time_per_call", call_ns, "ns"),
                Evidence("op_share", op_share, "share"),
                Evidence("batch_size", size, "elements"),
            ),
        )


def why_same(call: Call) -> str:
    """Why the function takes batches, as a clause."""
    layers = call.function.batch_layers if call.function is not None else ()
    if call.function is not None and call.function.is_python_row_wise:
        return "Its NumPy function computes each row on its own, and its ops are element-wise"
    return (
        f"{' and '.join(layers)} take{'s' * (len(layers) == 1)} batches, too" if layers else "Its ops are element-wise"
    )


def place_obstacle(analysis: Analysis, call: Call, batched: Call) -> str | None:
    """Why a map of element-wise ops stays before its batch, as a clause.

    Args:
        analysis: The run.
        call: The map.
        batched: The `batch` or `padded_batch` after it.

    Returns:
        The clause; None if the padding is no obstacle.
    """
    if batched.method == "padded_batch":
        return padding_obstacle(analysis, call, batched)
    return "its elements may differ in shape, or another call between it and the batch works on single elements"


def is_elementwise(call: Call) -> bool:
    """Whether the function produces the same result on a batch as on its elements.

    Old recordings contain no shape information. In this case the op types decide, and no edit is proposed.
    """
    function = call.function
    known = catalog.ELEMENTWISE_OPS | catalog.ELEMENT_SPLITTING_OPS
    if function is not None and function.is_elementwise:
        known |= catalog.BATCH_FORM_OPS
        known |= frozenset(function.ops) if function.batch_layers and not function.random_ops else frozenset()
        known |= frozenset(function.python_ops) if function.is_python_row_wise else frozenset()
    if function is None or not function.ops or not known.issuperset(function.ops):
        return False
    return function.is_elementwise is not False


_SCALE = ("Cast", "RealDiv", "Sub")
_VOCABULARY = ("LookupTableFindV2", "StringToHashBucketFast", "LookupTableSizeV2", "Add", "NotEqual", "SelectV2")
_WORD = "TensorSpec(shape=(), dtype=tf.string, name=None)"
_LAYER = ("StringLower", "StringSplitV2", "LookupTableFindV2", "PadV2")
_CLASS = "TensorSpec(shape=(10,), dtype=tf.float32, name=None)"
_ANY = "TensorSpec(shape=(None,), dtype=tf.float32, name=None)"
_PADDED = "TensorSpec(shape=(None, None), dtype=tf.float32, name=None)"

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
    fires(
        pipeline(
            source("TensorSlice", spec=_WORD),
            map_("encode", ms=0.03, ops=("LookupTableFindV2", "OneHot"), op_share=0.2, elementwise=True, spec=_CLASS),
            padded_batch(256, bytes=10_240, spec=_CLASS.replace("(10,)", "(None, 10)")),
            consumer_ms=1,
            cores=2,
        ),
        fixed="ds = ds.padded_batch(256)\nds = ds.map(encode)",
    ),
    fires(
        pipeline(
            source("TensorSlice", spec=_ANY),
            map_("scale", ms=0.03, ops=_SCALE, op_share=0.2, elementwise=True, keeps_padding=True, spec=_ANY),
            padded_batch(256, bytes=10_240, spec=_PADDED),
            consumer_ms=1,
            cores=2,
        ),
        fixed="ds = ds.padded_batch(256)\nds = ds.map(scale)",
    ),
    fires(
        pipeline(
            source("TensorSlice", spec=_WORD),
            map_("encode", ms=0.03, ops=_VOCABULARY, op_share=0.2, elementwise=True, captured=("HashTableV2",)),
            batch(256),
            consumer_ms=1,
            cores=2,
        ),
        fixed="ds = ds.batch(256)\nds = ds.map(encode)",
    ),
    fires(
        pipeline(
            source("TensorSlice", spec=_WORD),
            map_(
                "encode", ms=0.3, ops=_LAYER, op_share=0.2, elementwise=True, layers=("TextVectorization",), spec=_CLASS
            ),
            batch(256),
            consumer_ms=1,
            cores=2,
        ),
        fixed="ds = ds.batch(256)\nds = ds.map(encode)",
    ),
    silent(
        pipeline(
            source("TensorSlice", spec=_WORD),
            map_("encode", ms=0.3, ops=_LAYER, op_share=0.2, elementwise=True, spec=_CLASS),
            batch(256),
            consumer_ms=1,
            cores=2,
        ),
        because="nothing is known of a layer with other settings",
    ),
    silent(
        pipeline(
            source("TensorSlice", spec=_WORD),
            map_(
                "encode",
                ms=0.3,
                ops=_LAYER,
                op_share=0.2,
                elementwise=True,
                layers=("TextVectorization",),
                spec=_CLASS,
                random=True,
            ),
            batch(256),
            consumer_ms=1,
            cores=2,
        ),
        because="all rows of a batch would share the random numbers that each draws now",
    ),
    fires(
        pipeline(
            source("TensorSlice", spec=_WORD),
            map_("features", ms=0.1, python=True, op_share=0.2, elementwise=True, row_wise=True),
            batch(256),
            consumer_ms=1,
            cores=2,
        ),
        fixed="ds = ds.batch(256)\nds = ds.map(features)",
    ),
    silent(
        pipeline(
            source("TensorSlice", spec=_ANY),
            map_("features", ms=0.1, python=True, op_share=0.2, elementwise=True, row_wise=True),
            batch(256),
            consumer_ms=1,
            cores=2,
        ),
        because="NumPy may make results of one shape of elements of several",
    ),
    silent(
        pipeline(
            source("TensorSlice", spec=_WORD),
            map_("features", ms=0.1, python=True, op_share=0.2, elementwise=True),
            batch(256),
            consumer_ms=1,
            cores=2,
        ),
        because="it is not known that the Python code computes each row on its own",
    ),
    silent(
        pipeline(
            source("TensorSlice", spec=_ANY),
            map_("shift", ms=0.03, ops=_SCALE, op_share=0.2, elementwise=True, keeps_padding=False, spec=_ANY),
            padded_batch(256, bytes=10_240, spec=_PADDED),
            consumer_ms=1,
            cores=2,
        ),
        because="the function would change the padding",
    ),
    silent(
        pipeline(
            source("TensorSlice", spec=_ANY),
            map_("scale", ms=0.03, ops=_SCALE, op_share=0.2, elementwise=True, keeps_padding=True, spec=_ANY),
            padded_batch(256, bytes=10_240, spec=_PADDED, padding_values=1.0),
            consumer_ms=1,
            cores=2,
        ),
        because="the script pads with a value that the function would change",
    ),
    silent(
        pipeline(
            source(),
            map_("scale", ms=0.02, ops=_SCALE, op_share=0.1, elementwise=False),
            batch(1024),
            consumer_ms=1,
            cores=2,
        ),
        because="because of its shapes, the function computes something else on a batch",
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
        because="another map needs its single elements",
    ),
    silent(
        pipeline(source("Range"), batch(1024), map_("scale", ms=5, ops=_SCALE, op_share=0.9), consumer_ms=1, cores=2),
        because="the map already runs on batches",
    ),
    silent(
        pipeline(
            source(), map_("decode", ms=0.05, ops=("DecodeJpeg",), op_share=0.4), batch(64), consumer_ms=0.1, cores=2
        ),
        because="its op works only on a single element",
    ),
    silent(
        pipeline(source("Range"), map_("clean", ms=5, ops=_SCALE, op_share=0.99), batch(1024), consumer_ms=1, cores=2),
        because="the ops take long, and one call per batch saves only their start",
    ),
    silent(
        pipeline(
            source("Range"), map_("scale", ms=0.02, ops=_SCALE, op_share=0.1), batch(4), consumer_ms=0.01, cores=2
        ),
        because="with a batch of four, few calls are saved",
    ),
)
