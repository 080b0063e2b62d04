"""The stages of simulated pipelines: one function per tf.data method, with its costs (milliseconds per element produced).

In: parameters as in a script, and costs.  Out: a `Stage`, for `pipeline(...)`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from advisor.model.calls import AUTOTUNE, UNKNOWN_CARDINALITY, FunctionFacts, Scalar
from advisor.model.state import CapturedResource
from advisor.testing.function_texts import Definition
from advisor.testing.simulated_script import Stage

_NOTHING: Mapping[str, float] = MappingProxyType({})


def source(
    kind: str = "TFRecord",
    elements: int = 10_000,
    bytes: int = 1_000,
    ms: float = 0.0,
    *,
    shuffle: bool | None = None,
    files: int | None = None,
    spec: str = "",
    **arguments: Scalar,
) -> Stage:
    """A source: `TFRecord`, `TextLine`, `TensorSlice`, `Range`, `Generator`, `Random` or `ListFiles`.

    Args:
        kind: The type of the source.
        elements: Elements per epoch.
        bytes: Size of an element in bytes.
        ms: Work per element in milliseconds.
        shuffle: The `shuffle=` argument of `ListFiles`.
        files: Number of files passed to a record or text source.
        spec: Element spec as text (`TensorSpec(shape=(), dtype=tf.string, name=None)`); empty if unknown.
        **arguments: Further arguments of the call (`compression_type="GZIP"`).
    """
    method, text = {
        "TFRecord": ("TFRecordDataset", "files"),
        "TextLine": ("TextLineDataset", "files"),
        "TensorSlice": ("from_tensor_slices", "arrays"),
        "Range": ("range", str(elements)),
        "Generator": ("from_generator", "generate"),
        "Random": ("random", ""),
        "ListFiles": ("list_files", '"images/*.jpg"'),
    }[kind]
    if shuffle is not None:
        arguments["shuffle"] = shuffle
    is_python = kind == "Generator"
    return Stage(
        method,
        "TensorSlice" if kind == "ListFiles" else kind,
        ms,
        positional=(text,) if text else (),
        consumes=0,
        bytes=bytes,
        elements=elements,
        arguments=tuple(arguments.items()),
        python_share=1.0 if is_python else 0.0,
        described=() if files is None else (("filenames", f"<list of {files}>"),),
        spec=spec,
    )


def map_(
    name: str,
    ms: float,
    *,
    calls: int | None = None,
    random: bool = False,
    stateful: bool = False,
    python: bool = False,
    sleeps: bool = False,
    captured: Sequence[str] = (),
    effects: Sequence[str] = (),
    ops: Sequence[str] = (),
    op_share: float = 1.0,
    op_shares: Mapping[str, float] = _NOTHING,
    bytes: int | None = None,
    elementwise: bool | None = None,
    fixed: Sequence[str] = (),
    flow: Sequence[tuple[str, str]] = (),
    unchanged: Sequence[tuple[int, int]] = (),
    idle_share: float = 0.0,
    waiting: float | None = None,
    uses_enclosing: bool = False,
    keeps_padding: bool | None = None,
    ragged: Sequence[int] = (),
    parses_batches: bool = False,
    row_length: int | None = None,
    layers: Sequence[str] = (),
    row_wise: bool = False,
    definition: Definition | None = None,
    spec: str = "",
    **arguments: Scalar,
) -> Stage:
    """`map(name)`.

    Args:
        name: The name of the function.
        ms: Work per element in milliseconds.
        calls: The `num_parallel_calls=` argument.
        random: The function draws random numbers, which makes it stateful.
        stateful: The function contains another stateful op.
        python: The function is a `py_function`, which makes it stateful.
        sleeps: The function waits for an external resource such as a server and does not use a core.
        captured: Types of the resources that it reads (`HashTableV2` for a static table, `VarHandleOp`,
            `MutableHashTableV2`), each named `state`.
        effects: Types of further stateful ops in the function.
        ops: Types of its ops.
        op_share: Share of its time inside its ops.
        op_shares: Op type -> share of the function's time.
        bytes: Size of an output element in bytes; None if it equals that of the input.
        elementwise: As in `FunctionFacts`.
        fixed: Types of ops that do not depend on random numbers.
        flow: As in `FunctionFacts`.
        unchanged: As in `FunctionFacts`.
        idle_share: Share of its parallel calls that are idle because a slow element blocks the following ones.
        waiting: Average number of finished elements that wait to be emitted.
        uses_enclosing: As in `FunctionFacts`; for a map inside a function.
        keeps_padding: As in `FunctionFacts`.
        ragged: Components of its results that become ragged tensors if it is called with a batch.
        parses_batches: As in `FunctionFacts`.
        row_length: As in `FunctionFacts`.
        layers: As `batch_layers` in `FunctionFacts`.
        row_wise: As `is_python_row_wise` in `FunctionFacts`.
        definition: Its text (`definition(...)`), with its ops; None: the script does not show it.
        spec: Element spec of its results as text; empty if unknown.
        **arguments: Further arguments of the call.
    """
    ops = (*ops, *op_shares, *fixed, *(definition.ops if definition is not None else ()))
    state_of = {"HashTableV2": ("static table", "LookupTableFindV2"), "VarHandleOp": ("variable", "ReadVariableOp")}
    resources = [state_of.get(resource_type, ("mutable table", "LookupTableFindV2")) for resource_type in captured]
    stateful_ops = [op for _, op in resources] + ["UnknownStatefulOp"] * stateful + list(effects)
    facts = FunctionFacts(
        name=name,
        site=None,
        is_stateful=random or python or bool(stateful_ops),
        random_ops=("RandomUniform",) if random else (),
        python_ops=("EagerPyFunc",) if python else (),
        ops=dict.fromkeys((*ops, *(("RandomUniform",) if random else ()), *(("EagerPyFunc",) if python else ())), 1),
        captured=tuple(captured),
        resources=tuple(CapturedResource(kind, "state") for kind, _ in resources),
        stateful_ops=(*stateful_ops, *(("RandomUniform",) if random else ()), *(("EagerPyFunc",) if python else ())),
        is_elementwise=elementwise,
        flow=tuple(flow),
        fixed_ops=dict.fromkeys(fixed, 1),
        unchanged=tuple(unchanged),
        uses_enclosing=uses_enclosing,
        keeps_padding=keeps_padding,
        ragged_results=tuple(ragged),
        parses_batches=parses_batches,
        row_length=row_length,
        batch_layers=tuple(layers),
        is_python_row_wise=row_wise,
    )
    return Stage(
        "map",
        "Map",
        ms,
        facts,
        (*_parallel(calls), *arguments.items()),
        (name,),
        bytes=bytes,
        python_share=1.0 if python else 0.0,
        op_share=op_share,
        op_shares=tuple(op_shares.items()),
        sleeps=sleeps,
        idle_share=idle_share,
        waiting=waiting,
        spec=spec,
        definition=definition,
    )


def filter_(name: str, ms: float, keep: float = 0.5, reads: Sequence[int] | None = None) -> Stage:
    """`filter(name)`.

    Args:
        name: The name of the predicate.
        ms: Work in milliseconds per element that passes.
        keep: Share of the elements that pass.
        reads: Indices of the components that the predicate reads; None if unknown.
    """
    facts = FunctionFacts(name, None, False, stateful_ops=(), used_inputs=None if reads is None else tuple(reads))
    counts = (("passed", round(1000 * keep)), ("filtered", round(1000 * (1 - keep))))
    return Stage("filter", "Filter", ms, facts, positional=(name,), consumes=1 / keep, parameters=counts)


def shard(num_shards: int) -> Stage:
    """`shard(num_shards, index=0)`."""
    return Stage("shard", "Shard", arguments=(("index", 0),), positional=(str(num_shards),), consumes=num_shards)


def autoshard(num_shards: int) -> Stage:
    """The shard that `tf.distribute` inserts into a worker's pipeline if it does not shard by file."""
    return Stage("", "Shard", consumes=num_shards, parameters=(("num_shards", num_shards), ("index", 0)))


