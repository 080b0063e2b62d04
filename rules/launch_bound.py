"""launch-bound: the device waits for kernels to be launched while tf.data keeps the cores busy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from advisor.model.units import format_share
from advisor.rule import (
    Analysis,
    Evidence,
    Finding,
    Iter,
    Note,
    Rule,
    core_use,
    is_fed,
    measured_ns,
    step_site,
    steps_seen,
)
from advisor.testing import batch, cpu, fires, gpu, map_, pipeline, prefetch, silent, source


@dataclass(frozen=True)
class LaunchBound(Rule):
    """The device does nothing between kernels, because the threads that launch them share their cores with tf.data's.

    ## Why it is slow
    Each kernel is launched by a thread of the host. When tf.data's threads have taken the cores, that thread waits
    for one, and the device waits with it.

    ## What the fix does
    Run the program with `TF_GPU_THREAD_MODE=gpu_private`: kernels are then launched from threads of their own for
    each GPU (`TF_GPU_THREAD_COUNT`, 2 by default). No line of the script changes, nor does any result. If the cores
    are still too few, give tf.data fewer: `options.threading.private_threadpool_size`. It is advice only: measure it
    with your own runs on the GPU.

    ## When not to
    When the variable is set already, which a profile's figures do not tell.
    When cores are free: then launches are slow for another reason, see `small-batch`, `no-xla`, `short-steps`.

    ## What tf.data already does
    With AUTOTUNE it counts the cores, not the threads that launch kernels: it takes all of them if its own work can
    use them.
    """

    needs_input_bound: ClassVar[bool] = False

    min_launch_share: float = 0.03
    """Share of the step time in which the host launched and no device did anything. XProf's line between low and
    moderate (`op_stats_to_input_pipeline_analysis.cc`)."""
    max_free_share: float = 0.2
    """Share of the usable cores that are free. With more, the launching thread finds one."""
    min_pipeline_share: float = 0.5
    """Share of the usable cores that tf.data's own work takes. With less, it is not tf.data that holds them."""

    def check(self, analysis: Analysis) -> Iter[Finding | Note]:
        """A finding where launches are exposed and the cores are taken by the pipelines."""
        facts, main = analysis.device, analysis.main
        if (
            facts is None
            or not measured_ns(facts)
            or not is_fed(analysis)
            or facts.device_type != "GPU"
            or main is None
            or not main.span_ns
        ):
            return
        use, share = core_use(analysis, main), facts.launch_gap_share
        if (
            use is None
            or not use.is_measured
            or share is None
            or share < self.min_launch_share
            or use.free > self.max_free_share * use.usable
        ):
            return
        taken = sum(it.busy_ns for it in main.iterators) / main.span_ns
        if taken < self.min_pipeline_share * use.usable:
            return
        yield self.finding(
            "Launch kernels from threads of their own: TF_GPU_THREAD_MODE=gpu_private",
            f"{format_share(share)} of the step time the device waits for the host to launch kernels, {steps_seen(facts)}, "
            "while "
            f"tf.data's work takes {taken:.1f} cores ({use.sentence}).",
            site=step_site(analysis),
            evidence=(
                Evidence("launch_gap_share", share, "share"),
                Evidence("pipeline_cores", taken, "cores"),
                Evidence("free_cores", use.free, "cores"),
            ),
        )


_BUSY = (source(), map_("augment", ms=7, random=True, calls=4), batch(32), prefetch())

EXAMPLES = (
    fires(pipeline(*_BUSY, consumer_ms=80, cores=4, device=gpu(launch=0.1, idle=0.15))),
    fires(pipeline(*_BUSY, consumer_ms=75, cores=4, device=gpu(launch=0.04, idle=0.1))),
    silent(
        pipeline(*_BUSY, consumer_ms=80, cores=16, device=gpu(launch=0.1, idle=0.15)),
        because="cores are free, so the thread that launches has one",
    ),
    silent(
        pipeline(*_BUSY, consumer_ms=80, cores=4, device=gpu(launch=0.01)),
        because="launches are hidden behind the device's work",
    ),
    silent(
        pipeline(source(), batch(32), prefetch(), consumer_ms=80, cores=4, busy_cores=3, device=gpu(launch=0.1)),
        because="another process holds the cores, not tf.data",
    ),
    silent(pipeline(*_BUSY, consumer_ms=80, cores=4, device=cpu()), because="no kernels are launched"),
)
