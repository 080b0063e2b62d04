"""The `outlook` object of report.json: service demands, limits, and the best set of changes.

In: an `Outlook`.  Out: a plain dictionary in the names of `report.schema.json`. Numbers that are not finite become null.
"""

from __future__ import annotations

import math

from advisor.model.outlook import CombinedPlan, Limit, Outlook, ServiceDemand

Json = dict[str, object]


def outlook_to_dict(outlook: Outlook) -> Json:
    """Convert an outlook; times are in nanoseconds per element at the root."""
    return {
        "step_ns": _number(outlook.step_ns),
        "consumer_ns": _number(outlook.consumer_ns),
        "demands": [_demand(demand) for demand in outlook.demands],
        "limits": [_limit(limit) for limit in outlook.limits],
        "memory_room_bytes": outlook.memory_room_bytes,
        "plan": outlook.plan and _plan(outlook.plan),
    }


def _demand(demand: ServiceDemand) -> Json:
    return {
        "iterator_id": demand.iterator_id,
        "visits": _number(demand.visits),
        "busy_ns": _number(demand.busy_ns),
        "cpu_ns": _number(demand.cpu_ns),
        "waiting_ns": _number(demand.waiting_ns),
        "python_ns": _number(demand.python_ns),
        "servers": _number(demand.servers),
        "stage": demand.stage,
        "capacity_per_s": _number(demand.capacity_per_s),
    }


def _limit(limit: Limit) -> Json:
    return {"resource": limit.resource, "step_ns": _number(limit.step_ns), "iterator_id": limit.iterator_id}


def _plan(plan: CombinedPlan) -> Json:
    gain = plan.prediction
    return {
        "findings": list(plan.findings),
        "predicted_speedup": {"value": _number(gain.value), "low": _number(gain.low), "high": _number(gain.high)},
        "memory_bytes": plan.memory_bytes,
        "limit": _limit(plan.limit),
        "limit_speedup": _number(plan.limit_speedup),
        "service_workers": plan.service_workers,
        "sentence": plan.sentence,
    }


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None
