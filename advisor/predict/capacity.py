"""What the machine still has to give: cores, and Python's one lock.

In: an `Analysis` and one of its pipelines.  Out: numbers of cores, or None where nothing was measured.
"""

from __future__ import annotations

from advisor.model.pipeline import Analysis, Pipeline

GIL_WAIT_SHARE = 0.2
"""A thread that wants Python's lock waits this share of its time: somebody else holds it. An idle interpreter shows 0; one
busy pure-Python thread beside the probe shows 0.5 and more, so the line between them is not delicate."""


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


def is_python_locked(analysis: Analysis) -> bool | None:
    """Whether threads wait for Python's lock; None: it was not probed."""
    usage = analysis.usage
    if usage is None or usage.gil_wait_share is None:
        return None
    return usage.gil_wait_share >= GIL_WAIT_SHARE
