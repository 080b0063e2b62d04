"""The run that a made-up pipeline would have: its script, its executed graph and its measurements.

In: stages and a machine.  Out: `MadePipeline`. Used by `advisor.testing`, which is what rule files import.

The timing is that of a production line: iterators between two asynchronous boundaries share a thread and add up, an
asynchronous iterator's function has as many threads as its parallelism, the slowest of these sets the pace, and neither all
cores nor Python's one lock can be exceeded. What the consumer waits for is blamed on the slowest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from advisor.model.catalog import is_async
from advisor.model.pipeline import Analysis, Bottleneck, Iterator, OpCost, Pipeline, StepStats, Verdict
from advisor.model.recording import (
    AUTOTUNE,
    INFINITE_CARDINALITY,
    UNKNOWN_CARDINALITY,
    Call,
    Consumer,
    FunctionFacts,
    Host,
    Scalar,
    Site,
    Usage,
)

FILE = "train.py"
MS = 1_000_000


@dataclass(frozen=True, slots=True)
class Stage:
    """One call of the script."""

    method: str
    type: str
    """Iterator type before any rewrite, without a version."""
    ms: float = 0.0
    """Work per element it produces."""
    function: FunctionFacts | None = None
    arguments: tuple[tuple[str, Scalar], ...] = ()
    """As written in the call, in order."""
    positional: tuple[str, ...] = ()
    """Source text of the arguments before those."""
    consumes: float = 1.0
    """Elements it takes from its input for each that it produces; 0: a source."""
    bytes: int | None = None
    """Bytes of an element it produces; None: as its input's."""
    elements: int | None = None
    """Sources: elements of an epoch (UNKNOWN_CARDINALITY: TensorFlow cannot know)."""
    inner: tuple[Stage, ...] = ()
    """Stages in its function (interleave)."""
    options: tuple[tuple[str, bool], ...] = ()
    python_share: float = 0.0
    """Share of its work that holds Python's lock."""
    op_share: float = 1.0
    """Share of its function's time inside ops; the rest is the cost of calling it."""


@dataclass(frozen=True, slots=True)
class Machine:
    """What the pipeline runs on and who consumes it."""

    consumer_ms: float
    cores: float = 8
    busy_cores: float = 0.0
    """Cores that the consumer and others keep busy all the time."""
    memory_bytes: int = 16 << 30
    epochs: int = 1
    gil_wait: float | None = None
    steps: int = 100


@dataclass(frozen=True, slots=True)
class MadePipeline:
    """What `pipeline` makes."""

    analysis: Analysis
    source: str
    """The script that it would be the run of."""


_VERSIONED = {"Batch": "BatchV2", "ParallelMap": "ParallelMapV2", "ParallelInterleave": "ParallelInterleaveV4"}

_FIRST_PARAMETER = {
    "map": "map_func",
    "filter": "predicate",
    "batch": "batch_size",
    "shuffle": "buffer_size",
    "prefetch": "buffer_size",
    "repeat": "count",
    "take": "count",
    "interleave": "map_func",
    "TFRecordDataset": "filenames",
    "TextLineDataset": "filenames",
    "from_tensor_slices": "tensors",
    "range": "stop",
    "from_generator": "generator",
    "list_files": "file_pattern",
}


@dataclass
class _Node:
    """An executed iterator, while it is being made."""

    type: str
    parent: _Node | None
    stages: list[int] = field(default_factory=list)
    calls: tuple[Call, ...] = ()
    ms: float = 0.0
    """Work per step."""
    python_ms: float = 0.0
    function_ms: float = 0.0
    op_ms: float = 0.0
    elements: float = 1.0
    """Produced per step."""
    bytes: int | None = None
    parallelism: int | None = None
    is_autotuned: bool = False
    injected: bool = False
    group: int = 0
    width: int = 1
    parameters: dict[str, str | int | float | bool] = field(default_factory=dict)


