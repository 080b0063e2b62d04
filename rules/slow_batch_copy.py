"""slow-batch-copy: one thread copies large elements into the batch."""

from __future__ import annotations

from dataclasses import dataclass

from advisor.model.units import format_bytes, format_share
from advisor.rule import (
    AUTOTUNE,
    Analysis,
    Evidence,
    Finding,
    Fix,
    Iter,
    Note,
    Rule,
    Safety,
    SetArgument,
    catalog,
    core_use,
    is_editable,
    is_rewrite_forbidden,
    place,
    predict_parallel,
)
from advisor.testing import AUTOTUNE as TUNED
from advisor.testing import batch, fires, map_, options, pipeline, shuffle, silent, source


@dataclass(frozen=True)
class SlowBatchCopy(Rule):
    """Copying elements into the batch, on one thread, is what the consumer waits for.

    ## Why it is slow
    A batch is new memory into which each element is copied. For images of some megabytes this takes tens of milliseconds, and
    it is the work of the one thread that asks for the batch.

    ## What the fix does
    `num_parallel_calls=tf.data.AUTOTUNE` makes several batches at once, each on a thread of its own, in order. It holds a batch
    more in memory for each of them.

    ## When not to
    When few batches fit in memory. When the elements can be made smaller before (uint8 instead of float32): that saves more.

    ## What tf.data already does
    It copies the elements of one batch on several threads by itself (`parallel_batch`), unless that rewrite is switched off, and
    it copies within `MapAndBatch` in parallel. The rule speaks of batches that run as a sequential `BatchV2` all the same.
    """

    min_free_cores: float = 0.25
    """Cores that the process could have in addition, on average over the window: what is idle and a half of what other
    processes use. With less, more calls have nowhere to run; how much more is worth is for the prediction to say."""
    min_batch_bytes: int = 1 << 20
    """Bytes of a batch. Smaller ones are copied in well under a millisecond: what is slow then is not the copying."""

    def check(self, analysis: Analysis) -> Iter[Finding | Note]:
        """A finding for each sequential batch of large elements that is waited for."""
        pipeline = analysis.main
        use = core_use(analysis, pipeline) if pipeline else None
        if (
            pipeline is None
            or use is None
            or use.free < self.min_free_cores
            or is_rewrite_forbidden(analysis, pipeline)
        ):
            return
        for iterator in pipeline.iterators:
            call = next((call for call in iterator.calls if call.method == "batch"), None)
            if catalog.base_type(iterator.name) != "Batch" or call is None or iterator.parameters.get("parallel_copy"):
                continue
            inputs, size = pipeline.inputs(iterator), call.arguments.get("batch_size")
            each = inputs[0].element_bytes if len(inputs) == 1 else None
            bytes_ = iterator.element_bytes or (each * size if each and isinstance(size, int) else None)
            if bytes_ is None or bytes_ < self.min_batch_bytes or call.arguments.get("num_parallel_calls") is not None:
                continue
            yield self.finding(
                "Batch in parallel",
                f"batch at {place(call)} copies {format_bytes(bytes_)} into each batch, on one thread, which causes "
                f"{format_share(iterator.blame_share)} of the wait for input, while {use.sentence}.",
                call=call,
                iterator=iterator,
                prediction=predict_parallel(analysis, pipeline, [iterator], 1, max(1.0, use.usable)),
                memory_bytes=round(use.usable) * bytes_,
                fix=Fix((SetArgument(call.id, "num_parallel_calls", AUTOTUNE),), Safety.EXACT, is_auto=True)
                if is_editable(call)
                else None,
                evidence=(
                    Evidence("blame_share", iterator.blame_share, "share"),
                    Evidence("batch_bytes", bytes_, "bytes"),
                    Evidence("free_cores", use.free, "cores"),
                ),
            )


_ONE_COPIER = options(experimental_optimization__parallel_batch=False)

EXAMPLES = (
    fires(
        pipeline(
            source("TensorSlice", bytes=3_000_000), shuffle(), _ONE_COPIER, batch(16, ms=20), consumer_ms=5, cores=4
        ),
        fixed="ds.batch(16, num_parallel_calls=tf.data.AUTOTUNE)",
    ),
    fires(
        pipeline(source("TensorSlice", bytes=800_000), _ONE_COPIER, batch(64, ms=30), consumer_ms=10, cores=2),
        fixed="ds.batch(64, num_parallel_calls=tf.data.AUTOTUNE)",
    ),
    silent(
        pipeline(
            source("TensorSlice", bytes=3_000_000), shuffle(), batch(16, ms=20, calls=TUNED), consumer_ms=5, cores=4
        ),
        because="batches are made in parallel",
    ),
    silent(
        pipeline(source("TensorSlice", bytes=100), shuffle(), _ONE_COPIER, batch(1024, ms=20), consumer_ms=5, cores=4),
        because="the elements are small: their number is the cost, not the copying",
    ),
    silent(
        pipeline(
            source("TensorSlice", bytes=3_000_000),
            shuffle(),
            _ONE_COPIER,
            batch(16, ms=20),
            consumer_ms=5,
            busy_cores=7,
        ),
        because="the cores are busy",
    ),
    silent(
        pipeline(source(bytes=3_000_000), map_("decode", ms=5), batch(16, ms=1), consumer_ms=5, cores=4),
        because="MapAndBatch copies in parallel",
    ),
)
