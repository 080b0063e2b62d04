"""The overview page: step time, precision, placement, top ops, environment, next steps.

In: `Collected`, its tables, and the analysis.  Out: `Overview`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from advisor.model.pipeline import Analysis
from advisor.model.profile_statistics import DeviceFacts, InputStatistics, OpRow, Overview, RunEnvironment, TopOp
from advisor.statistics.breakdown import Cause
from advisor.statistics.collect import Collected
from advisor.statistics.device_facts import CPU, device_type
from advisor.statistics.device_totals import number_of
from advisor.statistics.kernels import is_tensor_core_eligible
from advisor.statistics.next_steps import next_steps
from advisor.statistics.ops import DATASET, DEVICE, HOST, IDLE

NUM_TOP_OPS = 10
"""Number of ops listed, as in the profiler guide."""


def describe_overview(
    collected: Collected, analysis: Analysis, ops: Sequence[OpRow], facts: DeviceFacts, inputs: InputStatistics | None
) -> Overview | None:
    """Build the overview.

    Args:
        collected: The data of all hosts.
        analysis: The analysis, for the environment of the run.
        ops: Rows of the op table, see `op_rows`.
        facts: The device facts, for the recommendations.
        inputs: The input analysis; None without an input pipeline.

    Returns:
        The overview; None if the profile contains neither steps nor ops.
    """
    totals = collected.totals
    steps = totals.steps
    if not steps.count and not ops:
        return None
    runs = collected.ops.host.occurrences + collected.ops.device.occurrences
    has_device = any(device.num_events for device in collected.devices)
    breakdown = totals.mean_breakdown
    has_compute = bool(totals.causes[Cause.COMPUTE_16] or totals.causes[Cause.COMPUTE_32])
    return Overview(
        num_steps=steps.count,
        step_ns=round(steps.mean / 1000),
        step_min_ns=steps.shortest // 1000,
        step_max_ns=steps.longest // 1000,
        breakdown=breakdown,
        compute_16bit_share=facts.compute_16bit_share,
        compute_32bit_share=1 - facts.compute_16bit_share
        if has_compute and facts.compute_16bit_share is not None
        else None,
        host_op_share=collected.ops.host.occurrences / runs if runs else None,
        device_op_share=collected.ops.device.occurrences / runs if runs else None,
        host_eager_share=collected.ops.host.eager_share,
        device_eager_share=collected.ops.device.eager_share if has_device else None,
        top_ops=_top_ops(ops, collected),
        environment=_environment(collected, analysis),
        next_steps=next_steps(breakdown, facts, inputs),
    )


def _top_ops(ops: Sequence[OpRow], collected: Collected) -> tuple[TopOp, ...]:
    """Return the top ops of the devices; without any, those of the host except iterators, whose self time includes waiting."""
    side = DEVICE if collected.ops.device.ops else HOST
    rows = [row for row in ops if row.side == side and row.type not in (IDLE, DATASET)]
    whole = sum(row.self_ns for row in rows)
    top: list[TopOp] = []
    below = 0
    for row in rows[:NUM_TOP_OPS]:
        below += row.self_ns
        top.append(
            TopOp(
                name=row.name,
                type=row.type,
                side=row.side,
                self_ns=row.self_ns,
                share=row.self_ns / whole if whole else 0.0,
                cumulative_share=below / whole if whole else 0.0,
                is_tensor_core_eligible=None if row.tensor_core_share is None else is_tensor_core_eligible(row.name),
                is_using_tensor_core=None if row.tensor_core_share is None else row.tensor_core_share > 0,
            )
        )
    return tuple(top)


def _environment(collected: Collected, analysis: Analysis) -> RunEnvironment:
    kind = device_type(collected.devices)
    active = [device for device in collected.devices if device.is_computing]
    facts = next((device.facts for device in (*active, *collected.devices)), {})
    major, minor = facts.get("compute_cap_major"), facts.get("compute_cap_minor")
    return RunEnvironment(
        num_hosts=len(collected.names),
        hosts=tuple(collected.names.values()),
        device_type=kind,
        device_name=_device_name(facts, analysis, kind),
        num_devices=number_of(active) if kind != CPU else len(collected.names),
        num_devices_seen=number_of(collected.devices),
        cores=analysis.host.cores if analysis.host and np.isfinite(analysis.host.cores) else None,
        compute_capability=f"{major}.{minor}" if major else None,
        device_memory_bytes=_positive(facts.get("memory_size")),
        device_cores=_positive(facts.get("core_count")),
    )


def _device_name(facts: dict[str, str | int | float | bool], analysis: Analysis, kind: str) -> str:
    if "device_type_string" in facts:
        return str(facts["device_type_string"])
    if analysis.host is None:
        return ""
    named = [device.name for device in analysis.host.accelerators if device.kind == kind]
    return named[0] if named else analysis.host.cpu_model if kind == CPU else ""


def _positive(value: object) -> int | None:
    return value if isinstance(value, int) and value > 0 else None