def unbatch(rows: int, ms: float = 0.0) -> Stage:
    """`unbatch()` of elements with `rows` rows; `ms` per row."""
    return Stage("unbatch", "Unbatch", ms, consumes=1 / rows)


def padded_batch(size: int, bytes: int, ms: float = 0.0, *, spec: str = "", **arguments: Scalar) -> Stage:
    """`padded_batch(size)` with batches of `bytes` bytes, including padding, and this element spec; `ms` per batch.

    Args:
        size: Elements per batch.
        bytes: Size of a batch in bytes, including padding.
        ms: Work per batch in milliseconds.
        spec: Element spec of the batches, as a recording has it; empty if unknown.
        **arguments: Further recorded arguments, such as `padded_shapes`.
    """
    return Stage(
        "padded_batch",
        "PaddedBatchV2",
        ms,
        arguments=tuple(arguments.items()),
        positional=(str(size),),
        consumes=size,
        bytes=bytes,
        spec=spec,
    )


def flat_map(
    *inner: Stage,
    per_input: float = 1_000,
    ms: float = 0.0,
    op_shares: Mapping[str, float] = _NOTHING,
    random: bool = False,
    python: bool = False,
) -> Stage:
    """`flat_map(lambda file: ...)`; each input element opens `inner` (source first) and yields `per_input` elements.

    Args:
        *inner: The stages inside its function.
        per_input: Elements per input element.
        ms: Work of its function in milliseconds per input element, besides that of `inner`.
        op_shares: Op type -> share of that work.
        random: The function draws random numbers.
        python: The function runs Python code.
    """
    stateful_ops = ("RandomUniform",) * random + ("EagerPyFunc",) * python
    facts = FunctionFacts(
        name="slices",
        site=None,
        is_stateful=bool(stateful_ops),
        random_ops=("RandomUniform",) * random,
        python_ops=("EagerPyFunc",) * python,
        ops=dict.fromkeys((*op_shares, "TensorSliceDataset", *stateful_ops), 1),
        stateful_ops=stateful_ops,
    )
    return Stage(
        "flat_map",
        "FlatMap",
        ms / per_input,
        facts if op_shares else None,
        inner=inner,
        consumes=1 / per_input,
        op_shares=tuple(op_shares.items()),
    )


