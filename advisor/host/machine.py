"""Describes the resources available to this process: cores, memory and accelerators, within affinity and cgroup limits.

In: /proc and the cgroup files, if they exist.  Out: a `Host`.
"""

from __future__ import annotations

import contextlib
import math
import os
import platform
import shutil
import socket
import sys
from dataclasses import replace
from pathlib import Path

from advisor.host.calibration.stored import load_calibration
from advisor.model.recording import Accelerator, Host

_CGROUP = Path("/sys/fs/cgroup")
_BFLOAT16 = frozenset({"amx_bf16", "avx512_bf16", "bf16"})
"""Processor features in `/proc/cpuinfo`; the last one is Arm's."""
_NO_LIMIT = 1 << 60
"""Larger limits mean no limit: cgroup v1 uses a number near 2**63."""


def describe_host() -> Host:
    """Return facts about this machine.

    TensorFlow's version, its accelerators and the calibration of the machine are included if TensorFlow has been imported.
    """
    installed = os.cpu_count() or 1
    memory, free = memory_bytes()
    version, accelerators = _tensorflow_facts()
    host = Host(
        hostname=socket.gethostname(),
        cores=usable_cores(),
        cores_installed=installed,
        memory_bytes=memory,
        memory_free_bytes=free,
        cpu_model=_cpu_model(),
        has_bfloat16=has_bfloat16(),
        platform=platform.platform(),
        python_version=platform.python_version(),
        tensorflow_version=version,
        accelerators=accelerators,
        disk_free_bytes=_disk_free(),
    )
    return replace(host, calibration=load_calibration(host))


def _disk_free() -> int | None:
    """Return the free bytes on the file system of the working directory; None if unknown."""
    try:
        return shutil.disk_usage(Path.cwd()).free
    except OSError:
        return None


def usable_cores(cgroup: Path = _CGROUP) -> float:
    """Return the number of cores that this process can use: the minimum of CPU affinity and cgroup quota.

    Args:
        cgroup: Root of the cgroup file system.

    Returns:
        A number of cores, which may be fractional.
    """
    return min(float(schedulable_cores()), _quota(cgroup))


def schedulable_cores() -> int:
    """Return the number of cores that the scheduler may give this process, which is AUTOTUNE's limit: it ignores quotas."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS and Windows
        return os.cpu_count() or 1


def memory_bytes(cgroup: Path = _CGROUP) -> tuple[int, int]:
    """Return the memory that this process can use, within the limits of the machine, the cgroup and the process (`ulimit`).

    Args:
        cgroup: Root of the cgroup file system.

    Returns:
        (usable bytes, free bytes).
    """
    total, free = _limited(*_machine_memory())
    limit, used = _memory_limit(cgroup)
    if limit >= _NO_LIMIT:
        return total, free
    return min(total, limit), max(0, min(free, limit - used))


def cgroup_limits(cgroup: Path = _CGROUP) -> tuple[float | None, int | None]:
    """Return the limits of the cgroup of this process and of its ancestors, the smallest of each, whatever the machine has.

    Args:
        cgroup: Root of the cgroup file system.

    Returns:
        (CPU quota in cores, memory limit in bytes); None where there is no limit.
    """
    quota, (limit, _) = _quota(cgroup), _memory_limit(cgroup)
    return quota if quota < math.inf else None, limit if limit < _NO_LIMIT else None


def _memory_limit(cgroup: Path) -> tuple[int, int]:
    """Return the smallest memory limit and the bytes in use of the group that sets it; `_NO_LIMIT` if none does."""
    limit, used = _NO_LIMIT, 0
    for folder in (*_own_groups(cgroup, ""), *_own_groups(cgroup / "memory", "memory")):
        for limit_name, used_name in (
            ("memory.max", "memory.current"),
            ("memory.limit_in_bytes", "memory.usage_in_bytes"),
        ):
            group_limit = _number(folder / limit_name)
            if group_limit is not None and group_limit < limit:
                limit, used = group_limit, (_number(folder / used_name) or 0) - _reclaimable(folder)
    return limit, used


def _reclaimable(group: Path) -> int:
    """Return the bytes of a cgroup's page cache that are inactive; the kernel reclaims them before an allocation fails."""
    with contextlib.suppress(OSError, ValueError):
        facts = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
        return int(facts.get("total_inactive_file", facts.get("inactive_file", 0)))
    return 0


