"""The `statistics` section of report.json: the tables of the profiler guide's pages.

In: `Statistics`.  Out: plain dictionaries whose keys are the field names of `advisor.model.profile_statistics`;
report.schema.json pins
them. Rows are capped, so that a report stays below a megabyte: `left_out` says how many rows of which section are missing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar, cast

import msgspec

from advisor.model.profile_statistics import AllocatorMemory, HostSteps, KernelRow, MemoryPoint, OpRow, Statistics

Json = dict[str, object]
T = TypeVar("T")

MAX_OPS = 120
"""Per side. XProf shows 500; the last hundreds are microseconds each."""
MAX_OP_TYPES = 60
MAX_KERNELS = 120
MAX_INPUT_OPS = 80
MAX_STEPS = 320
"""Over all hosts, evenly taken; every host keeps a few."""
MIN_STEPS_PER_HOST = 10
MAX_POINTS = 640
"""Of all memory timelines; of each stretch the highest is kept."""
MAX_MEMORY_USERS = 192
"""Of all allocators."""
MAX_ALLOCATORS = 16
MAX_PIPELINES = 50
MAX_TEXT = 200
"""Characters of a name: kernel names can be kilobytes long."""


def statistics_to_dict(statistics: Statistics | None) -> Json | None:
    """The section, or None where nothing was computed."""
    if statistics is None:
        return None
    left_out: dict[str, int] = dict(statistics.left_out)
    ops = statistics.ops and _per_side("ops", statistics.ops, MAX_OPS, left_out)
    types = statistics.op_types and _per_side("op_types", statistics.op_types, MAX_OP_TYPES, left_out)
    kernels = statistics.kernels and _capped("kernels", statistics.kernels, MAX_KERNELS, left_out)
    return {
        "overview": _plain(statistics.overview),
        "input": _input(statistics, left_out),
        "ops": None if ops is None else [_op(row) for row in ops],
        "op_types": None if types is None else [_op(row) for row in types],
        "kernels": None if kernels is None else [_kernel(row) for row in kernels],
        "memory": _memory(statistics, left_out),
        "hosts": _hosts(statistics.hosts, left_out),
        "device": _plain(statistics.device),
        "missing": {section: _text(why) for section, why in statistics.missing.items()},
        "left_out": {section: count for section, count in left_out.items() if count},
    }


def _op(row: OpRow) -> Json:
    return {**_fields(row), "mean_ns": row.mean_ns}


def _kernel(row: KernelRow) -> Json:
    return {**_fields(row), "mean_ns": row.mean_ns}


def _input(statistics: Statistics, left_out: dict[str, int]) -> Json | None:
    if statistics.input is None:
        return None
    ops = _capped("input.ops", statistics.input.ops, MAX_INPUT_OPS, left_out)
    pipelines = _capped("input.pipelines", statistics.input.pipelines, MAX_PIPELINES, left_out)
    return {
        **_fields(replace(statistics.input, ops=(), pipelines=())),
        "ops": [_plain(row) for row in ops],
        "pipelines": [_plain(row) for row in pipelines],
    }


def _memory(statistics: Statistics, left_out: dict[str, int]) -> Json | None:
    if statistics.memory is None:
        return None
    allocators = _capped("memory.allocators", statistics.memory.allocators, MAX_ALLOCATORS, left_out)
    return {"allocators": [_allocator(one, len(allocators)) for one in allocators]}


def _allocator(one: AllocatorMemory, num_allocators: int) -> Json:
    users = one.users[: MAX_MEMORY_USERS // num_allocators]
    return {
        **_fields(replace(one, timeline=(), users=())),
        "timeline": [_plain(point) for point in _highest(one.timeline, MAX_POINTS // num_allocators)],
        "users": [_plain(user) for user in users],
        "left_out_users": one.left_out_users + len(one.users) - len(users),
    }


def _highest(points: Sequence[MemoryPoint], most: int) -> list[MemoryPoint]:
    """At most so many points: of each stretch the one with most memory in use."""
    size = math.ceil(len(points) / most) or 1
    stretches = [points[first : first + size] for first in range(0, len(points), size)]
    return [max(stretch, key=lambda point: point.heap_bytes + point.stack_bytes) for stretch in stretches]


def _hosts(hosts: tuple[HostSteps, ...] | None, left_out: dict[str, int]) -> list[Json] | None:
    if hosts is None:
        return None
    most = max(MIN_STEPS_PER_HOST, MAX_STEPS // max(1, len(hosts)))
    shown = _capped("hosts", hosts, MAX_STEPS // MIN_STEPS_PER_HOST, left_out)
    rows = []
    for host in shown:
        stride = math.ceil(len(host.steps) / most) or 1
        steps = host.steps[::stride]
        left_out["hosts.steps"] = left_out.get("hosts.steps", 0) + host.num_steps - len(steps)
        rows.append({**_fields(replace(host, steps=())), "steps": [_plain(step) for step in steps]})
    return rows


def _per_side(section: str, rows: Sequence[OpRow], most: int, left_out: dict[str, int]) -> list[OpRow]:
    sides = dict.fromkeys(row.side for row in rows)
    return [row for side in sides for row in _capped(section, [r for r in rows if r.side == side], most, left_out)]


def _capped(section: str, rows: Sequence[T], most: int, left_out: dict[str, int]) -> Sequence[T]:
    left_out[section] = left_out.get(section, 0) + max(0, len(rows) - most)
    return rows[:most]


def _fields(row: object) -> Json:
    return cast(Json, _plain(row))


def _plain(value: object) -> object:
    """Dataclasses as dictionaries, tuples as lists, texts shortened, numbers that JSON does not know as null."""
    return _clean(msgspec.to_builtins(value))


def _clean(value: object) -> object:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, dict):
        return {_text(str(key)): _clean(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(inner) for inner in value]
    return value


def _text(text: str) -> str:
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"