def interleave(
    *inner: Stage,
    calls: int | None = None,
    cycle_length: int | None = None,
    deterministic: bool | None = None,
    per_input: float = 1_000,
) -> Stage:
    """`interleave(lambda file: ...)`; each input element opens `inner` (source first) and yields `per_input` elements.

    Args:
        *inner: Stages of the datasets that are opened, source first.
        calls: The `num_parallel_calls=`; None: not passed, -1: AUTOTUNE.
        cycle_length: The `cycle_length=`; None: not passed.
        deterministic: The `deterministic=`; None: not passed.
        per_input: Elements that each input element yields.
    """
    arguments = (*((("cycle_length", cycle_length),) if cycle_length else ()), *_parallel(calls))
    if deterministic is not None:
        arguments += (("deterministic", deterministic),)
    return Stage("interleave", "Interleave", arguments=arguments, inner=inner, consumes=1 / per_input)


def batch(size: int, ms: float = 0.0, *, calls: int | None = None) -> Stage:
    """`batch(size)`; `ms` per batch.

    Args:
        size: Elements per batch.
        ms: Work per batch in milliseconds.
        calls: The `num_parallel_calls=`; None: not passed, -1: AUTOTUNE.
    """
    return Stage("batch", "Batch", ms, arguments=_parallel(calls), positional=(str(size),), consumes=size)


def window(size: int, shift: int | None = None, ms: float = 0.0, *, drop_remainder: bool | None = None) -> Stage:
    """`window(size)`, for a `flat_map` whose first stage is a transformation of the window; `ms` per window.

    Args:
        size: Elements per window.
        shift: Elements from the start of one window to the next; None: not passed, so that windows do not overlap.
        ms: Work per window in milliseconds.
        drop_remainder: The `drop_remainder=`; None: not passed.
    """
    arguments: tuple[tuple[str, Scalar], ...] = () if shift is None else (("shift", shift),)
    if drop_remainder is not None:
        arguments += (("drop_remainder", drop_remainder),)
    return Stage("window", "Window", ms, arguments=arguments, positional=(str(size),), consumes=shift or size)


def shuffle(size: int = 1_000, *, reshuffle_each_iteration: bool | None = None) -> Stage:
    """`shuffle(size)`."""
    arguments = () if reshuffle_each_iteration is None else (("reshuffle_each_iteration", reshuffle_each_iteration),)
    return Stage("shuffle", "Shuffle", 0.0005, arguments=arguments, positional=(str(size),))


def repeat(count: int | None = None) -> Stage:
    """`repeat()` or `repeat(count)`."""
    return Stage(
        "repeat", "ForeverRepeat" if count is None else "FiniteRepeat", positional=(str(count),) if count else ()
    )


def cache(filename: str | None = None) -> Stage:
    """`cache()` in its first epoch, in which the upstream transformations still run."""
    return Stage("cache", "MemoryCache", positional=() if filename is None else (f'"{filename}"',))


def take(count: int) -> Stage:
    """`take(count)`."""
    return Stage("take", "FiniteTake", positional=(str(count),))


def prefetch(size: int = AUTOTUNE) -> Stage:
    """`prefetch(tf.data.AUTOTUNE)` or `prefetch(size)`."""
    return Stage("prefetch", "Prefetch", positional=("tf.data.AUTOTUNE" if size == AUTOTUNE else str(size),))


def options(**values: Scalar) -> Stage:
    """`with_options(options)`; dots are written as double underscores: `options(autotune__enabled=False)`."""
    return Stage(
        "with_options",
        "Options",
        positional=("options",),
        options=tuple((name.replace("__", "."), value) for name, value in values.items()),
    )


def unknown_size(stage: Stage, file_bytes: int | None = None) -> Stage:
    """The same source with a number of elements that TensorFlow does not know, as for record files.

    Args:
        stage: The source.
        file_bytes: Total size of its files in bytes, if known.
    """
    return replace(stage, elements=UNKNOWN_CARDINALITY, file_bytes=file_bytes)


def _parallel(calls: int | None) -> tuple[tuple[str, Scalar], ...]:
    return () if calls is None else (("num_parallel_calls", calls),)
