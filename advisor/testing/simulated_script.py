"""The script that a made-up pipeline would be the run of: its source text and the calls that a recorder would see.

In: stages and a machine.  Out: `Script`. Used by `advisor.testing.simulated_run`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from advisor.model.recording import (
    AUTOTUNE,
    INFINITE_CARDINALITY,
    UNKNOWN_CARDINALITY,
    Call,
    FunctionFacts,
    Scalar,
    Site,
)

FILE = "train.py"


@dataclass(frozen=True, slots=True)
class Stage:
    """One call of the script."""

    method: str
    """Empty: TensorFlow's own doing, of which the script says nothing."""
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
    file_bytes: int | None = None
    """Sources: bytes of the files that they read."""
    inner: tuple[Stage, ...] = ()
    """Stages in its function (interleave)."""
    options: tuple[tuple[str, Scalar], ...] = ()
    python_share: float = 0.0
    """Share of its work that is in Python."""
    sleeps: bool = False
    """Its work is waiting for something: it uses no core and does not hold Python's lock."""
    op_share: float = 1.0
    """Share of its function's time inside ops; the rest is the cost of calling it."""
    op_shares: tuple[tuple[str, float], ...] = ()
    """Of which ops that is made, if it matters: (op type, share of the function's time)."""
    described: tuple[tuple[str, Scalar], ...] = ()
    """Arguments as a recorder describes them, where that does not follow from the text."""
    parameters: tuple[tuple[str, Scalar], ...] = ()
    """What the profile says of its iterator."""
    idle_share: float = 0.0
    """Share of its parallel calls that stand idle on average, because a slow element holds up those behind it."""
    waiting: float | None = None
    """Finished elements that wait in it for their turn, on average."""


@dataclass(frozen=True, slots=True)
class Machine:
    """What the pipeline runs on and who consumes it."""

    consumer_ms: float
    cores: float = 8
    busy_cores: float = 0.0
    """Cores that others than the pipeline keep busy all the time, beside the consumer's one while it works."""
    memory_bytes: int = 16 << 30
    epochs: int = 1
    steps: int = 100
    disk_bytes: int | None = None
    """Free space where the script runs."""
    root: tuple[tuple[str, Scalar], ...] = ()
    """What the profile says of the root iterator (`cpu_budget`, ...)."""
    is_finished: bool = False
    """The script came to its end, so that all its epochs were seen."""
    releases: tuple[tuple[int, int], ...] = ()
    """As in `Consumer`."""


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
        elements, size = 0, 0
        for stage in stages:
            elements, size = _flow(stage, elements, size)
            if stage.method:
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
            function=stage.function,
            nested_in=nested_in,
            cardinality=elements,
            element_bytes=size or None,
            file_bytes=stage.file_bytes,
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
