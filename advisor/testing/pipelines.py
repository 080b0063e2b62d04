"""Made-up measured pipelines for the examples that every rule file carries.

In: stages in the order of a script, with what they cost (ms per element they produce).  Out: `SimulatedPipeline`: an `Analysis`
as a real run would give it, and the script's source text, so that the diff of a fix can be tried on it too.

    pipeline(source("TFRecord", elements=10_000, bytes=100_000), map_("decode", ms=5), batch(32), consumer_ms=20, cores=8)

reads: a script whose step takes 20 ms once it has its batch. tf.data's own rewrites (parallel maps, fusion, injected
prefetch) are applied as TensorFlow applies them, and step time, wait and blame follow from the costs, so an example cannot
contradict itself. `fires` and `silent` say what a rule must make of it.
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
    """A pipeline and what one rule must say of it."""

    pipeline: SimulatedPipeline
    is_finding: bool
    fixed: str | None = None
    """Text that must stand in the script after the fix; None: the rule has advice only (or it is not looked at)."""
    because: str = ""
    """Silent examples: why nothing is wrong here."""
    note: str | None = None
    """Text that one of the rule's notes must hold."""


def fires(made: SimulatedPipeline, fixed: str | None = None, note: str | None = None) -> Example:
    """The rule must find something; `fixed` must stand in the script after its fix is applied."""
    return Example(made, is_finding=True, fixed=fixed, note=note)


def silent(made: SimulatedPipeline, because: str, note: str | None = None) -> Example:
    """The rule must find nothing, `because` ...; a near miss of the ones that fire. `note`: what it says instead."""
    return Example(made, is_finding=False, because=because, note=note)


def source(
    kind: str = "TFRecord",
    elements: int = 10_000,
    bytes: int = 1_000,
    ms: float = 0.0,
    *,
    shuffle: bool | None = None,
    files: int | None = None,
    **arguments: Scalar,
) -> Stage:
    """`TFRecord`, `TextLine`, `TensorSlice`, `Range`, `Generator`, `Random` or `ListFiles` (with its `shuffle=`).

    `files`: how many files a record or text source is given. `arguments`: others of its call (`compression_type="GZIP"`).
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
    """`map(name)`. `random`, `python`: its function draws random numbers or is a `py_function`; both are stateful.

    `captured`: types of the resources that it reads (`HashTableV2`: a static table, `VarHandleOp`, `MutableHashTableV2`), each
    named `state`. `effects`: types of other stateful ops in it. `sleeps`: it waits for something outside (a server) and uses no
    core. `op_share`: share of its time inside its ops; `op_shares`: of which ops. `elementwise`, `fixed` (ops that depend on no
    random number), `flow`, `unchanged`: what the graph of the function shows, as `FunctionFacts` has it. `idle_share`: share of
    its parallel calls that stand idle because a slow element holds up those behind it, of which `waiting` are finished on
    average.
    """
    ops = (*ops, *op_shares, *fixed)
    state_of = {"HashTableV2": ("static table", "LookupTableFindV2"), "VarHandleOp": ("variable", "ReadVariableOp")}
    resources = [state_of.get(each, ("mutable table", "LookupTableFindV2")) for each in captured]
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
    """`filter(name)`; `ms` per element that passes, of which there are `keep` of 1. `reads`: the components it looks at."""
    facts = FunctionFacts(name, None, False, stateful_ops=(), used_inputs=None if reads is None else tuple(reads))
    counts = (("passed", round(1000 * keep)), ("filtered", round(1000 * (1 - keep))))
    return Stage("filter", "Filter", ms, facts, positional=(name,), consumes=1 / keep, parameters=counts)


def shard(num_shards: int) -> Stage:
    """`shard(num_shards, index=0)`."""
    return Stage("shard", "Shard", arguments=(("index", 0),), positional=(str(num_shards),), consumes=num_shards)


def autoshard(num_shards: int) -> Stage:
    """The shard that `tf.distribute` puts into a worker's pipeline by itself, where it does not shard by file."""
    return Stage("", "Shard", consumes=num_shards, parameters=(("num_shards", num_shards), ("index", 0)))


