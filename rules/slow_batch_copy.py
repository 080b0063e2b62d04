"""slow-batch-copy: a single thread copies large elements into the batch."""

from __future__ import annotations

from dataclasses import dataclass

from advisor.model.units import format_bytes, format_share
from advisor.rule import (
    AUTOTUNE,
    NEAR_SHARE,
    Analysis,
    Evidence,
    Finding,
    Fix,
    Iter,
    Note,
    Rejected,
    Rule,
    Safety,
    SetArgument,
    catalog,
    core_use,
    is_editable,
    is_rewrite_forbidden,
    iterators_of_call,
    place,
    predict_parallel,
    wait_share_of,
)
from advisor.testing import AUTOTUNE as TUNED
from advisor.testing import batch, fires, map_, options, pipeline, shuffle, silent, source


@dataclass(frozen=True)
class SlowBatchCopy(Rule):
    """The consumer waits for a single thread that copies elements into the batch.

    ## Why it is slow
    Creating a batch allocates memory and copies each element into it. For images of several megabytes this takes tens
    of milliseconds, all of it in the thread that requests the batch.

    ## What the fix does
    It sets `num_parallel_calls=tf.data.AUTOTUNE`, which creates several batches at once, each on its own thread, and
    preserves the order. Each parallel call holds one additional batch in memory.

    ## When not to
    When few batches fit in memory. When the elements can be made smaller first (uint8 instead of float32), which saves
    more.

    ## What tf.data already does
    It copies the elements of a batch on several threads (`parallel_batch`) unless this rewrite is disabled, and
    `MapAndBatch` also copies in parallel. Only batches that nevertheless run as a sequential `BatchV2` are reported.
    """

    min_free_cores: float = 0.25
    """Cores available to the process in addition, averaged over the window: idle cores plus half of those used by other
    processes. With fewer, further parallel calls have no core to run on. The prediction decides whether they are
    worthwhile."""
    min_batch_bytes: int = 1 << 20
    """Size of a batch in bytes. Smaller batches are copied in well under a millisecond, so copying is not the cause."""

    def check(self, analysis: Analysis) -> Iter[Finding | Note | Rejected]:
        """Yield a finding for each sequential batch of large elements that the consumer waits for."""
        pipeline = analysis.main
        use = core_use(analysis, pipeline) if pipeline else None
        if pipeline is None or use is None or is_rewrite_forbidden(analysis, pipeline):
            return
        for iterator in pipeline.iterators:
            call = next((call for call in iterator.calls if call.method == "batch"), None)
            if catalog.base_type(iterator.name) != "Batch" or call is None or iterator.parameters.get("parallel_copy"):
                continue
            inputs, size = pipeline.inputs(iterator), call.arguments.get("batch_size")
            element_size = inputs[0].element_bytes if len(inputs) == 1 else None
            bytes_ = iterator.element_bytes or (element_size * size if element_size and isinstance(size, int) else None)
            if bytes_ is None or bytes_ < self.min_batch_bytes or call.arguments.get("num_parallel_calls") is not None:
                continue
            share, copies = wait_share_of(pipeline, call), iterators_of_call(pipeline, call)
            if use.free < self.min_free_cores:
                if share >= NEAR_SHARE:
                    cores = Evidence("free_cores", use.free, "cores")
                    reason = f"no core is free: {use.sentence}"
                    yield self.rejected("Batch in parallel", reason, call=call, evidence=(cores,))
                continue
            yield self.finding(
                "Batch in parallel",
                f"batch at {place(call)} copies {format_bytes(bytes_)} into each batch on a single thread, which "
                f"causes {format_share(share)} of the wait for input, while {use.sentence}.",
                call=call,
                iterator=iterator,
                prediction=predict_parallel(analysis, pipeline, copies, 1, max(1.0, use.usable)),
                memory_bytes=round(use.usable) * bytes_,
                fix=Fix((SetArgument(call.id, "num_parallel_calls", AUTOTUNE),), Safety.EXACT, is_auto=True)
                if is_editable(call)
                else None,
                evidence=(
                    Evidence("blame_share", share, "share"),
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
        because="batches are already created in parallel",
    ),
    silent(
        pipeline(source("TensorSlice", bytes=100), shuffle(), _ONE_COPIER, batch(1024, ms=20), consumer_ms=5, cores=4),
        because="the elements are small: their number is the cost rather than the copying",
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
