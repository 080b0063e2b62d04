"""The script of a simulated pipeline: its source text and the calls that a recorder would see.

In: stages and a machine. Out: `Script`. Used by `advisor.testing.simulated_run`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from advisor.model.calls import (
    AUTOTUNE,
    INFINITE_CARDINALITY,
    UNKNOWN_CARDINALITY,
    BatchLine,
    Call,
    FunctionFacts,
    Scalar,
    Site,
)
from advisor.testing.function_texts import Definition

FILE = "train.py"


@dataclass(frozen=True, slots=True)
class Stage:
    """One call of the script."""

    method: str
    """Empty for an iterator that TensorFlow inserts and that is not in the script."""
    type: str
    """Iterator type before any rewrite, without a version."""
    ms: float = 0.0
    """Work in milliseconds per element produced."""
    function: FunctionFacts | None = None
    arguments: tuple[tuple[str, Scalar], ...] = ()
    """Keyword arguments of the call, in order."""
    positional: tuple[str, ...] = ()
    """Source text of the positional arguments."""
    consumes: float = 1.0
    """Input elements consumed per element produced; 0 for a source."""
    bytes: int | None = None
    """Size of an output element in bytes; None if it equals that of the input."""
    elements: int | None = None
    """Sources only: elements per epoch; UNKNOWN_CARDINALITY if TensorFlow does not know it."""
    file_bytes: int | None = None
    """Sources only: total size of their files in bytes."""
    inner: tuple[Stage, ...] = ()
    """Stages inside its function (interleave)."""
    options: tuple[tuple[str, Scalar], ...] = ()
    python_share: float = 0.0
    """Share of its work in Python."""
    sleeps: bool = False
    """Its work consists of waiting: it uses no core and does not hold the interpreter lock."""
    op_share: float = 1.0
    """Share of its function's time inside ops; the rest is call overhead."""
    op_shares: tuple[tuple[str, float], ...] = ()
    """(op type, share of the function's time), if the op types matter."""
    described: tuple[tuple[str, Scalar], ...] = ()
    """Arguments as a recorder describes them, if they do not follow from the text."""
    parameters: tuple[tuple[str, Scalar], ...] = ()
    """Parameters of its iterator in the profile."""
    idle_share: float = 0.0
    """Average share of its parallel calls that are idle because a slow element blocks the following ones."""
    waiting: float | None = None
    """Average number of finished elements that wait to be emitted."""
    spec: str = ""
    """Element spec as text; empty: that of the input, if the stage has no function and does not group elements, else unknown."""
    definition: Definition | None = None
    """The text of its function; None: the script does not show it."""


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine that runs the pipeline, and the consumer."""

    consumer_ms: float
    cores: float = 8
    busy_cores: float = 0.0
    """Cores constantly used by other processes."""
    memory_bytes: int = 16 << 30
    epochs: int = 1
    steps: int = 100
    disk_bytes: int | None = None
    """Free space of the script's disk in bytes."""
    root: tuple[tuple[str, Scalar], ...] = ()
    """Parameters of the root iterator in the profile (`cpu_budget`, ...)."""
    is_finished: bool = False
    """Whether the script was observed to the end, including all epochs."""
    releases: tuple[tuple[int, int], ...] = ()
    """As in `Consumer`."""
    making_ms: float | None = None
    """Time in which all calls of the dataset are made, once per epoch; None: they are made once."""
    makes_equal: bool = True
    """Whether these datasets have equal arguments."""


_FIRST_PARAMETER = {
    "map": "map_func",
    "filter": "predicate",
    "batch": "batch_size",
    "cache": "filename",
    "flat_map": "map_func",
    "padded_batch": "batch_size",
    "rebatch": "batch_size",
    "shard": "num_shards",
    "skip": "count",
    "shuffle": "buffer_size",
    "prefetch": "buffer_size",
    "repeat": "count",
    "take": "count",
    "window": "size",
    "interleave": "map_func",
    "TFRecordDataset": "filenames",
    "TextLineDataset": "filenames",
    "from_tensor_slices": "tensors",
    "range": "stop",
    "from_generator": "generator",
    "list_files": "file_pattern",
}


