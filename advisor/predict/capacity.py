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
    """Cores busy on average in the window; other processes count too, since what they use cannot be had."""
    usage, host = analysis.usage, analysis.host
    if usage is None or usage.wall_ns <= 0:
        if pipeline.span_ns <= 0:
            return None
        return sum(it.busy_ns for it in pipeline.iterators) / pipeline.span_ns
    busy = (usage.cpu_ns + usage.children_cpu_ns) / usage.wall_ns
    has_whole_machine = host is not None and host.cores >= host.cores_installed
    if host is not None and has_whole_machine and usage.host_cpu_busy_share is not None:
        busy = max(busy, usage.host_cpu_busy_share * host.cores_installed)
    return busy


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
