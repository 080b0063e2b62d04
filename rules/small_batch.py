"""small-batch: a step costs its launches or its scheduling, whatever it computes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from advisor.model.units import format_count, format_ns, format_share
from advisor.rule import (
    Analysis,
    Call,
    DeviceFacts,
    Evidence,
    Finding,
    Iter,
    Note,
    Rule,
    is_fed,
    last_batch,
    measured_ns,
    op_work,
    step_site,
    steps_seen,
)
from advisor.testing import batch, cpu, fires, gpu, map_, op, pipeline, prefetch, silent, source


@dataclass(frozen=True)
class SmallBatch(Rule):
    """The step's kernels or ops are so short that starting them is what takes the time; a larger batch would cost
    little more.

    ## Why it is slow
    Each kernel is launched and each op is scheduled, which takes microseconds however many rows it computes. While
    they are that short, a step of twice as many rows takes hardly longer.

    ## What the fix does
    A larger batch, as far as memory lets you: double it and look again. The training changes: fewer updates per
    epoch, so the learning rate has to follow, and results differ. It is advice only, with no gain predicted: time
    an epoch before and after, since steps of different batches cannot be compared.

    ## When not to
    When the batch size is part of the method, or memory is full. For the same batch, `no-xla` and `short-steps` are
    the other remedies.

    ## What tf.data already does
    Nothing here: the batch size is the script's. (Its own `batch` costs the same per row.)
    """

    needs_input_bound: ClassVar[bool] = False

    min_launch_share: float = 0.15
    """GPU: share of the step time in which the host launched and no device did anything. XProf's line for a high share
    (`op_stats_to_input_pipeline_analysis.cc`)."""
    max_kernel_us: float = 20.0
    """GPU: microseconds of the median kernel. TensorFlow's host side took 59 per kernel in a profile of a Turing GPU
    whose launches were exposed; a kernel much shorter than that is over before the next one comes."""
    max_memory_share: float = 0.5
    """GPU: share of the device's memory in use at the peak; a batch of twice the size has to fit."""
    max_op_us: float = 20.0
    """Processor: microseconds of own time up to which an op is short, on average over those of its type. Scheduling
    an op takes a few of them."""
    min_ops: float = 100.0
    """Processor: short ops per step. Fewer are not what a step is made of."""
    min_op_share: float = 0.3
    """Processor: share of the step time in short ops; with less, something else is the larger part: Python
    (`short-steps`), or long ops."""
    max_batch_size: int = 256
    """Processor: elements in the batch, where it is known. In larger ones even single element-wise ops take longer
    than their scheduling."""

    def check(self, analysis: Analysis) -> Iter[Finding | Note]:
        """A finding where short kernels or ops take the step and a larger batch has room."""
        facts = analysis.device
        if facts is None or not measured_ns(facts) or not is_fed(analysis):
            return
        call = last_batch(analysis)
        if facts.device_type == "GPU":
            yield from self._on_gpu(analysis, facts, call)
        elif facts.device_type == "CPU":
            yield from self._on_cpu(analysis, facts, call)

    def _on_gpu(self, analysis: Analysis, facts: DeviceFacts, call: Call | None) -> Iter[Finding]:
        launch, kernel_ns, memory = facts.launch_gap_share, facts.median_kernel_ns, facts.memory_peak_share
        if launch is None or kernel_ns is None or launch < self.min_launch_share:
            return
        if kernel_ns > self.max_kernel_us * 1000 or (memory is not None and memory > self.max_memory_share):
            return
        held = f" and {format_share(memory)} of its memory is used" if memory is not None else ""
        yield self.finding(
            f"Make the batch{_size(call)} larger",
            f"{format_share(launch)} of the step time the device waits for launches, {steps_seen(facts)}: the median "
            f"kernel takes {format_ns(kernel_ns)}{held}.",
            call=call,
            site=step_site(analysis),
            evidence=(
                Evidence("launch_gap_share", launch, "share"),
                Evidence("median_kernel", kernel_ns, "ns"),
                Evidence("kernels_per_step", facts.kernels_per_step or 0.0),
            ),
        )

    def _on_cpu(self, analysis: Analysis, facts: DeviceFacts, call: Call | None) -> Iter[Finding]:
        work = op_work(
            analysis, lambda row: not row.is_eager and row.self_ns <= self.max_op_us * 1000 * row.occurrences
        )
        size = call.arguments.get("batch_size") if call is not None else None
        if work is None or not isinstance(size, int) or size > self.max_batch_size:
            return
        if work.per_step < self.min_ops or work.step_share < max(self.min_op_share, facts.other_share or 0.0):
            return
        yield self.finding(
            f"Make the batch{_size(call)} larger",
            f"{format_share(work.step_share)} of the step time goes into {format_count(round(work.per_step))} ops of "
            f"{format_ns(work.mean_ns)} on average, {steps_seen(facts)}: scheduling them takes a good part of that.",
            call=call,
            site=step_site(analysis),
            evidence=(
                Evidence("ops_per_step", work.per_step, "ops"),
                Evidence("op_time", work.mean_ns, "ns"),
                Evidence("op_step_share", work.step_share, "share"),
                Evidence("batch_size", size, "elements"),
            ),
        )


def _size(call: Call | None) -> str:
    size = call.arguments.get("batch_size") if call is not None else None
    return f" of {size}" if isinstance(size, int) else ""


_STAGES = (source(), batch(16), prefetch())
_SHORT = op("Tanh", 900, us=5)

EXAMPLES = (
    fires(pipeline(*_STAGES, consumer_ms=10, device=gpu(launch=0.6, idle=0.9, kernel_us=4, memory=0.1))),
    fires(pipeline(*_STAGES, consumer_ms=8, device=cpu(_SHORT, other=0.1))),
    silent(
        pipeline(*_STAGES, consumer_ms=100, device=gpu(launch=0.02, kernel_us=26, memory=0.3)),
        because="launches are hidden behind kernels that are long enough",
    ),
    silent(
        pipeline(*_STAGES, consumer_ms=10, device=gpu(launch=0.4, idle=0.5, kernel_us=4, memory=0.9)),
        because="the memory is full",
    ),
    silent(
        pipeline(source(), batch(1024), prefetch(), consumer_ms=8, device=cpu(_SHORT, other=0.1)),
        because="1,024 rows are many: the ops are short by nature",
    ),
    silent(
        pipeline(*_STAGES, consumer_ms=100, device=cpu(op("_FusedMatMul", 120, us=700))),
        because="the ops are long: twice the rows would take twice the time",
    ),
    silent(
        pipeline(source(), map_("augment", ms=5, random=True), batch(16), consumer_ms=8, device=cpu(_SHORT)),
        because="the step waits for its input",
    ),
)
