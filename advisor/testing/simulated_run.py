"""The run of a simulated script: its executed graph and its measurements.

In: stages and a machine. Out: `SimulatedPipeline`. Used by `advisor.testing`, which rule files import.

The timing follows a production line: iterators between two asynchronous boundaries share a thread, and their times add
up; the function of an asynchronous iterator has as many threads as its parallelism; the slowest group determines the
throughput. The cores and the interpreter lock are upper limits. The consumer's wait is attributed to the slowest group.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from advisor.model.calls import AUTOTUNE, Call, Scalar
from advisor.model.catalog import is_async
from advisor.model.pipeline import Analysis, Bottleneck, Iterator, OpCost, Pipeline, StepStats, Verdict
from advisor.model.recording import Consumer, Host, Recording, ScriptExit
from advisor.model.units import format_share
from advisor.model.window_readings import Usage
from advisor.testing.simulated_script import FILE, Machine, Script, Stage

MS = 1_000_000
"""Nanoseconds per millisecond."""


@dataclass(frozen=True, slots=True)
class SimulatedPipeline:
    """The result of `pipeline`."""

    analysis: Analysis
    source: str
    """Source text of the simulated script."""


_VERSIONED = {"Batch": "BatchV2", "ParallelMap": "ParallelMapV2", "ParallelInterleave": "ParallelInterleaveV4"}

_AHEAD = ("MapAndBatch", "ParallelMap", "ParallelBatch")
"""Behind these tf.data adds no prefetch."""


@dataclass
class _Node:
    """An executed iterator under construction."""

    type: str
    parent: _Node | None
    calls: tuple[Call, ...] = ()
    ms: float = 0.0
    """Work per step, including time blocked by ordering."""
    own_ms: float = 0.0
    """Work per step."""
    cpu_ms: float = 0.0
    python_ms: float = 0.0
    function_ms: float = 0.0
    op_ms: dict[str, float] = field(default_factory=dict)
    elements: float = 1.0
    """Elements produced per step."""
    bytes: int | None = None
    parallelism: int | None = None
    is_autotuned: bool = False
    injected: bool = False
    group: int = 0
    width: int = 1
    instances: int = 1
    waiting: float | None = None
    parameters: dict[str, Scalar] = field(default_factory=dict)


def measure(stages: Sequence[Stage], machine: Machine) -> SimulatedPipeline:
    """Simulate capture and graph analysis of a script with these stages, source first."""
    script = Script(stages, machine)
    nodes = _execute(stages, script, machine)
    step_ms, top_ms, slowest = _pace(nodes, machine)
    return SimulatedPipeline(_analysis(nodes, script, machine, step_ms, top_ms, slowest), script.text)


def _execute(stages: Sequence[Stage], script: Script, machine: Machine) -> list[_Node]:
    """The executed graph after tf.data's rewrites, root first."""
    set_options = dict(option for stage in stages for option in stage.options)
    is_tuned = set_options.get("autotune.enabled", True) is True
    is_optimized = set_options.get("experimental_optimization.apply_default_optimizations", True) is True
    is_prefetched = set_options.get("experimental_optimization.inject_prefetch", True)
    nodes = [_Node("Root", None, injected=True, parameters={"cpu_budget": machine.cores, **dict(machine.root)})]
    written = [i for i, stage in enumerate(stages) if stage.type != "Options"]
    if is_tuned and is_optimized and is_prefetched and stages[written[-1]].type != "Prefetch":
        nodes.append(_Node("Prefetch", nodes[-1], injected=True, is_autotuned=True))
    rate = 1.0
    for i in reversed(written):
        stage, below = stages[i], nodes[-1]
        fused = _fusion(stage, below, is_optimized)
        if fused is not None:
            below.type, below.calls = fused, (script.of_stage[id(stage)], *below.calls)
            node = below
        else:
            call = script.of_stage.get(id(stage))
            node = _Node(stage.type, below, calls=(call,) if call else (), elements=rate, injected=call is None)
            node.bytes = call.element_bytes if call else None
            nodes.append(node)
        _parallelise(node, stage, machine, is_tuned and is_optimized)
        _charge(node, stage, rate)
        for inner_stage in reversed(stage.inner):
            inner = _Node(inner_stage.type, nodes[-1], calls=(script.of_stage[id(inner_stage)],), elements=rate)
            inner.bytes = inner.calls[0].element_bytes
            inner.instances = max(1, round(rate * stage.consumes * machine.steps))
            _parallelise(inner, inner_stage, machine, is_rewritten=False)
            _charge(inner, inner_stage, rate)
            nodes.append(inner)
        rate *= stage.consumes
        if stage.inner:
            # The stages upstream of the interleave follow as its other input.
            outer = [s for s in written if s < i]
            nodes += _outer(stages, outer, script, node, rate)
            break
    if len(nodes) > 2 and nodes[1].injected and nodes[2].type in _AHEAD:
        nodes[2].parent = nodes[0]
        del nodes[1]
    _assign_threads(nodes)
    return nodes


