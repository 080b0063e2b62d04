"""Simulated pipelines with measurements, for the examples in rule files.

In: stages in the order of a script with their costs (milliseconds per element produced). Out: `SimulatedPipeline`: an
`Analysis` as a real run would produce it, and the source text of the script, so that the diff of a fix can be tested as
well.

    pipeline(source("TFRecord", elements=10_000, bytes=100_000), map_("decode", ms=5), batch(32), consumer_ms=20, cores=8)

describes a script whose consumer takes 20 ms per batch. tf.data's own rewrites (parallel maps, fusion, injected
prefetch) are applied as in TensorFlow, and step time, wait and blame are derived from the costs, so that an example is
always consistent. `fires` and `silent` state what a rule must report for it.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from advisor.model.recording import AUTOTUNE, UNKNOWN_CARDINALITY, FunctionFacts, Scalar
from advisor.model.run_hosts import HostComparison, HostSummary
from advisor.model.state import CapturedResource
from advisor.testing.simulated_device import SimulatedDevice, SimulatedOp
from advisor.testing.simulated_run import MS, SimulatedPipeline, measure
from advisor.testing.simulated_script import Machine, Stage

_NOTHING: Mapping[str, float] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Example:
    """A pipeline and the expected result of one rule."""

    pipeline: SimulatedPipeline
    is_finding: bool
    fixed: str | None = None
    """Text that the script must contain after the fix; None if the rule gives advice only or the fix is not checked."""
    because: str = ""
    """Silent examples: why there is nothing to report."""
    note: str | None = None
    """Text that one of the rule's notes must contain."""


def fires(made: SimulatedPipeline, fixed: str | None = None, note: str | None = None) -> Example:
    """An example for which the rule must report a finding.

    Args:
        made: The simulated run.
        fixed: Text that the script must contain after the fix is applied.
        note: Text that one of the rule's notes must contain.
    """
    return Example(made, is_finding=True, fixed=fixed, note=note)


