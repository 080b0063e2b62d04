"""Assembles folded nodes, calls, sums and attribution into the frozen `Pipeline`s of the model.

In: a `HostTrace`, its forest and timeline, and the recording.  Out: the host's `Pipeline`s; the main one is chosen later.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from advisor.graph.attribution import Blame, attribute
from advisor.graph.critical_path import critical_path, find_bottleneck
from advisor.graph.element_sizes import with_inferred_sizes
from advisor.graph.line_costs import lines_of
from advisor.graph.models import Models, executed_call
from advisor.graph.node_calls import already_done, calls_of, is_injected
from advisor.graph.nodes import Forest, Node, attach, is_device_pipeline
from advisor.graph.slowest_calls import slowest_calls
from advisor.graph.thread_states import RootCalls, Timeline
from advisor.graph.unmarked_steps import SLOW_CALL_NS, Steps, describe, find_steps, union, use_markers
from advisor.host.calibration.analysis import UNSEEN_SHARE, UNSEEN_WAIT_SHARE
from advisor.model.calls import Call
from advisor.model.catalog import SHUFFLES, base_type, is_async, is_source
from advisor.model.pipeline import Iterator, OpCost, Pipeline
from advisor.model.recording import Consumer, Recording
from advisor.model.trace import HostTrace

MOST_OPS = 20
"""Op types kept per iterator, most expensive first; rules never need the rest."""


SERVICE_THREAD = "tf_data_service"
"""Name prefix of the threads in which a tf.data service worker fetches elements for its consumers
(`tf_data_service_fcfs_prefetch_thread` in TensorFlow 2.21)."""


@dataclass(frozen=True, slots=True)
class Context:
    """The inputs shared by all pipelines of one host."""

    host: HostTrace
    forest: Forest
    timeline: Timeline
    recording: Recording | None
    calls: Mapping[str, Call]
    """Dataset name -> recorded call."""
    marks: list[tuple[int, int]]


def join_devices(forest: Forest, timeline: Timeline) -> None:
    """Attach each host pipeline of a distributed dataset to the device pipeline whose calls overlap with it most."""
    fed = [root for root in forest.roots if root.index in timeline.fed_roots and not is_device_pipeline(forest, root)]
    devices = [root for root in forest.roots if is_device_pipeline(forest, root) and root.index in timeline.root_calls]
    for host_root in fed:
        begin, finish = _lifetime(host_root, timeline)

        def overlap(device: Node, begin: int = begin, finish: int = finish) -> int:
            first, last = _lifetime(device, timeline)
            return min(finish, last) - max(begin, first)

        best = max(devices, key=overlap, default=None)
        if best is not None:
            attach(host_root, best, forest)
            devices.remove(best)


def _lifetime(root: Node, timeline: Timeline) -> tuple[int, int]:
    calls = timeline.root_calls[root.index]
    return int(calls.start_ns[0]), int(calls.end_ns.max())


def assemble(context: Context) -> list[Pipeline]:
    """Build all pipelines of one host."""
    pipelines = [_pipeline(context, root, number) for number, root in enumerate(context.forest.roots)]
    return [_with_fragments(pipeline, pipelines) for pipeline in pipelines]


def _with_fragments(pipeline: Pipeline, all_pipelines: Sequence[Pipeline]) -> Pipeline:
    """Separate iterators that ran inside a call that began before the profile and so has no event.

    The pipeline that they belong to gets a note. They have no consumer of their own, so that they have neither steps nor a wait.
    """
    if any(_is_fragment(pipeline, other) for other in all_pipelines):
        iterators = tuple(replace(it, blame_ns=0, blame_share=0.0) for it in pipeline.iterators)
        return replace(pipeline, iterators=iterators, bottleneck=None, steps=None, wait_ns=0, span_ns=0, num_elements=0)
    notes = (
        f"{other.root.long_name} belongs to it, but the call that it ran in began before the profile and has no event: none of "
        "the wait is attributed to it."
        for other in all_pipelines
        if _is_fragment(other, pipeline)
    )
    return replace(pipeline, notes=(*pipeline.notes, *notes))


def _is_fragment(part: Pipeline, whole: Pipeline) -> bool:
    """Whether a pipeline consists of iterators upstream of the last recorded one of another."""
    return any(it.is_upstream_unseen and part.root.long_name.startswith(f"{it.long_name}::") for it in whole.iterators)


def _pipeline(context: Context, root: Node, number: int) -> Pipeline:
    forest, nodes = context.forest, context.forest.upstream(root)
    calls = context.timeline.root_calls.get(root.index)
    steps: Steps | None = None
    notes: tuple[str, ...] = ()
    if calls is not None and root.index not in context.timeline.fed_roots:
        steps = find_steps(calls)
        if context.marks:
            steps = use_markers(steps, context.marks, calls)
        steps, notes = _with_producers(context, nodes, steps)
    blame: Blame | None = None
    parallelism = {node.index: _integer(node, "parallelism") or 1 for node in nodes}
    if steps is not None and calls is not None:
        # without a complete step (old single-step captures), attribute the calls themselves
        intervals = (steps.start_ns, steps.end_ns) if len(steps.start_ns) else union(calls)
        blame = attribute(context.timeline, forest, root.index, intervals, parallelism)
    ids = {node.index: f"p{number}.{place}" for place, node in enumerate(nodes)}
    models = Models(forest, root, context.recording, context.calls)
    iterators = with_inferred_sizes(_iterator(context, node, ids, blame, models) for node in nodes)
    classic = {
        ids[index]: value
        for index, value in context.timeline.slowest_call(root.index).items()
        if index in ids and index != root.index
    }
    path = critical_path(forest, nodes, {node.index: it.blame_ns for node, it in zip(nodes, iterators, strict=True)})
    iterators = [
        replace(it, is_on_critical_path=node.index in path, is_on_classic_path=it.id in classic)
        for node, it in zip(nodes, iterators, strict=True)
    ]
    host = context.recording.host if context.recording else None
    usage = context.recording.usage if context.recording else None
    span_ns = int(calls.end_ns.max() - calls.start_ns[0]) if calls is not None else 0
    bottleneck = find_bottleneck(iterators, classic, usage, host, span_ns) if blame and blame.total_ns else None
    if bottleneck:
        iterators = [replace(it, is_bottleneck=it.id == bottleneck.iterator_id) for it in iterators]
    duration = calls.end_ns - calls.start_ns if calls is not None else np.zeros(0, np.int64)
    return Pipeline(
        id=f"p{number}",
        host=context.host.hostname,
        iterators=tuple(iterators),
        consumer=_consumer_of(context, iterators),
        is_device=is_device_pipeline(forest, root) or root.index in context.timeline.fed_roots,
        serves_elements=calls is not None and _is_called_by_service(context.host, calls),
        steps=describe(steps) if steps is not None else None,
        wait_ns=_wait_ns(steps, blame),
        span_ns=steps.span_ns if steps is not None else 0,
        num_elements=len(steps.start_ns) if steps is not None else 0,
        min_call_ns=int(duration.min()) if len(duration) else 0,
        mean_call_ns=int(duration.mean()) if len(duration) else 0,
        max_call_ns=int(duration.max()) if len(duration) else 0,
        slow_calls=int((duration > SLOW_CALL_NS).sum()),
        slowest_calls=slowest_calls(context.timeline, forest, nodes, parallelism),
        bottleneck=bottleneck,
        already_done=already_done(iterators),
        model=models.window,
        notes=(*notes, *_notes(iterators)),
    )


def _is_called_by_service(host: HostTrace, calls: RootCalls) -> bool:
    """Whether all calls come from threads of a tf.data service worker."""
    return all(host.threads[number].name.startswith(SERVICE_THREAD) for number in np.unique(calls.thread).tolist())


def _with_producers(context: Context, nodes: Sequence[Node], steps: Steps) -> tuple[Steps, tuple[str, ...]]:
    """Drop the steps that waited although no producer was recorded during them.

    Older profilers lose the events of threads that end before the profile does: TensorFlow 2.16 keeps only the last epoch.
    Steps that take elements from a full buffer need no producer, so steps with little wait are kept.

    Returns:
        The remaining steps, and a note about the dropped ones (empty if none were dropped).
    """
    sums = (context.timeline.sums[node.index] for node in nodes)
    spans = ((t.produced_from_ns, t.produced_to_ns) for t in sums if t.produced_from_ns is not None)
    nearest = next(spans, None)
    if nearest is None or not len(steps.start_ns):
        return steps, ()
    # the consumer waits for its nearest producers; producers further upstream may have events that the nearest ones lack
    seen = (steps.end_ns > nearest[0]) & (steps.start_ns < nearest[1])
    unseen = steps.only(~seen)
    if not seen.any() or len(unseen.start_ns) < UNSEEN_SHARE.value * len(seen):
        return steps, ()
    if unseen.total_wait_ns < UNSEEN_WAIT_SHARE.value * unseen.span_ns:
        return steps, ()
    note = f"Only {int(seen.sum())} of {len(seen)} steps are used: no producer was recorded during the others."
    return steps.only(seen), (note,)


def _wait_ns(steps: Steps | None, blame: Blame | None) -> int:
    if steps is not None and len(steps.start_ns):
        return steps.total_wait_ns
    return blame.total_ns if blame else 0


def _iterator(context: Context, node: Node, ids: Mapping[int, str], blame: Blame | None, models: Models) -> Iterator:
    forest, sums = context.forest, context.timeline.sums[node.index]
    consumer, calls = forest.consumer(node), calls_of(forest, node, context.calls)
    parameters = dict(node.facts[-1].parameters)
    fills = [f.buffered_elements_mean for f in node.facts if f.buffered_elements_mean is not None]
    blame_ns = round(blame.blame_ns.get(node.index, 0.0)) if blame else 0
    ops = sorted(sums.ops.items(), key=lambda item: -item[1][1])[:MOST_OPS]
    asynchronous = is_async(node.type)
    own_ns = 0 if asynchronous else max(0, sums.self_ns - sums.waiting_ns)
    return Iterator(
        id=ids[node.index],
        parent_id=ids[consumer.index] if consumer is not None else None,
        name=node.type,
        long_name=node.long_name,
        dataset_name=node.dataset_name,
        calls=calls,
        num_calls=sums.num_calls,
        instances=len(node.facts),
        latency_ns=sums.latency_ns,
        self_ns=sums.self_ns,
        blame_ns=blame_ns,
        blame_share=blame.blame_ns.get(node.index, 0.0) / blame.total_ns if blame and blame.total_ns else 0.0,
        busy_ns=own_ns + sums.produce_ns + sums.function_ns,
        usual_ns=None if asynchronous else sums.usual_self_ns(),
        refill_ns=None if asynchronous else sums.refill_ns(),
        unprofiled_ns=models.unprofiled_ns(node),
        function_ns=sums.function_ns,
        python_ns=sums.python_ns,
        ops=tuple(OpCost(op, count, total) for op, (count, total) in ops),
        lines=lines_of(calls, sums.named_ops, context.host.op_names, context.recording, sums.function_runs()),
        parallelism=_integer(node, "parallelism"),
        is_autotuned=parameters.get("autotune") is True,
        buffer_size=_integer(node, "buffer_limit") or _integer(node, "buffer_size"),
        buffered_elements=sum(fills) / len(fills) if fills else None,
        element_bytes=models.element_bytes(node, calls),
        elements=sums.num_calls or sums.produced or None,
        parameters=parameters,
        is_async=asynchronous,
        injected_by_tensorflow=is_injected(forest, node, context.recording is not None),
        is_upstream_unseen=not forest.inputs(node) and not _may_be_source(node),
        has_saturated_calls=blame.is_saturated(node.index) if blame else None,
    )


def _may_be_source(node: Node) -> bool:
    """Whether the node can be a source: every type is, unless it is known to require an input.

    What `window` yields has the type of the call, but holds its elements itself.
    """
    if node.dataset_name.startswith("WindowOp"):
        return True
    return is_source(node.type) or node.base not in NEEDS_INPUT


NEEDS_INPUT = frozenset(
    {
        "Root",
        "Model",
        "Prefetch",
        "ParallelMap",
        "Map",
        "MapAndBatch",
        "Batch",
        "ParallelBatch",
        "PaddedBatch",
        "Shuffle",
        "ShuffleAndRepeat",
        "Repeat",
        "Take",
        "Skip",
        "Filter",
        "ParallelFilter",
        "Interleave",
        "ParallelInterleave",
        "LegacyParallelInterleave",
        "FlatMap",
        "Zip",
        "Concatenate",
        "Rebatch",
        "Shard",
        "Options",
        "MemoryCache",
        "Window",
        "Unbatch",
        "Scan",
        "TakeWhile",
        "GroupByWindow",
        "MaxIntraOpParallelism",
        "PrivateThreadPool",
    }
)
"""Types that always have an input; if the profile shows none, the input did not run inside the window."""


def _integer(node: Node, name: str) -> int | None:
    value = node.facts[-1].parameters.get(name)
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _notes(iterators: list[Iterator]) -> tuple[str, ...]:
    notes = []
    for it in iterators:
        if it.is_upstream_unseen:
            why = ", as its buffer held all elements that were left" if base_type(it.name) in SHUFFLES else ""
            notes.append(
                f"The input of {it.name} did not run inside the profile{why}: {it.name} is the last recorded iterator, "
                "not the source."
            )
        if it.name in ("MemoryCache", "FileCache") and any(
            below.parent_id == it.id and below.name.startswith(("MemoryWriter", "FileWriter")) for below in iterators
        ):
            notes.append("A cache was still being filled during the profile; later epochs are faster.")
    return tuple(notes)


def _consumer_of(context: Context, iterators: list[Iterator]) -> Consumer | None:
    """The recorded consumer whose dataset is nearest to the root."""
    if context.recording is None:
        return None
    ids = {call.id for it in iterators for call in it.calls}
    by_call: dict[str | None, Consumer] = {}
    for consumer in context.recording.consumers:
        executed = executed_call(context.calls, consumer.call_id, ids)
        if executed not in by_call or consumer.is_main:
            by_call[executed] = consumer
    for it in iterators:
        for call in reversed(it.calls):
            if call.id in by_call:
                return by_call[call.id]
    return None
