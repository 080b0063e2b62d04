"""Statistics of GPU kernels: op, launch configuration, duration, use of tensor cores.

In: the devices of each host.  Out: `KernelRow`s.

Kernels that use tensor cores and ops that could use them are recognised by name, with the lists of XProf
(`kernel_stats_utils.cc`). The lists are incomplete and assume a Volta or later GPU.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from advisor.model.activity import DeviceActivity, DeviceKind
from advisor.model.profile_statistics import KernelRow
from advisor.statistics.durations import Durations

_TENSOR_CORE_KERNEL = re.compile(
    r"16816|c1688|conv1x1|conv2d_c1_k1|dgrad_1x1_stride_2x2|direct_group|first_layer_wgrad_kernel|h1688|h884|hmma|i16832"
    r"|i8816|s884|s1688|xmma_gemm|xmma_implicit_gemm|xmma_sparse_conv|xmma_sparse_gemm"
    r"|xmma_warp_specialized_implicit_gemm"
)
_ELIGIBLE_OP = re.compile(
    r".*(Conv2D|Conv2DBackpropFilter|Conv2DBackpropInput|Conv3D|DepthwiseConv2dNative|DepthwiseConv2dNativeBackpropFilter"
    r"|DepthwiseConv2dNativeBackpropInput|/MatMul|FusedMatMul|/CudnnRNN|XlaDot|XlaDotV2)|.*(BatchMatMul|CudnnRNNV"
    r"|CudnnRNNForward|CudnnRNNBackprop).*"
)

Key = tuple[str, str, str]
"""Kernel, launch configuration as written in the file, op."""


@dataclass(slots=True)
class KernelSums:
    """The kernels of all devices: key -> occurrences, total, minimum, maximum in ns."""

    rows: dict[Key, list[int]] = field(default_factory=dict)
    durations_ns: Durations = field(default_factory=Durations)
    """Durations of all kernels."""

    def add(self, devices: Iterable[DeviceActivity]) -> None:
        """Add the kernels of some devices."""
        for device in devices:
            self._add(device)

    def _add(self, device: DeviceActivity) -> None:
        duration = device.duration_ps // 1000
        rows = np.flatnonzero((device.kind == DeviceKind.KERNEL) & (duration > 0))
        if not len(rows):
            return
        duration = duration[rows]
        self.durations_ns.add(duration)
        keys = np.stack([device.name_of[rows], device.details[rows], device.op[rows]])
        distinct, inverse, counts = np.unique(keys, axis=1, return_inverse=True, return_counts=True)
        inverse = inverse.reshape(-1)
        total = np.zeros(len(counts), np.int64)
        np.add.at(total, inverse, duration)
        shortest = np.full(len(counts), np.iinfo(np.int64).max)
        np.minimum.at(shortest, inverse, duration)
        longest = np.zeros(len(counts), np.int64)
        np.maximum.at(longest, inverse, duration)
        for column, (name, details, op) in enumerate(distinct.T.tolist()):
            key = (
                device.names[name],
                device.kernel_details[details] if details >= 0 else "",
                device.ops[op][0] if op >= 0 else "",
            )
            row = self.rows.setdefault(key, [0, 0, int(shortest[column]), 0])
            row[0] += int(counts[column])
            row[1] += int(total[column])
            row[2] = min(row[2], int(shortest[column]))
            row[3] = max(row[3], int(longest[column]))

    def merge(self, other: KernelSums) -> None:
        """Add the kernels of another host."""
        for key, (occurrences, total, shortest, longest) in other.rows.items():
            row = self.rows.setdefault(key, [0, 0, shortest, 0])
            self.rows[key] = [
                row[0] + occurrences,
                row[1] + total,
                min(row[2], shortest),
                max(row[3], longest),
            ]
        self.durations_ns.merge(other.durations_ns)

    @property
    def total_ns(self) -> int:
        """Return the time of all kernels."""
        return sum(total for _, total, _, _ in self.rows.values())

    def tensor_core_ns(self) -> tuple[int, int, int]:
        """Return the time of kernels whose op could use tensor cores, of those that did, and of those that could but did not."""
        eligible = used = missed = 0
        for (name, _, op), (_, total, _, _) in self.rows.items():
            is_using, is_eligible = uses_tensor_core(name), is_tensor_core_eligible(op)
            eligible += total if is_eligible or (is_using and op) else 0
            used += total if is_using else 0
            missed += total if is_eligible and not is_using else 0
        return eligible, used, missed

    def tensor_core_share_by_op(self) -> dict[str, float]:
        """Return the share of kernel time on tensor cores, by op."""
        total: dict[str, int] = {}
        used: dict[str, int] = {}
        for (name, _, op), (_, duration, _, _) in self.rows.items():
            total[op] = total.get(op, 0) + duration
            used[op] = used.get(op, 0) + (duration if uses_tensor_core(name) else 0)
        return {op: used[op] / duration for op, duration in total.items() if op and duration}


def kernel_rows(sums: KernelSums) -> tuple[KernelRow, ...]:
    """Return one row per kernel, configuration and op, longest total first."""
    rows = [_row(key, values) for key, values in sums.rows.items()]
    rows.sort(key=lambda row: (-row.total_ns, row.name, row.op))
    return tuple(rows)


def _row(key: Key, values: list[int]) -> KernelRow:
    name, details, op = key
    properties = {field: value for field, colon, value in (word.partition(":") for word in details.split()) if colon}
    shared = [
        _number(properties[field])
        for field in ("shm", "static_shared", "dynamic_shared", "group_mem")
        if field in properties
    ]
    is_using = uses_tensor_core(name)
    occupancy = properties.get("occ_pct")
    return KernelRow(
        name=name,
        registers_per_thread=_number(properties["regs"]) if "regs" in properties else None,
        shared_memory_bytes=sum(size or 0 for size in shared) if shared else None,
        block=_dimensions(properties.get("block", "")),
        grid=_dimensions(properties.get("grid", "")),
        is_using_tensor_core=is_using,
        is_op_tensor_core_eligible=bool(op) and (is_using or is_tensor_core_eligible(op)),
        op=op,
        occurrences=values[0],
        total_ns=values[1],
        min_ns=values[2],
        max_ns=values[3],
        occupancy_share=_share(occupancy) if occupancy else None,
    )


@cache
def uses_tensor_core(kernel: str) -> bool:
    """Return whether a kernel with that name runs on tensor cores."""
    return _TENSOR_CORE_KERNEL.search(kernel) is not None


@cache
def is_tensor_core_eligible(op: str) -> bool:
    """Return whether an op with that name can run on tensor cores."""
    return _ELIGIBLE_OP.fullmatch(op) is not None


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else None


def _dimensions(text: str) -> tuple[int, int, int] | None:
    numbers = [_number(part) for part in text.split(",")]
    if len(numbers) != 3:
        return None
    x, y, z = numbers
    return None if x is None or y is None or z is None else (x, y, z)


def _share(percent: str) -> float | None:
    """Return the occupancy; None if it is 0, which the profiler writes if it could not compute it."""
    try:
        share = float(percent) / 100
    except ValueError:
        return None
    return share if 0 < share <= 1 else None
