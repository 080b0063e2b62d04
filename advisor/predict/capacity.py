"""Determines the free capacity of the machine: cores and the GIL.

In: an `Analysis` and one of its pipelines.  Out: `CoreUse`, and the share of time in which Python computes.
"""

from __future__ import annotations

from dataclasses import dataclass

from advisor.host.calibration.prediction import COMPUTING_SHARE, LOCK_WAIT_SHARE, OTHERS_KEEP, REPORTED_CORES
from advisor.model.pipeline import Analysis, Pipeline


@dataclass(frozen=True, slots=True)
class CoreUse:
    """The use of cores, on average over the window."""

    usable: float
    """Cores that the process may use; without a recording, tf.data's CPU budget."""
    own: float
    """Cores that the process and its children used; an upper bound if `is_measured` is False."""
    others: float = 0.0
    """Cores that other processes used of the usable ones, as far as known."""
    is_measured: bool = True
    """Whether CPU time was measured. Otherwise `own` is derived from the profile, whose events include waits for files and cores,
    so that it is an upper bound."""

    @property
    def free(self) -> float:
        """Cores that the process could use in addition: the idle ones and half of those that others use.

        The scheduler divides cores among the processes that compete for them.
        """
        return max(0.0, self.usable - self.taken(OTHERS_KEEP.value[1]))

    def taken(self, others_keep: float) -> float:
        """Return the number of cores in use if other processes keep this share of the cores that they use now."""
        return self.own + others_keep * self.others

    def is_full(self, min_free: float, min_own_share: float, min_speedup: float) -> bool:
        """Return whether the process itself keeps the cores so busy that more parallel calls cannot help.

        Args:
            min_free: Number of free cores below which none counts as free ...
            min_own_share: Share of the usable cores that the process uses itself; below it, other processes occupy the cores.
            min_speedup: ... and ratio of the cores that it could use to those that it uses, below which the free ones would not
                make it noticeably faster: a pool of many threads never keeps all of many cores busy.
        """
        if not self.is_measured or self.own < min_own_share * self.usable:
            return False
        return self.free < max(min_free, (min_speedup - 1) * self.own)

    @property
    def sentence(self) -> str:
        """A clause for the report, such as `the process uses 1.0 of 8 cores`."""
        own = min(self.own, self.usable)  # CPU time of a child counts when it ends, so it can exceed the window's
        if not self.is_measured:
            return f"the pipeline uses at most {own:.1f} of {self.usable:g} cores (CPU time was not measured)"
        others = f" and others {self.others:.1f}" if self.others >= REPORTED_CORES.value else ""
        return f"the process uses {own:.1f}{others} of {self.usable:g} cores"


def core_use(analysis: Analysis, pipeline: Pipeline) -> CoreUse | None:
    """Return the use of cores in the window; None if the number of cores or the length of the window is unknown."""
    usage, host = analysis.usage, analysis.host
    budget = pipeline.root.parameters.get("cpu_budget")
    usable = host.cores if host is not None else float(budget) if isinstance(budget, int | float) else 0.0
    if usable <= 0:
        return None
    if usage is None or usage.wall_ns <= 0:
        if pipeline.span_ns <= 0:
            return None
        # more threads than cores can be inside events at once, but the use is limited to all cores
        own = min(usable, sum(it.busy_ns for it in pipeline.iterators) / pipeline.span_ns)
        return CoreUse(usable, own, is_measured=False)
    own = (usage.cpu_ns + usage.children_cpu_ns) / usage.wall_ns
    others = 0.0
    # If the process may use only a part of the machine, other processes need not use the same part.
    if host is not None and usage.host_cpu_busy_share is not None and host.cores >= host.cores_installed:
        others = min(usable, usage.host_cpu_busy_share * host.cores_installed) - own
    return CoreUse(usable, own, max(0.0, others))


def python_share(analysis: Analysis, pipeline: Pipeline) -> float:
    """Return the share of the window in which the pipeline's Python code computes with the GIL, 0 to 1.

    It cannot exceed 1 with any number of threads, and parallel calls do not reduce it. Python code that sleeps or waits has
    released the GIL and does not count.
    """
    span, usage = pipeline.span_ns, analysis.usage
    python_ns = sum(it.python_ns for it in pipeline.iterators)
    if span <= 0 or python_ns <= 0:
        return 0.0
    share = min(1.0, python_ns / span)
    if usage is None or usage.wall_ns <= 0:
        return share
    if usage.gil_wait_share is not None and usage.gil_wait_share >= LOCK_WAIT_SHARE.value:
        return share
    # Cores that neither the consumer (counted as one core while it works) nor the rest of the pipeline accounts for.
    others = 1 - pipeline.wait_share + sum(it.busy_ns - it.python_ns for it in pipeline.iterators) / span
    left = (usage.cpu_ns + usage.children_cpu_ns) / usage.wall_ns - others
    return share if left >= COMPUTING_SHARE.value * share else 0.0
