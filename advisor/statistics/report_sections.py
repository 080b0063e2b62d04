"""Assembles the sections, and states for each absent one which capture would provide it.

In: `Collected` and the analysis.  Out: `Statistics`.
"""

from __future__ import annotations

from advisor.model.pipeline import Analysis
from advisor.model.profile_statistics import DeviceFacts, Statistics
from advisor.statistics.allocator_memory import memory_statistics
from advisor.statistics.collect import Collected
from advisor.statistics.device_facts import CPU, GPU, TPU, device_facts
from advisor.statistics.device_totals import number_of
from advisor.statistics.input_analysis import analyze_input
from advisor.statistics.kernels import kernel_rows
from advisor.statistics.ops import op_rows, type_rows
from advisor.statistics.overview import describe_overview


def make_tables(collected: Collected, analysis: Analysis) -> Statistics:
    """Build all sections."""
    facts = device_facts(collected)
    ops = op_rows(collected.ops, collected.kernels.tensor_core_share_by_op())
    inputs = analyze_input(collected.ops.host, collected.enqueued_ps, collected.totals, analysis.pipelines)
    kernels = kernel_rows(collected.kernels)
    left_out = {
        "memory.allocators": collected.num_memory - len(collected.memory),
        "hosts": collected.num_hosts - len(collected.hosts),
    }
    statistics = Statistics(
        overview=describe_overview(collected, analysis, ops, facts, inputs),
        input=inputs,
        ops=ops or None,
        op_types=type_rows(collected.ops) or None,
        kernels=kernels or None,
        memory=memory_statistics(collected.memory),
        hosts=tuple(collected.hosts) or None,
        device=facts,
        missing={},
        left_out={section: count for section, count in left_out.items() if count},
    )
    statistics.missing.update(_missing(statistics, facts, collected, analysis))
    return statistics


def _missing(statistics: Statistics, facts: DeviceFacts, collected: Collected, analysis: Analysis) -> dict[str, str]:
    """Map each absent section to the capture that would provide it."""
    missing: dict[str, str] = {}
    if statistics.hosts is None:
        missing["hosts"] = (
            "The window contains no whole step: capture a longer one, or mark steps with"
            " tf.profiler.experimental.Trace(name, step_num=n, _r=1)."
        )
    if statistics.overview is None:
        missing["overview"] = "The window contains neither steps nor ops: capture it while the script trains."
    if statistics.input is None:
        missing["input"] = "The profile contains no tf.data iterator: capture a script that reads a tf.data.Dataset."
    if statistics.ops is None:
        missing["ops"] = missing["op_types"] = (
            "The profile contains no op: capture it with host_tracer_level=2 while a model runs."
        )
    if statistics.kernels is None:
        missing["kernels"] = _no_kernels(facts, collected, analysis)
    if statistics.memory is None:
        missing["memory"] = (
            "The profile contains no allocations: TensorFlow records them for GPUs and for allocators that it manages itself."
            if facts.device_type == CPU
            else "The profile contains no allocations: capture it with host_tracer_level=2."
        )
    return missing


def _no_kernels(facts: DeviceFacts, collected: Collected, analysis: Analysis) -> str:
    if any("libcupti" in warning for warning in analysis.warnings):
        return "libcupti could not be loaded: put CUDA's extras/CUPTI/lib64 on LD_LIBRARY_PATH and capture again."
    if facts.device_type == TPU:
        return "TPUs run XLA ops instead of kernels: see the op statistics."
    if facts.device_type == GPU and not facts.num_devices:
        return (
            f"The profile has {number_of(collected.devices)} GPU(s), but nothing ran there: capture with device_tracer_level=1"
            " and with permission to read GPU counters while the model runs."
        )
    return "The profile has no GPU: capture the script on a machine with one."