def measure(stages: Sequence[Stage], machine: Machine) -> MadePipeline:
    """What a capture and the graph phase would have said of a script with these stages, source first."""
    script = _Script(stages, machine)
    nodes = _execute(stages, script, machine)
    step_ms, top_ms, slowest = _pace(nodes, machine)
    return MadePipeline(_analysis(nodes, script, machine, step_ms, top_ms, slowest), script.text)


class _Script:
    """The source text and the recorded calls."""

    def __init__(self, stages: Sequence[Stage], machine: Machine) -> None:
        self.lines = ["import tensorflow as tf", ""]
        self.calls: list[Call] = []
        self.of_stage: dict[int, Call] = {}
        """id(stage) -> call."""
        elements, size = 0, 0
        for stage in stages:
            elements, size = _flow(stage, elements, size)
            self._write(stage, elements, size)
        loop = "for batch in ds:"
        if machine.epochs > 1:
            self.lines.append(f"for epoch in range({machine.epochs}):")
            loop = "    " + loop
        self.lines += [loop, loop[: len(loop) - len(loop.lstrip())] + "    train_step(batch)"]
        self.text = "\n".join(self.lines) + "\n"

    def _write(self, stage: Stage, elements: int, size: int) -> None:
        for name, value in stage.options:
            if "options = tf.data.Options()" not in self.lines:
                self.lines.append("options = tf.data.Options()")
            self.lines.append(f"options.{name} = {value}")
        prefix = "ds = " if stage.consumes == 0 else "ds = ds"
        inputs = (self.calls[-1].id,) if stage.consumes else ()
        # The call's place in the list is taken before those that its function makes.
        call_id = f"c{len(self.calls)}"
        nested: list[Call] = []
        inner = ""
        if stage.inner:
            inner = "lambda file: "
            size_inside = 0
            start = len(prefix) + len(f".{stage.method}(")
            for i, each in enumerate(stage.inner):
                _, size_inside = _flow(each, UNKNOWN_CARDINALITY, size_inside)
                previous = (nested[-1].id,) if i else ()
                text = _text(each)
                nested.append(
                    self._call(
                        f"{call_id}_{i}",
                        each,
                        start + len(inner),
                        text,
                        previous,
                        UNKNOWN_CARDINALITY,
                        size_inside,
                        nested_in=call_id,
                    )
                )
                inner += text
            size = size_inside
        text = _text(stage, inner)
        call = self._call(call_id, stage, len(prefix), text, inputs, elements, size)
        self.lines.append(prefix + text)
        self.calls += [*nested, call]

    def _call(
        self,
        call_id: str,
        stage: Stage,
        column: int,
        text: str,
        inputs: tuple[str, ...],
        elements: int,
        size: int,
        nested_in: str | None = None,
    ) -> Call:
        line = len(self.lines) + 1
        name = column + text.index(stage.method) + 1
        arguments = {_FIRST_PARAMETER.get(stage.method, "arg0"): _scalar(value) for value in stage.positional}
        arguments |= dict(stage.arguments)
        call = Call(
            id=call_id,
            method=stage.method,
            site=Site(FILE, line, name, line, column + len(text) + 1),
            inputs=inputs,
            arguments=arguments,
            explicit=tuple(arguments),
            function=stage.function,
            nested_in=nested_in,
            cardinality=elements,
            element_bytes=size or None,
            options=dict(stage.options),
            text=text,
        )
        self.of_stage[id(stage)] = call
        return call


