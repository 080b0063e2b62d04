"""What the machine still has to give: cores, and Python's one lock.

In: an `Analysis` and one of its pipelines.  Out: `CoreUse`, and the share of time in which Python computes.
"""

from __future__ import annotations

from dataclasses import dataclass

from advisor.model.pipeline import Analysis, Pipeline

LOCK_WAIT_SHARE = 0.2
"""A probe that waits this share of its time for Python's lock meets a thread that holds it for long (0.33 says always). The
reverse is not true: a lock that is taken and given back every 100 us is free whenever the probe looks."""

COMPUTING_SHARE = 0.25
"""Python that computes uses a core for the time it runs, Python that sleeps or waits for a network uses none. The line lies
low because time in Python ops includes waiting for the lock and for a core."""


@dataclass(frozen=True, slots=True)
class CoreUse:
    """Cores, on average over the window."""

    usable: float
    """What the process may use; without a recording, what tf.data took for its CPU budget."""
    own: float
    """What the process (with its children) used; where that was not measured, at most this: see `is_measured`."""
    others: float = 0.0
    """What other processes used of the same cores, as far as that is known."""
    is_measured: bool = True
    """False: nothing but the profile tells it. Its threads are seen inside the pipeline's events, whether they compute,
    wait for a file or wait for a core, so `own` is an upper bound and busy cores are not known to be busy."""

    @property
    def free(self) -> float:
        """What the process could have in addition, at least 0: what was idle, and a half of what others used, since the
        scheduler divides cores among those who want them.
        """
        return max(0.0, self.usable - self.taken(0.5))

    def taken(self, others_keep: float) -> float:
        """Cores that are used up when others keep this share of what they use now."""
        return self.own + others_keep * self.others

    @property
    def sentence(self) -> str:
        """`the process uses 1.0 of 8 cores`, for people."""
        own = min(self.own, self.usable)  # CPU time of a child counts when it ends, so it can exceed the window's
        if not self.is_measured:
            return f"the pipeline uses at most {own:.1f} of {self.usable:g} cores (CPU time was not measured)"
        others = f" and others {self.others:.1f}" if self.others >= 0.25 else ""
        return f"the process uses {own:.1f}{others} of {self.usable:g} cores"


def core_use(analysis: Analysis, pipeline: Pipeline) -> CoreUse | None:
    """How the cores were used; None if nothing tells how many there are or how long the window was."""
    usage, host = analysis.usage, analysis.host
    budget = pipeline.root.parameters.get("cpu_budget")
    usable = host.cores if host is not None else float(budget) if isinstance(budget, int | float) else 0.0
    if usable <= 0:
        return None
    if usage is None or usage.wall_ns <= 0:
        if pipeline.span_ns <= 0:
            return None
        # more threads than cores can be inside the pipeline's events at once, but no more than all cores are used
        own = min(usable, sum(it.busy_ns for it in pipeline.iterators) / pipeline.span_ns)
        return CoreUse(usable, own, is_measured=False)
    own = (usage.cpu_ns + usage.children_cpu_ns) / usage.wall_ns
    others = 0.0
    # Where the process may use a part of the machine only, what others use need not be of that part.
    if host is not None and usage.host_cpu_busy_share is not None and host.cores >= host.cores_installed:
        others = min(usable, usage.host_cpu_busy_share * host.cores_installed) - own
    return CoreUse(usable, own, max(0.0, others))


def python_share(analysis: Analysis, pipeline: Pipeline) -> float:
    """Share of the window in which the pipeline's Python code computes under the interpreter's lock, 0 to 1.

    It cannot exceed 1, however many threads there are, and no number of parallel calls makes it smaller. Python that sleeps
    or waits for something has given the lock back and counts nothing.
    """
    span, usage = pipeline.span_ns, analysis.usage
    python_ns = sum(it.python_ns for it in pipeline.iterators)
    if span <= 0 or python_ns <= 0:
        return 0.0
    share = min(1.0, python_ns / span)
    if usage is None or usage.wall_ns <= 0:
        return share
    if usage.gil_wait_share is not None and usage.gil_wait_share >= LOCK_WAIT_SHARE:
        return share
    # Cores that neither the consumer (taken for one core while it works) nor the rest of the pipeline accounts for.
    others = 1 - pipeline.wait_share + sum(it.busy_ns - it.python_ns for it in pipeline.iterators) / span
    left = (usage.cpu_ns + usage.children_cpu_ns) / usage.wall_ns - others
    return share if left >= COMPUTING_SHARE * share else 0.0
