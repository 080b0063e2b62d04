"""parse-per-record: records are parsed one at a time although the parser accepts a whole batch."""

from __future__ import annotations

from dataclasses import dataclass, replace

from advisor.model.units import format_ns, format_share
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
    batch_after,
    batch_parser,
    catalog,
    is_cached_downstream,
    is_editable,
    iterators_of_call,
    label,
    linear_chain,
    mixed_function,
    moves_after_batch,
    parallel_calls,
    place,
    predict_speedup,
    record_parser,
    vectorized_bytes,
    vectorizing_fix,
    wait_share_of,
    with_parallel_end,
)
from advisor.testing import batch, definition, fires, line, map_, pipeline, prefetch, shuffle, silent, source

_BATCHES = frozenset({"batch", "padded_batch", "ragged_batch"})
PARSERS = {
    "ParseExample": "tf.io.parse_example",
    "ParseExampleV2": "tf.io.parse_example",
    "ParseSingleExample": "tf.io.parse_example",
    "DecodeCSV": "tf.io.decode_csv",
}
"""Op type (see `record_parser`) -> the function that parses a batch of records in one call."""


@dataclass(frozen=True)
class ParsePerRecord(Rule):
    """A `map` before the `batch` parses each record in a separate call.

    ## Why it is slow
    Calling a function costs tens of microseconds, a parser prepares its list of features in each call, and every
    feature becomes a tensor that the batch must copy. `tf.io.parse_example` and `tf.io.decode_csv` accept a batch of
    records and fill the tensors of the batch directly.

    ## What the fix does
    It moves the `batch` before the `map`. If the function contains nothing but `decode_csv` and ops that take a batch
    as it is, it stays as it is. If it calls `parse_single_example` and only such ops, a copy of it with `parse_example`
    is written beside it: TensorFlow passes both to the same op. In recordings of earlier versions, which do not tell
    whether constants meet the columns in the right shape, the edit without a copy is applied only on request. Any
    other function is called through `tf.vectorized_map`, if all its ops can process a batch; TensorFlow then parses
    the batch in one call. If only some of its lines have no vectorised form but take a batch as it is (`decode_raw`,
    functions of `tf.strings`, look-ups), the function is called in parts, as `vectorizable-map` describes. This edit
    is kept only if real elements are the same, bit for bit. Otherwise the finding is advice:
    `parse_example` accepts a batch of records. A function that also draws random numbers, or whose results a
    `padded_batch` takes, is left to `vectorizable-map`.

    The map then runs in parallel, and at the end of a pipeline a prefetch follows it, as `vectorizable-map` describes.

    ## When not to
    When the function also contains ops that work on a single element, such as `decode_jpeg`; nothing is reported in
    this case. Either parse after the batch and decode in a second map, or leave the function unchanged.

    ## What tf.data already does
    It runs such maps in parallel and fuses them with the `batch` (`MapAndBatch`). This distributes the calls over
    threads but does not reduce their number.
    """

    min_batch_size: int = 8
    """Records per batch. With fewer, few calls are saved."""

    def check(self, analysis: Analysis) -> Iter[Finding | Note | Rejected]:
        """Yield a finding for each map that parses single records and contains no op that requires single elements."""
        pipeline = analysis.main
        if pipeline is None:
            return
        for iterator in pipeline.iterators:
            call = next((call for call in iterator.calls if call.method == "map"), None)
            parser = record_parser(call) if call else None
            batched = batch_after(pipeline, iterator)
            size = batched.arguments.get("batch_size") if batched else None
            if call is None or parser is None:
                continue
            if batched is None or not isinstance(size, int) or size < self.min_batch_size:
                yield from self._too_few(analysis, pipeline, iterator, call, size)
                continue
            is_fused = any(fused.id == batched.id for fused in iterator.calls)
            calls = (iterator.elements or 0) * (size if is_fused else 1)
            if not calls or is_cached_downstream(analysis, pipeline, call):
                continue
            # The number of calls is divided by the batch size; how much cheaper the parsing itself becomes is unknown.
            ops = min(1.0, sum(op.total_ns for op in iterator.ops) / max(1, iterator.busy_ns))
            copies = iterators_of_call(pipeline, call)
            likely, most = (
                predict_speedup(analysis, pipeline, factors, factors)
                for factors in ({copy.id: factor for copy in copies} for factor in (ops, 1 / size))
            )
            if likely is None or most is None:
                continue
            fix = with_parallel_end(analysis, pipeline, call, batched, fix_of(analysis, call, batched))
            parallel = parallel_calls(analysis, pipeline, call, fix)
            yield self.finding(
                f"Batch before {label(call)} and parse with {PARSERS[parser]}",
                f"{label(call)} at {place(call)} parses one record per call, {format_ns(iterator.busy_ns / calls)} "
                f"each, and causes {format_share(wait_share_of(pipeline, call))} of the wait for input. {PARSERS[parser]} "
                f"parses the {size} records of a batch in one call.",
                call=call,
                iterator=iterator,
                prediction=replace(most, value=max(likely.value, (1 + most.value) / 2), low=1.0),
                memory_bytes=vectorized_bytes(analysis, pipeline, iterator, call, batched, size, parallel),
                fix=fix,
                evidence=(
                    Evidence("blame_share", wait_share_of(pipeline, call), "share"),
                    Evidence("time_per_record", iterator.busy_ns / calls, "ns"),
                    Evidence("op_share", ops, "share"),
                    Evidence("batch_size", size, "records"),
                ),
            )

    def _too_few(
        self, analysis: Analysis, pipeline: Pipeline, iterator: Iterator, call: Call, size: object
    ) -> Iter[Rejected]:
        """Yield why a parser of single records stays as it is, unless it gets batches already or precedes a `padded_batch`."""
        is_batched = any(other.method in _BATCHES for other in linear_chain(analysis, call)[1:])
        is_padded = batch_after(pipeline, iterator, ("padded_batch",)) is not None
        if (
            is_batched
            or is_padded
            or wait_share_of(pipeline, call) < NEAR_SHARE
            or is_cached_downstream(analysis, pipeline, call)
        ):
            return
        reason = "no batch follows it, or another call between them works on single records"
        if isinstance(size, int):
            reason = f"with batches of {size}, few calls are saved"
        yield self.rejected(
            f"Batch before {label(call)} and parse whole batches",
            reason,
            call=call,
            evidence=(Evidence("blame_share", wait_share_of(pipeline, call), "share"),),
        )