def _flow(stage: Stage, elements: int, size: int) -> tuple[int, int]:
    """(elements of an epoch, bytes of one) behind a stage, from those before it."""
    if stage.consumes == 0:
        return (UNKNOWN_CARDINALITY if stage.elements is None else stage.elements), stage.bytes or 0
    if stage.type == "ForeverRepeat":
        elements = INFINITE_CARDINALITY
    elif stage.type == "FiniteTake":
        elements = int(stage.positional[0])
    elif stage.method in ("filter", "interleave"):
        elements = UNKNOWN_CARDINALITY
    elif elements > 0:
        elements = int(elements / stage.consumes)
    if stage.type == "FiniteRepeat" and elements > 0:
        elements *= int(stage.positional[0])
    if stage.bytes is not None:
        return elements, stage.bytes
    return elements, int(size * stage.consumes) if stage.method == "batch" else size


def _text(stage: Stage, inner: str = "") -> str:
    arguments = [inner] if inner else list(stage.positional)
    arguments += [f"{name}={_literal(name, value)}" for name, value in stage.arguments]
    call = f"{stage.method}({', '.join(arguments)})"
    if stage.consumes:
        return "." + call
    return ("tf.data." if stage.method[0].isupper() else "tf.data.Dataset.") + call


def _literal(name: str, value: Scalar) -> str:
    return "tf.data.AUTOTUNE" if name == "num_parallel_calls" and value == AUTOTUNE else str(value)


def _scalar(text: str) -> Scalar:
    if text == "tf.data.AUTOTUNE":
        return AUTOTUNE
    return int(text) if text.isdigit() else text.strip('"') if text.startswith('"') else f"<{text}>"


def _execute(stages: Sequence[Stage], script: _Script, machine: Machine) -> list[_Node]:
    """The executed graph after tf.data's rewrites, root first."""
    set_options = dict(option for stage in stages for option in stage.options)
    is_tuned = set_options.get("autotune.enabled", True)
    is_optimized = set_options.get("experimental_optimization.apply_default_optimizations", True)
    nodes = [_Node("Root", None, injected=True, parameters={"cpu_budget": machine.cores})]
    written = [i for i, stage in enumerate(stages) if stage.type != "Options"]
    if is_tuned and is_optimized and stages[written[-1]].type != "Prefetch":
        nodes.append(_Node("Prefetch", nodes[-1], injected=True, is_autotuned=True))
    rate = 1.0
    for i in reversed(written):
        stage, below = stages[i], nodes[-1]
        fused = _fusion(stage, below, is_optimized)
        if fused is not None:
            below.type, below.calls = fused, (script.of_stage[id(stage)], *below.calls)
            node = below
        else:
            node = _Node(stage.type, below, calls=(script.of_stage[id(stage)],), elements=rate)
            node.bytes = node.calls[0].element_bytes
            nodes.append(node)
        _parallelise(node, stage, machine, is_tuned and is_optimized)
        _charge(node, stage, rate)
        for each in reversed(stage.inner):
            inner = _Node(each.type, nodes[-1], calls=(script.of_stage[id(each)],), elements=rate)
            inner.bytes = inner.calls[0].element_bytes
            _charge(inner, each, rate)
            nodes.append(inner)
        rate *= stage.consumes
        if stage.inner:
            # What stands above the interleave comes next, as its other input.
            outer = [s for s in written if s < i]
            nodes += _outer(stages, outer, script, node, rate)
            break
    _assign_threads(nodes)
    return nodes


def _outer(stages: Sequence[Stage], outer: list[int], script: _Script, parent: _Node, rate: float) -> list[_Node]:
    """The input of an interleave: file names; no rewrite is worth a thought there."""
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
    if written is None and is_rewritten and ((stage.type == "Map" and not is_stateful) or stage.type == "Batch"):
        written = AUTOTUNE
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
    node.ms += work
    node.python_ms += work * stage.python_share
    if stage.function is not None:
        node.function_ms += work
        node.op_ms += work * stage.op_share


