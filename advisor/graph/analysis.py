"""The graph phase: combines the profiles and the recording of one run into an `Analysis`.

In: a `Trace` and, where the advisor captured the run, its `Recording`.  Out: `Analysis`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from advisor.graph.assemble import Context, assemble, join_devices
from advisor.graph.line_advice import advise
from advisor.graph.lockstep import longest_waited_for
from advisor.graph.marked_steps import calls_outside_marks, tell_calls_outside
from advisor.graph.node_calls import index_calls
from advisor.graph.nodes import fold
from advisor.graph.planes import explain_profiler_error, missing_parts
from advisor.graph.remade_datasets import join_remade
from advisor.graph.thread_states import build_timeline
from advisor.graph.unprofiled_steps import sees_waits, use_unprofiled_steps
from advisor.graph.verdict import judge
from advisor.host.calibration.analysis import MAX_OVERHEAD, MIN_VERDICT_STEPS
from advisor.model.pipeline import Analysis, Pipeline
from advisor.model.recording import Recording
from advisor.model.trace import HostTrace, Trace
from advisor.model.units import format_share
from advisor.profile.step_markers import marked_steps


@dataclass(frozen=True, slots=True)
class HostPart:
    """The pipelines of one host. Small enough to pass between processes when many hosts are analysed."""

    hostname: str
    path: str
    pipelines: tuple[Pipeline, ...] = ()
    """Numbered from `p0` on each host; no main pipeline is chosen yet."""
    has_marks: bool = False
    """Whether the program marked its steps and fetched its batches inside them."""
    warnings: tuple[str, ...] = ()


def analyse(trace: Trace | None, recording: Recording | None, target: str) -> Analysis:
    """Analyse one run.

    Args:
        trace: The profile; None if the run has none (the script never iterated over a dataset).
        recording: What capture recorded; None for a profile without a recording.
        target: The name of the run, for the report.

    Returns:
        The pipelines of all hosts and the verdict on the main one.
    """
    parts = [analyse_host(host, recording) for host in trace.hosts] if trace else []
    return combine(parts, recording, target, trace.warnings if trace else ())


def analyse_host(host: HostTrace, recording: Recording | None) -> HostPart:
    """Analyse the pipelines of one host. The result holds no reference to the trace, so the trace can be freed."""
    calls = index_calls(recording.calls) if recording else {}
    host = join_remade(host, recording)
    # inside TensorFlow, only AutoGraph calls the public `scan`
    loops = frozenset(call.id for call in calls.values() if call.method == "scan" and call.library == "tensorflow")
    forest = fold(host, loops)
    timeline = build_timeline(host, forest)
    join_devices(forest, timeline)
    marks = [(step.start_ns, step.end_ns) for step in marked_steps(host)]
    consumed = (calls for root, calls in timeline.root_calls.items() if root not in timeline.fed_roots)
    unmarked = calls_outside_marks(consumed, marks)
    return HostPart(
        hostname=host.hostname,
        path=host.path,
        pipelines=tuple(assemble(Context(host, forest, timeline, recording, calls, marks))),
        has_marks=bool(marks) and unmarked is None,
        warnings=(
            *((f"{host.hostname}: {tell_calls_outside(unmarked, marks)}",) if unmarked is not None else ()),
            *(f"{host.hostname}: {text}" for text in (*host.warnings, *forest.warnings)),
            *(explain_profiler_error(text) for text in host.errors),
            *(f"{host.hostname}: {text}" for text in missing_parts(host)),
        ),
    )


def combine(
    parts: Sequence[HostPart],
    recording: Recording | None,
    target: str,
    warnings: Sequence[str] = (),
    offsets: Sequence[int] | None = None,
) -> Analysis:
    """Combine the hosts into one analysis: unique pipeline ids, a main pipeline and the verdict on it.

    Args:
        parts: The analysed hosts.
        recording: What capture recorded; None for a profile without a recording.
        target: The name of the run, for the report.
        warnings: Warnings that precede those of the hosts and of the recording.
        offsets: The number of the first pipeline of each host, if these are only some hosts of the run; None: they are all.
    """
    pipelines: list[Pipeline] = []
    overhead = None
    wait_steps = "profiled"
    all_warnings = list(warnings)
    for place, part in enumerate(parts):
        offset = len(pipelines) if offsets is None else offsets[place]
        pipelines += _numbered_after(list(part.pipelines), offset)
        all_warnings += part.warnings
    pipelines = _choose_main(pipelines)
    if recording:
        pipelines = _most_waited_for(pipelines, recording)
        all_warnings += recording.warnings
        if not any(part.has_marks for part in parts) or _has_few_steps(pipelines):
            timed = [use_unprofiled_steps(p, recording) if p.is_main else (p, None) for p in pipelines]
            if any(new is not old for (new, _), old in zip(timed, pipelines, strict=True)):
                wait_steps = "unprofiled" if sees_waits(recording) else "estimated"
            pipelines = [pipeline for pipeline, _ in timed]
            overhead = next((cost for _, cost in timed if cost is not None), None)
    if overhead is not None and overhead > MAX_OVERHEAD.value:
        all_warnings.append(
            f"While the profiler ran, steps took {format_share(overhead)} longer. Step time and wait were measured without it, "
            "but the breakdown of the wait may overstate large numbers of cheap operations."
        )
    verdict = judge(pipelines, recording, wait_steps)
    if verdict.is_input_bound:
        pipelines = [advise(pipeline) if pipeline.is_main else pipeline for pipeline in pipelines]
    return Analysis(
        target=target,
        verdict=verdict,
        pipelines=tuple(pipelines),
        calls=recording.calls if recording else (),
        host=recording.host if recording else None,
        usage=recording.usage if recording else None,
        keras=dict(recording.keras) if recording else {},
        recording=recording,
        warnings=tuple(dict.fromkeys(all_warnings)),
        profiling_overhead=overhead,
    )


def _has_few_steps(pipelines: Sequence[Pipeline]) -> bool:
    """Whether the main pipeline has too few marked steps. Otherwise they are used: they may differ from those timed in Python."""
    main = next((p for p in pipelines if p.is_main), None)
    return main is not None and (main.steps is None or main.steps.count < MIN_VERDICT_STEPS.value)


def _numbered_after(pipelines: list[Pipeline], offset: int) -> list[Pipeline]:
    """Make pipeline and iterator ids unique across hosts."""
    if not offset:
        return pipelines

    def renamed(text: str | None) -> str | None:
        return id_after(text, offset)

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


def id_after(text: str | None, offset: int) -> str | None:
    """Return the id of a pipeline or iterator whose host is preceded by this number of pipelines."""
    if text is None:
        return None
    number, dot, rest = text[1:].partition(".")
    return f"p{int(number) + offset}{dot}{rest}"


def _choose_main(pipelines: list[Pipeline]) -> list[Pipeline]:
    """Mark the pipeline that the verdict is about: the main consumer's if recorded, otherwise the one with the longest wait.

    With several hosts, the most input-bound host is chosen: the one whose slowest pipeline takes the largest share of step time.
    """
    by_host: dict[str, list[Pipeline]] = {}
    for pipeline in pipelines:
        by_host.setdefault(pipeline.host, []).append(pipeline)
    of_hosts = [candidate for group in by_host.values() if (candidate := main_of_host(group)) is not None]
    main = max(of_hosts, key=main_rank, default=None)
    return [replace(p, is_main=p is main) for p in pipelines]


def _most_waited_for(pipelines: list[Pipeline], recording: Recording) -> list[Pipeline]:
    """Mark another pipeline as the main one if the main consumer's step reads it too, and waits longer for it."""
    main = next((p for p in pipelines if p.is_main), None)
    if main is None or main.consumer is None or not main.consumer.is_main:
        return pipelines
    chosen = longest_waited_for(main, [p for p in pipelines if p.host == main.host and p is not main], recording)
    return [replace(p, is_main=p is chosen) for p in pipelines]


def main_of_host(pipelines: Sequence[Pipeline]) -> Pipeline | None:
    """Return the pipeline that the verdict would be about if the run had only this host; None if none was consumed."""
    candidates = [p for p in pipelines if p.wait_ns or p.steps is not None]
    # a tf.data service worker always requests the next element, so its wait is not training time
    candidates = [p for p in candidates if not p.serves_elements] or candidates
    return max(
        candidates,
        key=lambda p: (p.consumer is not None and p.consumer.is_main, p.wait_ns, p.steps.count if p.steps else 0),
        default=None,
    )


def main_rank(pipeline: Pipeline) -> tuple[bool, bool, float]:
    """Return the sort key of `main_of_host` among the hosts: the greatest is the main pipeline of the run."""
    has_enough = pipeline.steps is not None and pipeline.steps.count >= MIN_VERDICT_STEPS.value
    return not pipeline.serves_elements, has_enough, pipeline.wait_share