def silent(made: SimulatedPipeline, because: str, note: str | None = None) -> Example:
    """An example for which the rule must not report a finding: a near miss of one that fires.

    Args:
        made: The simulated run.
        because: Why there is nothing to report; shown on the rule's page.
        note: Text that one of the rule's notes must contain.
    """
    return Example(made, is_finding=False, because=because, note=note)


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
        **arguments: Further arguments of the call.
    """
    ops = (*ops, *op_shares, *fixed)
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


def padded_batch(size: int, bytes: int, ms: float = 0.0) -> Stage:
    """`padded_batch(size)` with batches of `bytes` bytes, including padding; `ms` per batch."""
    return Stage("padded_batch", "PaddedBatchV2", ms, positional=(str(size),), consumes=size, bytes=bytes)


def flat_map(*inner: Stage, per_input: float = 1_000) -> Stage:
    """`flat_map(lambda file: ...)`; each input element opens `inner` (source first) and yields `per_input` elements."""
    return Stage("flat_map", "FlatMap", inner=inner, consumes=1 / per_input)


def interleave(
    *inner: Stage,
    calls: int | None = None,
    cycle_length: int | None = None,
    deterministic: bool | None = None,
    per_input: float = 1_000,
) -> Stage:
    """`interleave(lambda file: ...)`; each input element opens `inner` (source first) and yields `per_input` elements."""
    arguments = (*((("cycle_length", cycle_length),) if cycle_length else ()), *_parallel(calls))
    if deterministic is not None:
        arguments += (("deterministic", deterministic),)
    return Stage("interleave", "Interleave", arguments=arguments, inner=inner, consumes=1 / per_input)


def batch(size: int, ms: float = 0.0, *, calls: int | None = None) -> Stage:
    """`batch(size)`; `ms` per batch."""
    return Stage("batch", "Batch", ms, arguments=_parallel(calls), positional=(str(size),), consumes=size)


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


def pipeline(
    *stages: Stage,
    consumer_ms: float,
    cores: float = 8,
    busy_cores: float = 0.0,
    memory_gib: float = 16,
    disk_gib: float | None = None,
    epochs: int = 1,
    is_finished: bool = False,
    pauses_ms: Sequence[float] = (),
    epoch_ms: float = 1000.0,
    device: SimulatedDevice | None = None,
    keras: Mapping[str, Scalar] | None = None,
    hosts: HostComparison | None = None,
    has_bfloat16: bool | None = None,
    **root: Scalar,
) -> SimulatedPipeline:
    """The simulated run of a script with these stages.

    Args: *stages: The transformations, source first.
        consumer_ms: Time that the consumer takes per element of the last stage, in milliseconds.
        cores: Usable cores.
        busy_cores: Cores used by other processes.
        memory_gib: Free memory.
        disk_gib: Free disk space; None if unknown.
        epochs: How often the script reads the data.
        is_finished: Whether the script was observed to the end.
        pauses_ms: Time until TensorFlow destroyed the iterator, at the end of each epoch.
        epoch_ms: Duration of an epoch without the pause.
        device: The device side (`gpu(...)`, `cpu(...)`).
        keras: The recorded properties of the Keras model.
        hosts: The comparison with the other hosts of the run.
        has_bfloat16: Whether the CPU has bfloat16 units.
        **root: Parameters of the root iterator in the profile (`cpu_budget=64`).
    """
    machine = Machine(
        consumer_ms,
        cores,
        busy_cores,
        int(memory_gib * (1 << 30)),
        epochs,
        disk_bytes=None if disk_gib is None else int(disk_gib * (1 << 30)),
        root=tuple(root.items()),
        is_finished=is_finished,
        releases=_releases(pauses_ms, epoch_ms),
    )
    made = measure(stages, machine)
    analysis = replace(made.analysis, keras=dict(keras or {}), hosts=hosts)
    if analysis.host is not None:
        analysis = replace(analysis, host=replace(analysis.host, has_bfloat16=has_bfloat16))
    if device is not None and analysis.verdict.steps is not None:
        statistics = device.statistics(analysis.verdict.steps.mean_ns)
        analysis = replace(analysis, statistics=statistics, device=statistics.device)
    return replace(made, analysis=analysis)


def _releases(pauses_ms: Sequence[float], epoch_ms: float) -> tuple[tuple[int, int], ...]:
    """Consecutive epochs with their pauses: (end of the epoch, pause), both in nanoseconds."""
    ends = itertools.accumulate(round((epoch_ms + pause_ms) * MS) for pause_ms in pauses_ms)
    return tuple((end, round(pause_ms * MS)) for end, pause_ms in zip(ends, pauses_ms, strict=True))


def gpu(compute_capability: float = 7.5, half: float = 0.8, **shares: Any) -> SimulatedDevice:  # noqa: ANN401
    """A busy GPU with tensor cores; `shares` are fields of `SimulatedDevice`."""
    busy = {"kernels": 200, "kernel_us": 60, "launch": 0.01, "idle": 0.05, "memory": 0.8, "copied": 0.01}
    return SimulatedDevice("GPU", compute_capability, half, **(busy | shares))


def cpu(*ops: SimulatedOp, **shares: Any) -> SimulatedDevice:  # noqa: ANN401
    """Training on the CPU with steps that consist of `ops`; `shares` are fields of `SimulatedDevice`."""
    return SimulatedDevice("CPU", ops=ops, **shares)


def op(type: str, per_step: float, us: float) -> SimulatedOp:
    """Ops of one type on the host, with `us` microseconds of self time each."""
    return SimulatedOp(type, per_step, us)


def waiting_hosts(straggler: str = "", **waits_ms: float) -> HostComparison:
    """Synchronous hosts with steps of 100 ms.

    Args:
        straggler: Name of the host that slows down the others.
        **waits_ms: Host name -> milliseconds per step that it waits for input.
    """
    least = min(waits_ms.values())
    hosts = tuple(
        HostSummary(
            name,
            f"{name}.xplane.pb",
            1,
            "p0",
            steps=100,
            step_median_ns=100_000_000,
            input_wait_share=wait / 100,
            wait_per_step_ns=round(wait * 1_000_000),
            elements_per_s=10.0,
            bottleneck="ParallelMapV2",
            bottleneck_share=0.9,
            is_straggler=name == straggler,
            excess_wait_ns=round((wait - least) * 1_000_000) if name == straggler else 0,
        )
        for name, wait in sorted(waits_ms.items(), key=lambda pair: -pair[1])
    )
    return HostComparison(hosts=hosts, do_step_together=True)


def unknown_size(stage: Stage, file_bytes: int | None = None) -> Stage:
    """The same source with a number of elements that TensorFlow does not know, as for record files.

    Args:
        stage: The source.
        file_bytes: Total size of its files in bytes, if known.
    """
    return replace(stage, elements=UNKNOWN_CARDINALITY, file_bytes=file_bytes)


def _parallel(calls: int | None) -> tuple[tuple[str, Scalar], ...]:
    return () if calls is None else (("num_parallel_calls", calls),)


__all__ = [
    "AUTOTUNE",
    "Example",
    "SimulatedPipeline",
    "autoshard",
    "batch",
    "cache",
    "cpu",
    "filter_",
    "fires",
    "flat_map",
    "gpu",
    "interleave",
    "map_",
    "op",
    "options",
    "padded_batch",
    "pipeline",
    "prefetch",
    "repeat",
    "shard",
    "shuffle",
    "silent",
    "source",
    "take",
    "unbatch",
    "unknown_size",
    "waiting_hosts",
]