class Script:
    """The source text and the recorded calls."""

    def __init__(self, stages: Sequence[Stage], machine: Machine) -> None:
        self.lines = ["import tensorflow as tf", ""]
        self.calls: list[Call] = []
        self.of_stage: dict[int, Call] = {}
        """id(stage) -> call."""
        self.reader: Site
        """Where the loop reads the dataset."""
        self._functions: dict[int, FunctionFacts] = {}
        """id(stage) -> facts about a function that the script defines, with their lines."""
        self._indent = ""
        for stage in stages:
            self._define(stage)
        if machine.making_ms is not None and machine.epochs > 1:
            self.lines.append(f"for epoch in range({machine.epochs}):")
            self._indent = "    "
        elements, size = 0, 0
        for stage in stages:
            elements, size = _flow(stage, elements, size)
            if stage.method:
                self._write(stage, elements, size)
        if machine.epochs > 1 and not self._indent:
            self.lines.append(f"for epoch in range({machine.epochs}):")
            self._indent = "    "
        loop = f"{self._indent}for batch in ds:"
        self.lines += [loop, f"{self._indent}    train_step(batch)"]
        line, end = len(self.lines) - 1, len(loop)
        self.reader = Site(FILE, line, end - 2, line, end)
        self.text = "\n".join(self.lines) + "\n"

    def all_calls(self, machine: Machine) -> tuple[Call, ...]:
        """Return the calls of all datasets, of which the last one is consumed: one, or one per epoch."""
        if machine.making_ms is None:
            return tuple(self.calls)
        each_ns = round(machine.making_ms * 1e6 / len(self.calls))
        own = {call.id for call in self.calls}
        epochs = []
        for epoch in range(1, machine.epochs):
            renamed = {call_id: f"{call_id}_{epoch}" for call_id in own}
            epochs += [
                replace(call, id=renamed[call.id], inputs=tuple(renamed[i] for i in call.inputs), made_ns=each_ns)
                for call in self.calls
            ]
        made = [*epochs, *(replace(call, made_ns=each_ns) for call in self.calls)]
        return tuple(
            replace(call, identity="equal" if machine.makes_equal else str(number)) for number, call in enumerate(made)
        )

    def _define(self, stage: Stage) -> None:
        """Write the definition of the function of a stage, if it has one."""
        if stage.definition is None or stage.function is None:
            return
        first = len(self.lines) + 1
        head = f"def {stage.function.name}({stage.definition.parameters}):"
        self.lines += [head, *(f"    {line.text}" for line in stage.definition.lines), "", ""]
        lines = tuple(
            BatchLine(number, line.called, dict.fromkeys(line.ops, 1), line.takes_batches)
            for number, line in enumerate(stage.definition.lines, start=first + 1)
        )
        site = Site(FILE, first, 1, first + len(lines), 1)
        self._functions[id(stage)] = replace(stage.function, site=site, batch_lines=lines)

    def _write(self, stage: Stage, elements: int, size: int) -> None:
        for name, value in stage.options:
            if f"{self._indent}options = tf.data.Options()" not in self.lines:
                self.lines.append(f"{self._indent}options = tf.data.Options()")
            self.lines.append(f"{self._indent}options.{name} = {value}")
        prefix = self._indent + ("ds = " if stage.consumes == 0 else "ds = ds")
        inputs = (self.calls[-1].id,) if stage.consumes else ()
        # The id is assigned before those of the calls inside its function.
        call_id = f"c{len(self.calls)}"
        nested: list[Call] = []
        inner = ""
        if stage.inner:
            inner = "lambda file: " if stage.inner[0].consumes == 0 else "lambda file: file"
            size_inside = 0
            start = len(prefix) + len(f".{stage.method}(")
            for i, inner_stage in enumerate(stage.inner):
                _, size_inside = _flow(inner_stage, UNKNOWN_CARDINALITY, size_inside)
                previous = (nested[-1].id,) if i else ()
                text = _text(inner_stage)
                nested.append(
                    self._call(
                        f"{call_id}_{i}",
                        inner_stage,
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
        arguments |= dict(stage.arguments) | dict(stage.described)
        if stage.method == "cache":
            arguments.setdefault("filename", "")
        call = Call(
            id=call_id,
            method=stage.method,
            site=Site(FILE, line, name, line, column + len(text) + 1),
            inputs=inputs,
            arguments=arguments,
            explicit=tuple(name for name in arguments if stage.positional or name in dict(stage.arguments)),
            function=self._functions.get(id(stage), stage.function),
            nested_in=nested_in,
            cardinality=elements,
            element_spec=stage.spec or (self.calls[-1].element_spec if inputs and _keeps_elements(stage) else ""),
            element_bytes=size or None,
            file_bytes=stage.file_bytes,
            options=dict(stage.options),
            text=text,
        )
        self.of_stage[id(stage)] = call
        return call


def _keeps_elements(stage: Stage) -> bool:
    return stage.function is None and not stage.inner and stage.consumes == 1


def _flow(stage: Stage, elements: int, size: int) -> tuple[int, int]:
    """(elements per epoch, bytes per element) after a stage, given those before it."""
    if stage.consumes == 0:
        return (UNKNOWN_CARDINALITY if stage.elements is None else stage.elements), stage.bytes or 0
    if stage.type == "ForeverRepeat":
        elements = INFINITE_CARDINALITY
    elif stage.type == "FiniteTake":
        elements = int(stage.positional[0])
    elif stage.method in ("filter", "flat_map", "interleave"):
        elements = UNKNOWN_CARDINALITY
    elif elements > 0:
        elements = int(elements / stage.consumes)
    if stage.type == "FiniteRepeat" and elements > 0:
        elements *= int(stage.positional[0])
    if stage.bytes is not None:
        return elements, stage.bytes
    return elements, int(size * stage.consumes) if stage.method in ("batch", "unbatch") else size


def _text(stage: Stage, inner: str = "") -> str:
    arguments = [inner] if inner else list(stage.positional)
    arguments += [f"{name}={_literal(name, value)}" for name, value in stage.arguments]
    call = f"{stage.method}({', '.join(arguments)})"
    if stage.consumes:
        return "." + call
    return ("tf.data." if stage.method[0].isupper() else "tf.data.Dataset.") + call


def _literal(name: str, value: Scalar) -> str:
    return "tf.data.AUTOTUNE" if name == "num_parallel_calls" and value == AUTOTUNE else repr(value)


def _scalar(text: str) -> Scalar:
    if text == "tf.data.AUTOTUNE":
        return AUTOTUNE
    return int(text) if text.isdigit() else text.strip('"') if text.startswith('"') else f"<{text}>"