def _outer(stages: Sequence[Stage], outer: list[int], script: Script, parent: _Node, rate: float) -> list[_Node]:
    """The input of an interleave, usually file names; no rewrites apply to it."""
    nodes: list[_Node] = []
    for i in reversed(outer):
        stage = stages[i]
        node = _Node(stage.type, nodes[-1] if nodes else parent, calls=(script.of_stage[id(stage)],), elements=rate)
        _charge(node, stage, rate)
        nodes.append(node)
        rate *= stage.consumes
    return nodes


def _fusion(stage: Stage, below: _Node, is_optimized: bool) -> str | None:
    if not is_optimized or not below.calls:
        return None
    if stage.type == "Map" and below.type in ("Batch", "ParallelBatch") and len(below.calls) == 1:
        return "MapAndBatch"
    if stage.type == "Shuffle" and below.type.endswith("Repeat") and len(below.calls) == 1:
        return "ShuffleAndRepeat"
    return None


def _parallelise(node: _Node, stage: Stage, machine: Machine, is_rewritten: bool) -> None:
    written = dict(stage.arguments).get("num_parallel_calls")
    is_stateful = stage.function is not None and stage.function.is_stateful
    if written is None and is_rewritten and stage.type == "Map" and not is_stateful:
        written = AUTOTUNE
    node.parameters |= dict(stage.parameters)
    if node.type == "MapAndBatch" and stage.type == "Map":
        node.parallelism, node.is_autotuned = 1, False
    if written is not None:
        node.is_autotuned = written == AUTOTUNE
        node.parallelism = int(machine.cores) if node.is_autotuned else int(str(written))
        if node.type != "MapAndBatch":
            node.type = "Parallel" + node.type
    if "Interleave" in node.type:
        node.parameters["cycle_length"] = int(str(dict(stage.arguments).get("cycle_length", machine.cores)))


def _charge(node: _Node, stage: Stage, rate: float) -> None:
    work = stage.ms * rate
    node.ms += work / (1 - stage.idle_share)
    node.waiting = stage.waiting
    node.own_ms += work
    node.python_ms += work * stage.python_share
    node.cpu_ms += 0.0 if stage.sleeps else work
    if stage.function is not None:
        node.function_ms += work
        for op, share in stage.op_shares or (("Op", stage.op_share),):
            node.op_ms[op] = node.op_ms.get(op, 0.0) + work * share


def _assign_threads(nodes: list[_Node]) -> None:
    """Assign thread groups: 0 is the consumer's thread, and each asynchronous boundary starts new ones."""
    count = 0
    below: dict[int, tuple[int, int]] = {id(nodes[0]): (0, 1)}
    for node in nodes[1:]:
        assert node.parent is not None
        group, width = below[id(node.parent)]
        if (
            "Interleave" in node.parent.type
            and node.parent.type.startswith("Parallel")
            and not any(call.nested_in for call in node.calls)
        ):
            count += 1
            group, width = count, 1
        if is_async(node.type):
            count += 2
            node.group, node.width = count - 1, node.parallelism or 1
            is_interleave = "Interleave" in node.type
            below[id(node)] = (count - 1, node.width) if is_interleave else (count, 1)
        else:
            node.group, node.width = group, width
            below[id(node)] = (group, width)


def _pace(nodes: list[_Node], machine: Machine) -> tuple[float, float, list[_Node]]:
    """Return (ms per step, ms of pipeline work in the consumer's thread, nodes of the slowest group)."""
    groups: dict[int, float] = {}
    for node in nodes:
        groups[node.group] = groups.get(node.group, 0.0) + node.ms / node.width
    top = groups.pop(0, 0.0)
    slowest = max(groups, key=lambda group: groups[group], default=0)
    work = machine.consumer_ms + sum(node.cpu_ms for node in nodes)
    cpu = work / max(machine.cores - machine.busy_cores, 0.1)
    python = sum(min(node.python_ms, node.cpu_ms) for node in nodes)
    step = max(machine.consumer_ms + top, groups.get(slowest, 0.0), cpu, python)
    return step, top, [node for node in nodes if node.group == slowest and node.ms > 0]


