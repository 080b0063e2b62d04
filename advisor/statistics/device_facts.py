"""Derives the device facts for rules.

In: `Collected`.  Out: `DeviceFacts`.
"""

from __future__ import annotations

from collections.abc import Iterable

from advisor.model.profile_statistics import DeviceFacts
from advisor.statistics.breakdown import Cause
from advisor.statistics.collect import Collected
from advisor.statistics.device_totals import DeviceGroup, number_of

GPU, TPU, CPU = "GPU", "TPU", "CPU"


def device_facts(collected: Collected) -> DeviceFacts:
    """Derive the facts of all hosts and devices together."""
    active = [device for device in collected.devices if device.is_computing]
    kind = device_type(collected.devices)
    totals, sums = collected.totals, collected.step_sums
    steps = totals.steps
    compute_16 = totals.causes[Cause.COMPUTE_16]
    compute = compute_16 + totals.causes[Cause.COMPUTE_32]
    eligible, used, missed = collected.kernels.tensor_core_ns()
    whole, per_step = sums.step, sums.device_steps
    has_time = bool(active) and whole > 0
    host, device = collected.ops.host, collected.ops.device
    busy = host.busy + device.busy
    eager = (host.eager_share or 0.0) * host.busy + (device.eager_share or 0.0) * device.busy
    return DeviceFacts(
        device_type=kind,
        num_devices=number_of(active),
        compute_capability=compute_capability(active or collected.devices),
        vendor=_vendor(active or collected.devices),
        compute_16bit_share=compute_16 / compute if compute else None,
        tensor_core_eligible_ns=eligible,
        tensor_core_used_ns=used,
        eligible_off_tensor_core_ns=missed,
        kernel_ns=collected.kernels.total_ns,
        num_steps=steps.count,
        step_ns=round(steps.mean / 1000),
        kernels_per_step=sums.num_kernels / per_step if per_step else None,
        median_kernel_ns=collected.kernels.durations_ns.median(),
        launch_gap_share=totals.share(Cause.LAUNCH) if has_time else None,
        idle_share=sums.idle / whole if has_time else None,
        other_share=totals.share(Cause.UNKNOWN) if steps.total else None,
        memory_peak_share=collected.memory_peak_share,
        to_device_ns_per_step=round(sums.to_device_sum / per_step / 1000) if per_step else None,
        to_device_share=sums.to_device / whole if has_time else None,
        exposed_to_device_share=sums.exposed_to_device / whole if has_time else None,
        eager_share=eager / busy if busy else None,
        host_eager_share=host.eager_share,
        eager_ops_per_step=sums.num_eager_ops / steps.count if whole else None,
        eager_step_share=sums.eager / whole if whole else None,
        num_tracings=collected.compilation.num_tracings,
        num_compilations=collected.compilation.num_compilations,
        compile_ns=collected.compilation.compile_ns,
        compiled_names=collected.compilation.most_common,
        num_collectives=sum(device.num_collectives for device in active),
        outliers=tuple(sorted(collected.outliers, key=lambda step: -step.duration_ns)),
        has_xla_ops=collected.has_xla_ops or any(device.has_xla_ops for device in active),
    )


def device_type(devices: Iterable[DeviceGroup]) -> str:
    """Return `GPU` or `TPU` if the profile has such a device, otherwise `CPU`."""
    kinds = [device.kind for device in devices]
    return TPU if TPU in kinds else GPU if GPU in kinds else CPU


def compute_capability(devices: Iterable[DeviceGroup]) -> float | None:
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


def _vendor(devices: Iterable[DeviceGroup]) -> str:
    return next((str(device.facts["device_vendor"]) for device in devices if "device_vendor" in device.facts), "")
