"""Cores and memory as a container may use them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from advisor.host.machine import cgroup_limits, describe_host, has_bfloat16, memory_bytes, usable_cores


def write(folder: Path, **files: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)
    return folder


def test_limits_of_cgroup_2_count(tmp_path):
    write(tmp_path, cpu__max="50000 100000\n", memory__max=str(1 << 30), memory__current=str(1 << 28))
    assert usable_cores(tmp_path) == 0.5
    total, free = memory_bytes(tmp_path)
    assert total == 1 << 30 and 0 < free <= (1 << 30) - (1 << 28)


def test_limits_of_cgroup_1_count(tmp_path):
    write(tmp_path / "cpu", cpu__cfs_quota_us="25000", cpu__cfs_period_us="100000")
    write(tmp_path / "memory", memory__limit_in_bytes=str(1 << 29), memory__usage_in_bytes="0")
    assert usable_cores(tmp_path) == 0.25
    assert memory_bytes(tmp_path)[0] == 1 << 29
    assert cgroup_limits(tmp_path) == (0.25, 1 << 29)


def test_without_limits_the_whole_machine_counts(tmp_path):
    write(tmp_path, cpu__max="max 100000\n", memory__max="max")
    write(tmp_path / "cpu", cpu__cfs_quota_us="-1", cpu__cfs_period_us="100000")
    write(tmp_path / "memory", memory__limit_in_bytes=str(2**63 - 4096))
    assert usable_cores(tmp_path) == len(os.sched_getaffinity(0))
    assert cgroup_limits(tmp_path) == cgroup_limits(tmp_path / "nothing") == (None, None)
    assert memory_bytes(tmp_path)[0] == memory_bytes(tmp_path / "nothing")[0] > 1 << 20


def test_this_machine_has_cores_and_memory(monkeypatch):
    monkeypatch.delitem(sys.modules, "tensorflow", raising=False)  # another test may have imported it
    host = describe_host()
    assert 0 < host.cores <= host.cores_installed and 0 < host.memory_free_bytes <= host.memory_bytes
    assert host.tensorflow_version == "" and host.accelerators == ()


def test_files_that_the_kernel_would_give_up_are_free(tmp_path):
    write(
        tmp_path,
        memory__max=str(1 << 30),
        memory__current=str(1 << 29),
        memory__stat=f"anon 5\ninactive_file {1 << 28}\n",
    )
    assert memory_bytes(tmp_path)[1] <= (1 << 30) - (1 << 29) + (1 << 28)
    assert memory_bytes(tmp_path)[1] > (1 << 30) - (1 << 29) or memory_bytes(tmp_path / "nothing")[1] < 1 << 30


@pytest.mark.parametrize("limit", ["RLIMIT_AS", "RLIMIT_DATA"])
def test_limits_of_the_process_count(limit):
    size = 4 << 30
    code = (
        f"import resource; resource.setrlimit(resource.{limit}, ({size}, resource.RLIM_INFINITY))\n"
        "from advisor.host.machine import memory_bytes; print(*memory_bytes())"
    )
    total, free = map(int, subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout.split())
    assert total <= size and free < size


@pytest.mark.parametrize(
    ("text", "has"),
    [
        ("processor\t: 0\nflags\t\t: fpu sse2 avx512_bf16 amx_tile\n", True),
        ("processor\t: 0\nflags\t\t: fpu sse2 avx512f amx_int8\n", False),
        ("processor\t: 0\nFeatures\t: fp asimd bf16\n", True),
        ("processor\t: 0\nmodel name\t: none\n", None),
    ],
)
def test_a_processor_with_bfloat16_units_is_known_by_its_flags(tmp_path, text, has):
    (tmp_path / "cpuinfo").write_text(text)
    assert has_bfloat16(tmp_path / "cpuinfo") is has


def test_without_flags_nothing_is_known_of_bfloat16(tmp_path):
    assert has_bfloat16(tmp_path / "absent") is None