def _assign_threads(nodes: list[_Node]) -> None:
    """Group 0 is the consumer's own thread; each asynchronous boundary begins others."""
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
    """(ms per step, of these ms of pipeline work in the consumer's own thread, the nodes that keep it waiting)."""
    groups: dict[int, float] = {}
    for node in nodes:
        groups[node.group] = groups.get(node.group, 0.0) + node.ms / node.width
    top = groups.pop(0, 0.0)
    slowest = max(groups, key=lambda group: groups[group], default=0)
    cpu = sum(node.ms for node in nodes) / max(machine.cores - machine.busy_cores, 0.1)
    python = 0.0 if machine.gil_wait is not None and machine.gil_wait < 0.2 else sum(node.python_ms for node in nodes)
    step = max(machine.consumer_ms + top, groups.get(slowest, 0.0), cpu, python)
    return step, top, [node for node in nodes if node.group == slowest and node.ms > 0]


def _analysis(
    nodes: list[_Node], script: _Script, machine: Machine, step_ms: float, top_ms: float, slowest: list[_Node]
) -> Analysis:
    wait_ms = step_ms - machine.consumer_ms
    behind_ms = max(0.0, wait_ms - top_ms)
    slow_ms = sum(node.ms for node in slowest)
    blame = {}
    for node in nodes:
        own = node.ms if node.group == 0 else 0.0
        shared = behind_ms * node.ms / slow_ms if node in slowest and node.group != 0 and slow_ms else 0.0
        blame[id(node)] = own + shared
    ids = {id(node): f"p0.{i}" for i, node in enumerate(nodes)}
    long_names: dict[int, str] = {}
    iterators = []
    for node in nodes:
        name = _VERSIONED.get(node.type, node.type)
        above = long_names[id(node.parent)] if node.parent else "Iterator"
        long_names[id(node)] = f"{above}::{name}"
        busy = round(node.ms * machine.steps * MS)
        ops = (OpCost("Op", 1, round(node.op_ms * machine.steps * MS)),) if node.function_ms else ()
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
                parameters=node.parameters,
                is_async=is_async(node.type),
                injected_by_tensorflow=node.injected,
                has_saturated_calls=any(node.group == each.group for each in slowest)
                if node.parallelism is not None
                else None,
            )
        )
    steps = _steps(machine, step_ms, wait_ms)
    consumer = Consumer(
        "consumer0",
        script.calls[-1].id,
        "for",
        Site(FILE, len(script.lines) - 1, 1, len(script.lines), 1),
        iterators=machine.epochs,
        is_main=True,
    )
    worst = max(iterators, key=lambda it: it.blame_share)
    made = Pipeline(
        "p0",
        "made-up",
        tuple(iterators),
        consumer,
        is_main=True,
        steps=steps,
        wait_ns=round(wait_ms * machine.steps * MS),
        span_ns=round(step_ms * machine.steps * MS),
        num_elements=machine.steps,
        bottleneck=Bottleneck(worst.id, "node", worst.blame_share) if worst.blame_share > 0 else None,
    )
    share = made.wait_share
    level = "high" if share >= 0.2 else "moderate" if share >= 0.05 else "none"
    verdict = Verdict(
        level != "none",
        share,
        1 / (1 - min(share, 0.999)),
        steps,
        "pipeline" if level != "none" else "model",
        f"{share:.0%} of the step time is spent waiting for input.",
        level=level,
    )
    wall = round(step_ms * machine.steps * MS)
    busy_cores = min(machine.cores, sum(node.ms for node in nodes) / step_ms + machine.busy_cores)
    host = Host("made-up", machine.cores, int(machine.cores), machine.memory_bytes, machine.memory_bytes)
    usage = Usage(wall, round(wall * busy_cores), gil_wait_share=machine.gil_wait)
    return Analysis(FILE, verdict, (made,), tuple(script.calls), host, usage)


def _steps(machine: Machine, step_ms: float, wait_ms: float) -> StepStats:
    step, wait = round(step_ms * MS), round(wait_ms * MS)
    return StepStats(machine.steps, step, round(step * 1.05), step, round(step * 0.99), round(step * 1.01), wait, wait)