def fix_of(analysis: Analysis, call: Call, batched: Call) -> Fix | None:
    """The fix that moves the map after the batch: with its function as it is, or else vectorised.

    Args:
        analysis: The run.
        call: The map.
        batched: The batch after it.

    Returns:
        The fix; None if the change cannot be written, or may change the data.
    """
    if not is_editable(call) or not is_editable(batched):
        return None
    moves = moves_after_batch(analysis, call, batched)
    if call.function is not None and call.function.is_elementwise and moves is not None:
        return Fix(moves, Safety.EXACT, is_auto=True)
    ops = set(call.function.ops) if call.function else set()
    if "DecodeCSV" in ops and ops <= {"DecodeCSV", *catalog.ELEMENTWISE_OPS}:
        return Fix((MoveAfter(call.id, batched.id),), Safety.EXACT, is_auto=False)
    copied = batch_parser(analysis, call, batched).fix
    return copied or vectorizing_fix(analysis, call, batched) or mixed_function(analysis, call, batched).fix


_RECORD = "TensorSpec(shape=(), dtype=tf.string, name=None)"
_PARSE = {"ParseExampleV2": 0.6, "Pack": 0.05}

EXAMPLES = (
    fires(
        pipeline(source(), map_("parse", ms=0.1, op_shares=_PARSE), batch(256), prefetch(), consumer_ms=1, cores=4),
    ),
    fires(
        pipeline(
            source("TextLine"),
            map_("parse", ms=0.08, op_shares={"DecodeCSV": 0.5, "Sub": 0.05}),
            batch(128),
            consumer_ms=1,
            cores=2,
        ),
        fixed="    ds.batch(128)\n    .map(parse, num_parallel_calls=tf.data.AUTOTUNE)\n    .prefetch(tf.data.AUTOTUNE)\n",
    ),
    fires(
        pipeline(
            source("TextLine", spec=_RECORD),
            map_("parse", ms=0.08, op_shares={"DecodeCSV": 0.5, "Sub": 0.05}, elementwise=True),
            shuffle(),
            batch(128),
            consumer_ms=1,
            cores=2,
        ),
        fixed="ds = ds.shuffle(1000)\nds = (\n    ds.batch(128)\n    .map(parse, num_parallel_calls=tf.data.AUTOTUNE)\n",
    ),
    fires(
        pipeline(source(), map_("parse", ms=0.1, op_shares=_PARSE), shuffle(), batch(256), consumer_ms=1, cores=4),
    ),
    fires(
        pipeline(
            source(spec=_RECORD),
            map_(
                "parse",
                ms=0.1,
                op_shares=_PARSE,
                parses_batches=True,
                spec="TensorSpec(shape=(8,), dtype=tf.float32, name=None)",
                definition=definition("record", line("return tf.io.parse_single_example(record, FEATURES)['x']")),
            ),
            batch(256),
            consumer_ms=1,
            cores=4,
        ),
        fixed="def parse_batch(record):\n    return tf.io.parse_example(record, FEATURES)['x']\n",
    ),
    fires(
        pipeline(
            source(spec=_RECORD),
            map_("parse", ms=0.1, op_shares=_PARSE),
            batch(256),
            consumer_ms=1,
            cores=4,
        ),
        fixed="    ds.batch(256)\n    .map(\n        lambda rows: tf.vectorized_map(\n            "
        "tf.function(parse), rows, fallback_to_while_loop=False\n        ),\n        num_parallel_calls=tf.data.AUTOTUNE,\n",
    ),
    silent(
        pipeline(source(), batch(256), map_("parse", ms=20, op_shares=_PARSE), consumer_ms=1, cores=4),
        because="the map already parses batches",
    ),
    silent(
        pipeline(
            source(),
            map_("parse", ms=5, op_shares={"ParseExampleV2": 0.01, "DecodeJpeg": 0.9}),
            batch(32),
            consumer_ms=1,
            cores=4,
        ),
        because="image decoding works on a single element",
    ),
    silent(
        pipeline(source(), map_("parse", ms=0.1, op_shares=_PARSE), batch(4), consumer_ms=0.1, cores=2),
        because="with a batch of four, few calls are saved",
    ),
    silent(
        pipeline(source(), map_("parse", ms=0.1, op_shares=_PARSE), batch(256), prefetch(), consumer_ms=50, cores=4),
        because="the consumer does not wait",
    ),
)