def _analysis(
    nodes: list[_Node], script: Script, machine: Machine, step_ms: float, top_ms: float, slowest: list[_Node]
) -> Analysis:
    wait_ms = step_ms - machine.consumer_ms
    buffered_ms = max(0.0, wait_ms - top_ms)
    slow_ms = sum(node.ms for node in slowest)
    blame = {}
    for node in nodes:
        own = node.ms if node.group == 0 else 0.0
        shared = buffered_ms * node.ms / slow_ms if node in slowest and node.group != 0 and slow_ms else 0.0
        blame[id(node)] = own + shared
    ids = {id(node): f"p0.{i}" for i, node in enumerate(nodes)}
    long_names: dict[int, str] = {}
    iterators = []
    for node in nodes:
        name = _VERSIONED.get(node.type, node.type)
        above = long_names[id(node.parent)] if node.parent else "Iterator"
        long_names[id(node)] = f"{above}::{name}"
        busy = round(node.own_ms * machine.steps * MS)
        ops = tuple(OpCost(op, 1, round(ms * machine.steps * MS)) for op, ms in node.op_ms.items() if node.function_ms)
        sizes = [call.arguments.get("buffer_size") for call in node.calls]
        iterators.append(
            Iterator(
                id=ids[id(node)],
                parent_id=ids[id(node.parent)] if node.parent else None,
                name=name,
                long_name=long_names[id(node)],
                calls=node.calls,
                num_calls=round(node.elements * machine.steps),
                self_ns=busy,
                busy_ns=busy,
                blame_ns=round(blame[id(node)] * machine.steps * MS),
                blame_share=blame[id(node)] / wait_ms if wait_ms > 0 else 0.0,
                function_ns=round(node.function_ms * machine.steps * MS),
                python_ns=round(node.python_ms * machine.steps * MS),
                ops=ops,
                parallelism=node.parallelism,
                is_autotuned=node.is_autotuned,
                element_bytes=node.bytes,
                elements=round(node.elements * machine.steps),
                instances=node.instances,
                buffered_elements=node.waiting,
                buffer_size=next((size for size in sizes if isinstance(size, int) and size > 0), None),
                parameters={name: value for name, value in node.parameters.items() if value is not None},
                is_async=is_async(node.type),
                injected_by_tensorflow=node.injected,
                has_saturated_calls=any(node.group == slow.group for slow in slowest)
                if node.parallelism is not None
                else None,
            )
        )
    steps = _steps(machine, step_ms, wait_ms)
    consumer = Consumer(
        "consumer0",
        script.calls[-1].id,
        "for",
        script.reader,
        iterators=machine.epochs,
        is_main=True,
        releases=machine.releases,
    )
    worst = max(iterators, key=lambda it: it.blame_share)
    simulated = Pipeline(
        "p0",
        "simulated",
        tuple(iterators),
        consumer,
        is_main=True,
        steps=steps,
        wait_ns=round(wait_ms * machine.steps * MS),
        span_ns=round(step_ms * machine.steps * MS),
        num_elements=machine.steps,
        bottleneck=Bottleneck(worst.id, "node", worst.blame_share) if worst.blame_share > 0 else None,
    )
    share = simulated.wait_share
    level = "high" if share >= 0.2 else "moderate" if share >= 0.05 else "none"
    verdict = Verdict(
        level != "none",
        share,
        1 / (1 - min(share, 0.999)),
        steps,
        "pipeline" if level != "none" else "model",
        f"{format_share(share)} of the step time is spent waiting for input.",
        level=level,
    )
    wall = round(step_ms * machine.steps * MS)
    work = machine.consumer_ms + sum(node.cpu_ms for node in nodes)
    busy_cores = min(machine.cores, work / step_ms + machine.busy_cores)
    host = Host(
        "simulated",
        machine.cores,
        int(machine.cores),
        machine.memory_bytes,
        machine.memory_bytes,
        disk_free_bytes=machine.disk_bytes,
    )
    usage = Usage(wall, round(wall * busy_cores))
    calls = script.all_calls(machine)
    end = ScriptExit("finished")
    recording = Recording(FILE, host, end, calls=calls, consumers=(consumer,)) if machine.is_finished else None
    return Analysis(FILE, verdict, (simulated,), calls, host, usage, recording=recording)


def _steps(machine: Machine, step_ms: float, wait_ms: float) -> StepStats:
    step, wait = round(step_ms * MS), round(wait_ms * MS)
    low, high = round(step * 0.99), round(step * 1.01)
    return StepStats(machine.steps, step, round(step * 1.05), step, low, high, wait, wait, 10, 0.0044, 10)
