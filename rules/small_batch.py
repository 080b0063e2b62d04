"""small-batch: launch or scheduling overhead dominates the step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from advisor.model.units import format_count, format_ns, format_share
from advisor.rule import (
    HIGH_WAITING,
    Analysis,
    Call,
    DeviceFacts,
    Evidence,
    Finding,
    Fix,
    Iter,
    Note,
    Rule,
    batch_edit,
    is_fed,
    is_short,
    last_batch,
    measured_ns,
    op_work,
    step_fix,
    step_site,
    steps_seen,
)
from advisor.testing import batch, cpu, fires, gpu, map_, op, pipeline, prefetch, silent, source


@dataclass(frozen=True)
class SmallBatch(Rule):
    """Starting the short kernels or ops dominates the step; a larger batch would cost little more.

    ## Why it is slow
    Launching a kernel or scheduling an op takes microseconds, regardless of the number of rows. As long as kernels and
    ops are this short, a step with twice as many rows takes hardly longer.

    ## What the fix does
    Use a larger batch, as far as memory allows: double it and measure again. This changes the training: there are fewer
    updates per epoch, so the learning rate must be adjusted (twice the rate for twice the rows is the usual start), and
    results differ. No speedup is predicted. If the size is a number in a call that makes one dataset, `advisor fix --allow
    numerics` doubles it, runs the script with and without the change, and compares the time per element. It leaves the
    learning rate to you, and the losses of different batches are not compared.

    ## When not to
    When the batch size is part of the method, or when memory is full. `no-xla` and `short-steps` are alternatives that
    keep the batch size.

    ## What tf.data already does
    Nothing: the script sets the batch size. (The cost per row of tf.data's `batch` does not change.)
    """

    needs_input_bound: ClassVar[bool] = False
    is_hint: ClassVar[bool] = True

    min_launch_share: float = 0.15
    """GPU only: share of the step time in which the host launched kernels while the device was idle. XProf's threshold
    for a high share (`op_stats_to_input_pipeline_analysis.cc`)."""
    max_kernel_us: float = 20.0
    """GPU only: median kernel duration in microseconds. In a profile of a Turing GPU with exposed launches,
    TensorFlow's host side took 59 us per kernel; a much shorter kernel finishes before the next one is launched."""
    max_memory_share: float = 0.5
    """GPU only: peak share of the device memory in use. A batch of twice the size has to fit."""
    max_op_us: float = 20.0
    """CPU only: median self time in microseconds up to which the ops of a type are considered short. Scheduling an op takes
    a few microseconds."""
    min_ops: float = 100.0
    """CPU only: short ops per step. With fewer, they do not dominate the step."""
    min_op_share: float = 0.3
    """CPU only: share of the step time in short ops. With less, the larger part is something else, such as Python
    (`short-steps`) or long ops."""
    max_batch_size: int = 256
    """CPU only: number of elements in the batch, if known. In larger batches, even a single element-wise op takes
    longer than its scheduling."""

    def check(self, analysis: Analysis) -> Iter[Finding | Note]:
        """Yield a finding if short kernels or ops dominate the step and there is room for a larger batch."""
        facts = analysis.device
        if facts is None or not measured_ns(facts) or not is_fed(analysis, HIGH_WAITING):
            return
        call = last_batch(analysis)
        # On a CPU, Python alone takes 5 % and more of a short eager step to fetch a batch (`is_fed`).
        if facts.device_type == "GPU" and is_fed(analysis):
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
            f"The device waits {format_share(launch)} of the step time for launches, {steps_seen(facts)}: the median "
            f"kernel takes {format_ns(kernel_ns)}{held}.",
            call=call,
            site=step_site(analysis),
            fix=_doubling(analysis, call),
            code=_code(analysis, call),
            evidence=(
                Evidence("launch_gap_share", launch, "share"),
                Evidence("median_kernel", kernel_ns, "ns"),
                Evidence("kernels_per_step", facts.kernels_per_step or 0.0),
            ),
        )

    def _on_cpu(self, analysis: Analysis, facts: DeviceFacts, call: Call | None) -> Iter[Finding]:
        work = op_work(analysis, lambda row: is_short(row, self.max_op_us * 1000))
        size = call.arguments.get("batch_size") if call is not None else None
        if work is None or not isinstance(size, int) or size > self.max_batch_size:
            return
        if work.per_step < self.min_ops or work.step_share < max(self.min_op_share, facts.other_share or 0.0):
            return
        yield self.finding(
            f"Make the batch{_size(call)} larger",
            f"{format_share(work.step_share)} of the step time is spent in {format_count(round(work.per_step))} ops "
            f"of {format_ns(work.mean_ns)} on average, {steps_seen(facts)}. Scheduling takes a large part of this "
            "time.",
            call=call,
            site=step_site(analysis),
            fix=_doubling(analysis, call),
            code=_code(analysis, call),
            evidence=(
                Evidence("ops_per_step", work.per_step, "ops"),
                Evidence("op_time", work.mean_ns, "ns"),
                Evidence("op_step_share", work.step_share, "share"),
                Evidence("batch_size", size, "elements"),
            ),
        )


def _doubling(analysis: Analysis, call: Call | None) -> Fix | None:
    size = call.arguments.get("batch_size") if call is not None else None
    return step_fix(batch_edit(analysis, call, 2 * size)) if isinstance(size, int) else None


def _code(analysis: Analysis, call: Call | None) -> str:
    """The larger batch, with the learning rate that goes with it."""
    size, rate = call.arguments.get("batch_size") if call is not None else None, analysis.keras.get("learning_rate")
    rates = f" from {rate:g} to about {2 * rate:g}" if isinstance(rate, float) else ""
    larger = f".batch({2 * size})" if isinstance(size, int) else "a larger batch"
    return f"{larger}, and raise the learning rate{rates}"


def _size(call: Call | None) -> str:
    size = call.arguments.get("batch_size") if call is not None else None
    return f" of {size}" if isinstance(size, int) else ""


_STAGES = (source(), batch(16), prefetch())
_SHORT = op("Tanh", 900, us=5)

EXAMPLES = (
    fires(pipeline(*_STAGES, consumer_ms=10, device=gpu(launch=0.6, idle=0.9, kernel_us=4, memory=0.1))),
    fires(pipeline(*_STAGES, consumer_ms=8, device=cpu(_SHORT, other=0.1)), fixed=".batch(32)"),
    fires(
        pipeline(
            source(),
            map_("augment", ms=0.55, random=True),
            batch(16),
            prefetch(),
            consumer_ms=8,
            device=cpu(_SHORT, other=0.1),
        )
    ),
    silent(
        pipeline(*_STAGES, consumer_ms=100, device=gpu(launch=0.02, kernel_us=26, memory=0.3)),
        because="launches overlap with sufficiently long kernels",
    ),
    silent(
        pipeline(*_STAGES, consumer_ms=10, device=gpu(launch=0.4, idle=0.5, kernel_us=4, memory=0.9)),
        because="the memory is full",
    ),
    silent(
        pipeline(source(), batch(1024), prefetch(), consumer_ms=8, device=cpu(_SHORT, other=0.1)),
        because="with 1,024 rows, the ops are inherently short",
    ),
    silent(
        pipeline(*_STAGES, consumer_ms=100, device=cpu(op("_FusedMatMul", 120, us=700))),
        because="the ops are long, so twice the rows would take twice the time",
    ),
    silent(
        pipeline(source(), map_("augment", ms=5, random=True), batch(16), consumer_ms=8, device=cpu(_SHORT)),
        because="the step waits for its input",
    ),
)