def unbatch(rows: int, ms: float = 0.0) -> Stage:
    """`unbatch()` of elements with so many rows; `ms` per row."""
    return Stage("unbatch", "Unbatch", ms, consumes=1 / rows)


def padded_batch(size: int, bytes: int, ms: float = 0.0) -> Stage:
    """`padded_batch(size)` that gives batches of so many bytes, padding included; `ms` per batch."""
    return Stage("padded_batch", "PaddedBatchV2", ms, positional=(str(size),), consumes=size, bytes=bytes)


def flat_map(*inner: Stage, per_input: float = 1_000) -> Stage:
    """`flat_map(lambda file: ...)` over an input of which each element opens `inner` (source first)."""
    return Stage("flat_map", "FlatMap", inner=inner, consumes=1 / per_input)


def interleave(
    *inner: Stage,
    calls: int | None = None,
    cycle_length: int | None = None,
    deterministic: bool | None = None,
    per_input: float = 1_000,
) -> Stage:
    """`interleave(lambda file: ...)` over an input of which each element opens `inner` (source first)."""
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
    """`cache()`, in its first epoch: what is upstream of it still runs."""
    return Stage("cache", "MemoryCache", positional=() if filename is None else (f'"{filename}"',))


def take(count: int) -> Stage:
    """`take(count)`."""
    return Stage("take", "FiniteTake", positional=(str(count),))


def prefetch(size: int = AUTOTUNE) -> Stage:
    """`prefetch(tf.data.AUTOTUNE)` or `prefetch(size)`."""
    return Stage("prefetch", "Prefetch", positional=("tf.data.AUTOTUNE" if size == AUTOTUNE else str(size),))


def options(**values: Scalar) -> Stage:
    """`with_options(options)`; dots are written as two underscores: `options(autotune__enabled=False)`."""
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
    """The run of a script made of `stages`, source first.

    `consumer_ms`: what the consumer does with one element of the last stage. `busy_cores`: cores that others than the
    pipeline and its consumer take. `epochs`: how often the script reads the data. `is_finished`: it was seen to its end.
    `pauses_ms`: how long the script waited until TensorFlow let go of the iterator, at the end of each epoch of `epoch_ms`.
    `device`: its device side (`gpu(...)`, `cpu(...)`). `keras`: what the recorder saw of the model. `hosts`: the other hosts
    of the run. `has_bfloat16`: whether the processor multiplies such numbers itself. `root`: what the profile says of the
    root iterator (`cpu_budget=64`).
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
    """One epoch after the other, each with its pause: (its end, the pause), ns."""
    ends = itertools.accumulate(round((epoch_ms + each) * MS) for each in pauses_ms)
    return tuple((end, round(each * MS)) for end, each in zip(ends, pauses_ms, strict=True))


def gpu(compute_capability: float = 7.5, half: float = 0.8, **shares: Any) -> SimulatedDevice:  # noqa: ANN401
    """A busy GPU with tensor cores; `shares` as in `SimulatedDevice`."""
    busy = {"kernels": 200, "kernel_us": 60, "launch": 0.01, "idle": 0.05, "memory": 0.8, "copied": 0.01}
    return SimulatedDevice("GPU", compute_capability, half, **(busy | shares))


def cpu(*ops: SimulatedOp, **shares: Any) -> SimulatedDevice:  # noqa: ANN401
    """Training on the host itself, its steps made of `ops`."""
    return SimulatedDevice("CPU", ops=ops, **shares)


def op(type: str, per_step: float, us: float) -> SimulatedOp:
    """Ops of one type on the host, each of so many microseconds of its own."""
    return SimulatedOp(type, per_step, us)


def waiting_hosts(straggler: str = "", **waits_ms: float) -> HostComparison:
    """Hosts that step together every 100 ms, each waiting so many ms of a step; `straggler`: which one holds the others up."""
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
    return HostComparison(hosts, do_step_together=True)


def unknown_size(stage: Stage, file_bytes: int | None = None) -> Stage:
    """The same source, its number of elements unknown to TensorFlow (as with record files).

    `file_bytes`: the size of its files together, where it is known.
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
