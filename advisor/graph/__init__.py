"""Graph phase: what a profile and a recording say about the executed input pipelines.

In: a `Trace` and, where the run was captured by us, its `Recording`.  Out: `Analysis`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from advisor.model.pipeline import Analysis, Pipeline
    from advisor.model.recording import Recording
    from advisor.model.trace import Trace


MAX_OVERHEAD = 0.05
"""What the profiler may add to a step before the report says so; the project's own bound for its capture."""


def analyse(trace: Trace | None, recording: Recording | None, target: str) -> Analysis:
    """Put both together. Either may be missing: a bare profile has no calls, a script that never iterates no
    profile.
    """
    from advisor.graph.align import index_calls
    from advisor.graph.assemble import Context, assemble, join_devices
    from advisor.graph.nodes import fold
    from advisor.graph.plain import use_plain_steps
    from advisor.graph.timeline import build_timeline
    from advisor.graph.verdict import explain_profiler_error, judge
    from advisor.model.pipeline import Analysis
    from advisor.trace.steps import marked_steps
    from advisor.units import format_share

    pipelines: list[Pipeline] = []
    overhead = None
    has_marks = False
    warnings = list(trace.warnings) if trace else []
    calls = index_calls(recording.calls) if recording else {}
    # AutoGraph is the only one in TensorFlow that calls the public `scan`
    loops = frozenset(call.id for call in calls.values() if call.method == "scan" and call.library == "tensorflow")
    for host in trace.hosts if trace else ():
        forest = fold(host, loops)
        timeline = build_timeline(host, forest)
        join_devices(forest, timeline)
        marks = [(step.start_ns, step.end_ns) for step in marked_steps(host)]
        has_marks |= bool(marks)
        found = assemble(Context(host, forest, timeline, recording, calls, marks))
        pipelines += _numbered_after(found, len(pipelines))
        warnings += [f"{host.hostname}: {text}" for text in forest.warnings]
        warnings += [explain_profiler_error(text) for text in host.errors]
    pipelines = _choose_main(pipelines)
    if recording:
        warnings += recording.warnings
        if not has_marks:  # the script's own markers say what a step is, and Python has not seen those
            timed = [use_plain_steps(p, recording) if p.is_main else (p, None) for p in pipelines]
            pipelines = [pipeline for pipeline, _ in timed]
            overhead = next((cost for _, cost in timed if cost is not None), None)
    if overhead is not None and overhead > MAX_OVERHEAD:
        warnings.append(
            f"While the profiler ran, steps took {format_share(overhead)} longer. Step time and wait were measured without it; "
            "in what the wait is made of, many cheap operations may be overstated."
        )
    return Analysis(
        target=target,
        verdict=judge(pipelines, recording),
        pipelines=tuple(pipelines),
        calls=recording.calls if recording else (),
        host=recording.host if recording else None,
        usage=recording.usage if recording else None,
        keras=dict(recording.keras) if recording else {},
        recording=recording,
        warnings=tuple(dict.fromkeys(warnings)),
        profiling_overhead=overhead,
    )


def _numbered_after(pipelines: list[Pipeline], offset: int) -> list[Pipeline]:
    """Ids unique over all hosts."""
    if not offset:
        return pipelines

    def renamed(text: str | None) -> str | None:
        if text is None:
            return None
        number, dot, rest = text[1:].partition(".")
        return f"p{int(number) + offset}{dot}{rest}"

    result = []
    for pipeline in pipelines:
        iterators = tuple(
            replace(it, id=renamed(it.id) or "", parent_id=renamed(it.parent_id)) for it in pipeline.iterators
        )
        bottleneck = pipeline.bottleneck and replace(
            pipeline.bottleneck,
            iterator_id=renamed(pipeline.bottleneck.iterator_id) or "",
            classic_iterator_id=renamed(pipeline.bottleneck.classic_iterator_id),
        )
        result.append(replace(pipeline, id=renamed(pipeline.id) or "", iterators=iterators, bottleneck=bottleneck))
    return result


def _choose_main(pipelines: list[Pipeline]) -> list[Pipeline]:
    """Mark the pipeline that the verdict speaks of: the recorder's main consumer's, else the one with most wait."""
    candidates = [p for p in pipelines if p.wait_ns or p.steps is not None]
    if not candidates:
        return pipelines
    main = max(
        candidates,
        key=lambda p: (p.consumer is not None and p.consumer.is_main, p.wait_ns, p.steps.count if p.steps else 0),
    )
    return [replace(p, is_main=p is main) for p in pipelines]
