"""Derives the device facts for rules.

In: `Collected`.  Out: `DeviceFacts`.
"""

from __future__ import annotations

import re

import numpy as np

from advisor.model.profile_statistics import DeviceFacts
from advisor.statistics.breakdown import Cause
from advisor.statistics.collect import Collected, DeviceSeen

_DEVICE_TYPE = re.compile(r"/device:([A-Z]+)")
GPU, TPU, CPU = "GPU", "TPU", "CPU"


def device_facts(collected: Collected) -> DeviceFacts:
    """Derive the facts of all hosts and devices together."""
    active = [device for device in collected.devices if device.is_computing]
    kind = device_type(collected.devices)
    step_ps, causes = collected.all_step_ps, collected.all_cause_ps
    compute_16 = int(causes[:, Cause.COMPUTE_16].sum())
    compute = compute_16 + int(causes[:, Cause.COMPUTE_32].sum())
    eligible, used, missed = collected.kernels.tensor_core_ns()
    whole = sum(time.step for time in collected.step_sums)
    per_step = sum(time.num_steps * time.num_devices for time in collected.step_sums)
    has_time = bool(active) and whole > 0
    durations = collected.kernels.durations_ns
    host, device = collected.ops.host, collected.ops.device
    busy = host.busy + device.busy
    eager = (host.eager_share or 0.0) * host.busy + (device.eager_share or 0.0) * device.busy
    return DeviceFacts(
        device_type=kind,
        num_devices=len(active),
        compute_capability=compute_capability(active or collected.devices),
        vendor=_vendor(active or collected.devices),
        compute_16bit_share=compute_16 / compute if compute else None,
        tensor_core_eligible_ns=eligible,
        tensor_core_used_ns=used,
        eligible_off_tensor_core_ns=missed,
        kernel_ns=collected.kernels.total_ns,
        num_steps=len(step_ps),
        step_ns=round(float(step_ps.mean()) / 1000) if len(step_ps) else 0,
        kernels_per_step=sum(time.num_kernels for time in collected.step_sums) / per_step if per_step else None,
        median_kernel_ns=int(np.median(np.concatenate(durations))) if durations else None,
        launch_gap_share=float(causes[:, Cause.LAUNCH].sum() / step_ps.sum()) if has_time else None,
        idle_share=sum(time.idle for time in collected.step_sums) / whole if has_time else None,
        other_share=float(causes[:, Cause.UNKNOWN].sum() / step_ps.sum()) if len(step_ps) else None,
        memory_peak_share=_memory_peak_share(collected),
        to_device_ns_per_step=round(sum(time.to_device_sum for time in collected.step_sums) / per_step / 1000)
        if per_step
        else None,
        to_device_share=sum(time.to_device for time in collected.step_sums) / whole if has_time else None,
        exposed_to_device_share=sum(time.exposed_to_device for time in collected.step_sums) / whole
        if has_time
        else None,
        eager_share=eager / busy if busy else None,
        host_eager_share=host.eager_share,
        eager_ops_per_step=sum(time.num_eager_ops for time in collected.step_sums) / len(step_ps) if whole else None,
        eager_step_share=sum(time.eager for time in collected.step_sums) / whole if whole else None,
        num_tracings=collected.compilation.num_tracings,
        num_compilations=collected.compilation.num_compilations,
        compile_ns=collected.compilation.compile_ns,
        compiled_names=collected.compilation.most_common,
        num_collectives=sum(device.num_collectives for device in active),
        outliers=tuple(sorted(collected.outliers, key=lambda step: -step.duration_ns)),
        has_xla_ops=collected.has_xla_ops or any(device.has_xla_ops for device in active),
    )


def _memory_peak_share(collected: Collected) -> float | None:
    """Maximum share of memory in use among device allocators, which are recognised by name (`GPU_0_bfc`)."""
    shares = [
        allocator.peak_bytes / allocator.capacity_bytes
        for allocator in collected.memory
        if allocator.capacity_bytes and allocator.allocator.upper().startswith((GPU, TPU))
    ]
    return max(shares, default=None)


def device_type(devices: list[DeviceSeen]) -> str:
    """Return `GPU` or `TPU` if the profile has such a device, otherwise `CPU`."""
    kinds = [match[1] for device in devices if (match := _DEVICE_TYPE.search(device.name))]
    return TPU if TPU in kinds else GPU if GPU in kinds else CPU


def compute_capability(devices: list[DeviceSeen]) -> float | None:
    """Return the compute capability of the first NVIDIA device that has one; AMD's value has a different meaning."""
    for device in devices:
        major, minor = device.facts.get("compute_cap_major"), device.facts.get("compute_cap_minor")
        if (
            isinstance(major, int)
            and isinstance(minor, int)
            and major
            and _vendor([device]) in ("", "Nvidia", "NVIDIA")
        ):
            return major + minor / 10
    return None


def _vendor(devices: list[DeviceSeen]) -> str:
    return next((str(device.facts["device_vendor"]) for device in devices if "device_vendor" in device.facts), "")