def _limited(total: int, free: int) -> tuple[int, int]:
    """Return (total, free) within the limits of the process, which apply to address space and data instead of resident memory."""
    try:
        import resource
    except ImportError:  # Windows
        return total, free
    status: dict[str, int] = {}
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith(("VmSize:", "VmData:")):
                name, size, _ = line.split()
                status[name] = int(size) * 1024
    for kind, used in ((resource.RLIMIT_AS, "VmSize:"), (resource.RLIMIT_DATA, "VmData:")):
        limit = resource.getrlimit(kind)[0]
        if limit != resource.RLIM_INFINITY:
            total, free = min(total, limit), max(0, min(free, limit - status.get(used, 0)))
    return total, free


def _quota(cgroup: Path) -> float:
    smallest = math.inf
    for folder in _own_groups(cgroup, ""):  # version 2: "max 100000" or "150000 100000"
        with contextlib.suppress(OSError, ValueError):
            quota, period = (folder / "cpu.max").read_text().split()
            smallest = min(smallest, math.inf if quota == "max" else int(quota) / int(period))
    for controller in ("cpu", "cpu,cpuacct"):  # version 1
        for folder in _own_groups(cgroup / controller, "cpu"):
            quota_us, period_us = _number(folder / "cpu.cfs_quota_us"), _number(folder / "cpu.cfs_period_us")
            if quota_us and period_us and quota_us > 0:
                smallest = min(smallest, quota_us / period_us)
    return smallest


def _own_groups(root: Path, controller: str) -> list[Path]:
    """Return the cgroup of this process and its ancestors up to `root`, all of whose limits apply."""
    relative = ""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if (not controller and not controllers) or controller in controllers.split(","):
                relative = path.strip("/")
    groups = [root]
    for part in Path(relative).parts:
        if part == "..":
            return [root]
        groups.append(groups[-1] / part)
    return [group for group in groups if group.is_dir()]


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None


def _machine_memory() -> tuple[int, int]:
    facts: dict[str, int] = {}
    with contextlib.suppress(OSError, ValueError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            name, _, rest = line.partition(":")
            facts[name] = int(rest.split()[0]) * 1024
    if "MemTotal" in facts:
        return facts["MemTotal"], facts.get("MemAvailable", facts.get("MemFree", 0))
    try:
        page = os.sysconf("SC_PAGE_SIZE")
        return page * os.sysconf("SC_PHYS_PAGES"), page * os.sysconf("SC_AVPHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return 0, 0


def _cpu_model() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()


def has_bfloat16(cpuinfo: Path = Path("/proc/cpuinfo")) -> bool | None:
    """Return whether the CPU has instructions that multiply bfloat16; None if the flags of its first core cannot be read."""
    with contextlib.suppress(OSError):
        for line in cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines():
            name, _, flags = line.partition(":")
            if name.strip() in ("flags", "Features"):  # x86 and Arm
                return not _BFLOAT16.isdisjoint(flags.split())
    return None


def _tensorflow_facts() -> tuple[str, tuple[Accelerator, ...]]:
    tensorflow = sys.modules.get("tensorflow")
    if tensorflow is None or not hasattr(tensorflow, "config"):
        return "", ()
    accelerators = []
    for kind in ("GPU", "TPU"):
        with contextlib.suppress(Exception):  # e.g. errors of the driver
            for device in tensorflow.config.list_physical_devices(kind):
                details = tensorflow.config.experimental.get_device_details(device) if kind == "GPU" else {}
                accelerators.append(Accelerator(kind, str(details.get("device_name", device.name))))
    return str(getattr(tensorflow, "__version__", "")), tuple(accelerators)
