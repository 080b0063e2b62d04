"""launch-bound: the device waits for kernel launches while tf.data keeps the cores busy."""

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
    """The device is idle between kernels, because the threads that launch them compete with tf.data for cores.

    ## Why it is slow
    Kernels are launched by host threads. When tf.data's threads occupy all cores, the launching thread waits for a
    core, and the device waits with it.

    ## What the fix does
    Run the program with `TF_GPU_THREAD_MODE=gpu_private`, so that kernels are launched from dedicated threads for each
    GPU (`TF_GPU_THREAD_COUNT`, 2 by default). This changes neither the script nor its results. If there are still too
    few cores, limit tf.data's threads with `options.threading.private_threadpool_size`. This is advice only: measure
    the effect in your own runs on the GPU.

    ## When not to
    When the variable is already set, which the profile does not show. When cores are free: launches are then slow for
    another reason; see `small-batch`, `no-xla` and `short-steps`.

    ## What tf.data already does
    AUTOTUNE takes the number of cores into account, but not the threads that launch kernels. It uses all cores if its
    own work can occupy them.
    """

    needs_input_bound: ClassVar[bool] = False

    min_launch_share: float = 0.03
    """Share of the step time in which the host launched kernels while the device was idle. XProf's boundary between low
    and moderate (`op_stats_to_input_pipeline_analysis.cc`)."""
    max_free_share: float = 0.2
    """Share of the usable cores that are free. With more, the launching thread finds a free core."""
    min_pipeline_share: float = 0.5
    """Share of the usable cores used by tf.data. With less, tf.data is not what occupies the cores."""

    def check(self, analysis: Analysis) -> Iter[Finding | Note]:
        """Yield a finding if kernel launches are exposed while the pipelines occupy the cores."""
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
            "Launch kernels from dedicated threads: TF_GPU_THREAD_MODE=gpu_private",
            f"The device waits {format_share(share)} of the step time for the host to launch kernels, "
            f"{steps_seen(facts)}, while tf.data uses {taken:.1f} cores ({use.sentence}).",
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
        because="cores are free for the launching thread",
    ),
    silent(
        pipeline(*_BUSY, consumer_ms=80, cores=4, device=gpu(launch=0.01)),
        because="launches overlap with the work of the device",
    ),
    silent(
        pipeline(source(), batch(32), prefetch(), consumer_ms=80, cores=4, busy_cores=3, device=gpu(launch=0.1)),
        because="another process occupies the cores, not tf.data",
    ),
    silent(pipeline(*_BUSY, consumer_ms=80, cores=4, device=cpu()), because="no kernels are launched"),
)
