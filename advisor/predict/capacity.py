"""What the machine still has to give: cores, and Python's one lock.

In: an `Analysis` and one of its pipelines.  Out: numbers of cores, or None where nothing was measured.
"""

from __future__ import annotations

from advisor.model.pipeline import Analysis, Pipeline

LOCK_WAIT_SHARE = 0.2
"""A probe that waits this share of its time for Python's lock meets a thread that holds it for long (0.33 says always). The
reverse is not true: a lock that is taken and given back every 100 us is free whenever the probe looks."""

COMPUTING_SHARE = 0.25
"""Python that computes uses a core for the time it runs, Python that sleeps or waits for a network uses none. The line lies
low because time in Python ops includes waiting for the lock and for a core."""


def usable_cores(analysis: Analysis, pipeline: Pipeline) -> float | None:
    """Cores that the process may use; without a recording, what tf.data took for its CPU budget."""
    if analysis.host is not None:
        return analysis.host.cores
    budget = pipeline.root.parameters.get("cpu_budget")
    return float(budget) if isinstance(budget, (int, float)) and budget > 0 else None


def busy_cores(analysis: Analysis, pipeline: Pipeline) -> float | None:
    """Cores that the process kept busy, on average over the window; without a recording, those of the pipeline alone.

    What other processes used does not count: they come and go, and the scheduler would share the cores with us.
    """
    usage = analysis.usage
    if usage is not None and usage.wall_ns > 0:
        return (usage.cpu_ns + usage.children_cpu_ns) / usage.wall_ns
    if pipeline.span_ns > 0:
        return sum(it.busy_ns for it in pipeline.iterators) / pipeline.span_ns
    return None


def idle_cores(analysis: Analysis, pipeline: Pipeline) -> float | None:
    """Cores with nothing to do on average in the window, at least 0; None: unknown."""
    cores, busy = usable_cores(analysis, pipeline), busy_cores(analysis, pipeline)
    return None if cores is None or busy is None else max(0.0, cores - busy)


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
