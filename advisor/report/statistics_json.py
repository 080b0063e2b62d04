"""Limits the `statistics` of report.json, so that a report stays below a megabyte.

In: `Statistics`.  Out: a dictionary of its fields (`advisor.model.profile_statistics`) with fewer rows and shorter names; its
`left_out` holds the number of missing rows of each section.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from advisor.model.profile_statistics import (
    AllocatorMemory,
    HostSteps,
    InputStatistics,
    MemoryPoint,
    MemoryStatistics,
    OpRow,
    Statistics,
)
from advisor.report.json_format import Json, to_dict

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
    """Convert the statistics to the section `statistics` of report.json; None if nothing was computed."""
    return None if statistics is None else to_dict(_limited(statistics), MAX_TEXT)


def _limited(statistics: Statistics) -> Statistics:
    left_out: dict[str, int] = dict(statistics.left_out)
    limited = replace(
        statistics,
        ops=statistics.ops and _per_side("ops", statistics.ops, MAX_OPS, left_out),
        op_types=statistics.op_types and _per_side("op_types", statistics.op_types, MAX_OP_TYPES, left_out),
        kernels=statistics.kernels and _capped("kernels", statistics.kernels, MAX_KERNELS, left_out),
        input=statistics.input and _input(statistics.input, left_out),
        memory=statistics.memory and _memory(statistics.memory, left_out),
        hosts=statistics.hosts and _hosts(statistics.hosts, left_out),
    )
    return replace(limited, left_out={section: count for section, count in left_out.items() if count})


def _input(statistics: InputStatistics, left_out: dict[str, int]) -> InputStatistics:
    ops = _capped("input.ops", statistics.ops, MAX_INPUT_OPS, left_out)
    return replace(
        statistics, ops=ops, pipelines=_capped("input.pipelines", statistics.pipelines, MAX_PIPELINES, left_out)
    )


def _memory(memory: MemoryStatistics, left_out: dict[str, int]) -> MemoryStatistics:
    allocators = _capped("memory.allocators", memory.allocators, MAX_ALLOCATORS, left_out)
    return MemoryStatistics(tuple(_allocator(allocator, len(allocators)) for allocator in allocators))


def _allocator(memory: AllocatorMemory, num_allocators: int) -> AllocatorMemory:
    users = memory.users[: MAX_MEMORY_USERS // num_allocators]
    return replace(
        memory,
        timeline=_highest(memory.timeline, MAX_POINTS // num_allocators),
        users=users,
        left_out_users=memory.left_out_users + len(memory.users) - len(users),
    )


def _highest(points: Sequence[MemoryPoint], most: int) -> tuple[MemoryPoint, ...]:
    """At most so many points: of each stretch the one with most memory in use."""
    size = math.ceil(len(points) / most) or 1
    stretches = [points[first : first + size] for first in range(0, len(points), size)]
    return tuple(max(stretch, key=lambda point: point.heap_bytes + point.stack_bytes) for stretch in stretches)


def _hosts(hosts: tuple[HostSteps, ...], left_out: dict[str, int]) -> tuple[HostSteps, ...]:
    most = max(MIN_STEPS_PER_HOST, MAX_STEPS // len(hosts))
    rows = []
    for host in _capped("hosts", hosts, MAX_STEPS // MIN_STEPS_PER_HOST, left_out):
        stride = math.ceil(len(host.steps) / most) or 1
        rows.append(replace(host, steps=host.steps[::stride]))
        left_out["hosts.steps"] = left_out.get("hosts.steps", 0) + host.num_steps - len(rows[-1].steps)
    return tuple(rows)


def _per_side(section: str, rows: tuple[OpRow, ...], most: int, left_out: dict[str, int]) -> tuple[OpRow, ...]:
    sides = [tuple(row for row in rows if row.side == side) for side in dict.fromkeys(row.side for row in rows)]
    return tuple(row for side in sides for row in _capped(section, side, most, left_out))


def _capped(section: str, rows: tuple[T, ...], most: int, left_out: dict[str, int]) -> tuple[T, ...]:
    left_out[section] = left_out.get(section, 0) + max(0, len(rows) - most)
    return rows[:most]
