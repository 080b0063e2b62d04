"""Puts the sections together, and says of each absent one which capture would fill it.

In: `Collected` and the analysis.  Out: `Statistics`.
"""

from __future__ import annotations

from advisor.model.pipeline import Analysis
from advisor.model.profile_statistics import DeviceFacts, Statistics
from advisor.statistics.allocator_memory import memory_statistics
from advisor.statistics.collect import Collected
from advisor.statistics.device_facts import CPU, GPU, TPU, device_facts
from advisor.statistics.input_analysis import analyze_input
from advisor.statistics.kernels import kernel_rows
from advisor.statistics.ops import op_rows, type_rows
from advisor.statistics.overview import describe_overview


def make_tables(found: Collected, analysis: Analysis) -> Statistics:
    """All sections."""
    facts = device_facts(found)
    ops = op_rows(found.ops, found.kernels.tensor_core_share_by_op())
    inputs = analyze_input(found.ops.host, found.enqueued_ps, found.all_step_ps, found.all_cause_ps, analysis.pipelines)
    kernels = kernel_rows(found.kernels)
    statistics = Statistics(
        overview=describe_overview(found, analysis, ops, facts, inputs),
        input=inputs,
        ops=ops or None,
        op_types=type_rows(found.ops) or None,
        kernels=kernels or None,
        memory=memory_statistics(found.memory),
        hosts=tuple(found.hosts) or None,
        device=facts,
        missing={},
    )
    statistics.missing.update(_missing(statistics, facts, found, analysis))
    return statistics


def _missing(statistics: Statistics, facts: DeviceFacts, found: Collected, analysis: Analysis) -> dict[str, str]:
    """Absent section -> which capture would fill it."""
    said: dict[str, str] = {}
    if statistics.hosts is None:
        said["hosts"] = (
            "The window holds no whole step: capture a longer one, or mark steps with"
            " tf.profiler.experimental.Trace(name, step_num=n, _r=1)."
        )
    if statistics.overview is None:
        said["overview"] = "The window holds neither steps nor ops: capture it while the script trains."
    if statistics.input is None:
        said["input"] = "The profile holds no tf.data iterator: capture a script that reads a tf.data.Dataset."
    if statistics.ops is None:
        said["ops"] = said["op_types"] = (
            "The profile holds no op: capture it with host_tracer_level=2 while a model runs."
        )
    if statistics.kernels is None:
        said["kernels"] = _no_kernels(facts, found, analysis)
    if statistics.memory is None:
        said["memory"] = (
            "The profile holds no allocations: TensorFlow writes them for GPUs and for allocators that it manages itself."
            if facts.device_type == CPU
            else "The profile holds no allocations: capture it with host_tracer_level=2."
        )
    return said


def _no_kernels(facts: DeviceFacts, found: Collected, analysis: Analysis) -> str:
    if any("libcupti" in warning for warning in analysis.warnings):
        return "libcupti could not be loaded: put CUDA's extras/CUPTI/lib64 on LD_LIBRARY_PATH and capture again."
    if facts.device_type == TPU:
        return "TPUs run XLA ops and no kernels: see the op statistics."
    if facts.device_type == GPU and not facts.num_devices:
        return (
            f"The profile knows {len(found.devices)} GPU(s), and nothing ran there: capture with device_tracer_level=1, with"
            " the right to read GPU counters, while the model runs."
        )
    return "The profile has no GPU: capture the script on a machine with one."
