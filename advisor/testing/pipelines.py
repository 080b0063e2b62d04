"""Simulated pipelines with measurements, for the examples in rule files.

In: stages in the order of a script with their costs (milliseconds per element produced). Out: `SimulatedPipeline`: an
`Analysis` as a real run would produce it, and the source text of the script, so that the diff of a fix can be tested as
well.

    pipeline(source("TFRecord", elements=10_000, bytes=100_000), map_("decode", ms=5), batch(32), consumer_ms=20, cores=8)

describes a script whose consumer takes 20 ms per batch. tf.data's own rewrites (parallel maps, fusion, injected
prefetch) are applied as in TensorFlow, and step time, wait and blame are derived from the costs, so that an example is
always consistent.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from advisor.model.calls import Scalar, Site
from advisor.model.pipeline import Analysis
from advisor.model.recording import CompileCall, Product, ProductTimes, Recording, ScriptExit
from advisor.model.run_hosts import HostComparison, HostSummary
from advisor.testing.simulated_device import SimulatedDevice, SimulatedOp
from advisor.testing.simulated_run import MS, SimulatedPipeline, measure
from advisor.testing.simulated_script import FILE, Machine, Stage


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
    making_ms: float | None = None,
    makes_equal: bool = True,
    device: SimulatedDevice | None = None,
    keras: Mapping[str, Scalar] | None = None,
    hosts: HostComparison | None = None,
    has_bfloat16: bool | None = None,
    product_ms: tuple[float, float] | None = None,
    compiled: bool = False,
    **root: Scalar,
) -> SimulatedPipeline:
    """The simulated run of a script with these stages.

    Args:
        *stages: The transformations, source first.
        consumer_ms: Time that the consumer takes per element of the last stage, in milliseconds.
        cores: Usable cores.
        busy_cores: Cores used by other processes.
        memory_gib: Free memory.
        disk_gib: Free disk space; None if unknown.
        epochs: How often the script reads the data.
        is_finished: Whether the script was observed to the end.
        pauses_ms: Time until TensorFlow destroyed the iterator, at the end of each epoch.
        epoch_ms: Duration of an epoch without the pause.
        making_ms: Time to make the dataset, which the script then does again for every epoch; None: it makes it once.
        makes_equal: Whether these datasets have equal arguments.
        device: The device side (`gpu(...)`, `cpu(...)`).
        keras: The recorded properties of the Keras model.
        hosts: The comparison with the other hosts of the run.
        has_bfloat16: Whether the CPU has bfloat16 units.
        product_ms: Time of the model's largest product in 32 and in 16 bit; None if it was not measured.
        compiled: Whether the script compiles a Keras model and calls `fit` instead of a loop of its own.
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
        making_ms=making_ms,
        makes_equal=makes_equal,
    )
    made = measure(stages, machine)
    analysis = replace(made.analysis, keras=dict(keras or {}), hosts=hosts)
    if analysis.host is not None:
        analysis = replace(analysis, host=replace(analysis.host, has_bfloat16=has_bfloat16))
    text = _with_fit(made.source) if compiled else made.source
    if compiled or product_ms is not None:
        analysis = _with_model(analysis, text, product_ms)
    if device is not None and analysis.verdict.steps is not None:
        statistics = device.statistics(analysis.verdict.steps.mean_ns)
        analysis = replace(analysis, statistics=statistics, device=statistics.device)
    texts = {FILE: text} if any(stage.definition is not None for stage in stages) else {}
    return replace(made, analysis=replace(analysis, texts=texts), source=text)


_COMPILE = 'model.compile(optimizer="adam", loss="mse")'


def _with_fit(text: str) -> str:
    """The script with a call of `fit` in place of its loop."""
    return "\n".join([*text.splitlines()[:-2], _COMPILE, "model.fit(ds)", ""])


def _with_model(analysis: Analysis, text: str, product_ms: tuple[float, float] | None) -> Analysis:
    """The analysis with what is recorded of a Keras model."""
    host = analysis.host
    if host is None:
        return analysis
    recording = analysis.recording or Recording(FILE, host, ScriptExit("stopped"), calls=analysis.calls)
    compiles: tuple[CompileCall, ...] = ()
    lines = text.splitlines()
    if _COMPILE in lines:
        line = lines.index(_COMPILE) + 1
        site = Site(FILE, line, _COMPILE.index("compile") + 1, line, len(_COMPILE) + 1)
        compiles = (CompileCall(site, _COMPILE.removeprefix("model"), ("optimizer", "loss")),)
    times = None
    if product_ms is not None:
        dense = Product("dense", "MatMul", (1024,), (1024, 2048))
        times = ProductTimes(dense, 256, product_ms[0] * MS, product_ms[1] * MS)
    recording = replace(
        recording,
        argv=(FILE,),
        compiles=compiles,
        product=None if times is None else times.product,
        product_times=times,
    )
    return replace(analysis, recording=recording)


def _releases(pauses_ms: Sequence[float], epoch_ms: float) -> tuple[tuple[int, int], ...]:
    """Consecutive epochs with their pauses: (end of the epoch, pause), both in nanoseconds."""
    ends = itertools.accumulate(round((epoch_ms + pause_ms) * MS) for pause_ms in pauses_ms)
    return tuple((end, round(pause_ms * MS)) for end, pause_ms in zip(ends, pauses_ms, strict=True))


def gpu(compute_capability: float = 7.5, half: float = 0.8, **shares: Any) -> SimulatedDevice:  # noqa: ANN401
    """A busy GPU with tensor cores; `shares` are fields of `SimulatedDevice`.

    Args:
        compute_capability: CUDA compute capability; there are tensor cores from 7.0 on.
        half: Share of the device's computation in 16 bit, 0 to 1.
        **shares: Other fields of `SimulatedDevice`, in its units.
    """
    busy = {"kernels": 200, "kernel_us": 60, "launch": 0.01, "idle": 0.05, "memory": 0.8, "copied": 0.01}
    return SimulatedDevice("GPU", compute_capability, half, **(busy | shares))


def cpu(*ops: SimulatedOp, **shares: Any) -> SimulatedDevice:  # noqa: ANN401
    """Training on the CPU with steps that consist of `ops`; `shares` are fields of `SimulatedDevice`."""
    return SimulatedDevice("CPU", ops=ops, **shares)


def op(type: str, per_step: float, us: float) -> SimulatedOp:
    """Ops of one type on the host, with `us` microseconds of self time each.

    Args:
        type: Type of the ops, such as `MatMul`.
        per_step: Number of them in a step.
        us: Self time of one op, in microseconds.
    """
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
