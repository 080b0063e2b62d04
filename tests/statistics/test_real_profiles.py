"""What holds of every profile, on other people's and on the project's own."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from advisor.graph import analyse
from advisor.model.profile_statistics import Statistics
from advisor.profile import find_profiles, read_trace
from advisor.report.statistics_json import statistics_to_dict
from advisor.statistics import add_statistics
from advisor.workflows.saved_recording import read_recording
from tests.report.test_statistics_json import validator
from tests.statistics.reference import PROFILES

OWN = Path(__file__).parents[1] / "data"
SHARED = [path for path in PROFILES.glob("*") if path.name not in ("corrupt-utf8", "tf1-timelines") and path.is_dir()]
RECORDED = [path for path in OWN.iterdir() if (path / "recording.json").is_file()]


@cache
def statistics_of(path: Path) -> Statistics:
    recording = read_recording(path)
    analysis = add_statistics(analyse(read_trace(path), recording, "x"), find_profiles(path).paths)
    assert analysis.statistics is not None
    return analysis.statistics


def shared(name: str) -> Statistics:
    if not (PROFILES / name).is_dir():
        pytest.skip("the shared profiles are not here")
    return statistics_of(PROFILES / name)


@pytest.mark.parametrize(
    "path",
    [*RECORDED, *(pytest.param(path, marks=pytest.mark.long) for path in SHARED)],
    ids=lambda path: path.name,
)
def test_figures_agree_with_each_other(path):
    statistics = statistics_of(path)
    validator().validate(statistics_to_dict(statistics))
    for host in statistics.hosts or ():
        assert host.num_steps >= len(host.steps) > 0
        assert host.mean.total_ns == pytest.approx(host.mean_ns, rel=1e-4, abs=10)
        for step in host.steps:
            assert step.breakdown.total_ns == pytest.approx(step.duration_ns, abs=10)
            assert 0 <= step.breakdown.to_device_ns <= step.breakdown.input_ns
            assert min(getattr(step.breakdown, name) for name in step.breakdown.__slots__) >= 0
    for row in statistics.ops or ():
        assert 0 <= row.self_ns <= row.total_ns
        assert row.cumulative_share <= 1 + 1e-9
    for kernel in statistics.kernels or ():
        assert kernel.min_ns <= kernel.mean_ns <= kernel.max_ns
        assert kernel.occurrences * kernel.min_ns <= kernel.total_ns
    assert set(statistics.missing) == {
        section
        for section in ("overview", "input", "ops", "op_types", "kernels", "memory", "hosts")
        if getattr(statistics, section) is None
    }
    facts = statistics.device
    for name in ("idle_share", "to_device_share", "launch_gap_share", "eager_share", "compute_16bit_share"):
        share = getattr(facts, name)
        assert share is None or 0 <= share <= 1
    if facts.to_device_share is not None:
        assert facts.exposed_to_device_share <= facts.to_device_share


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.name)
def test_steps_of_our_own_captures(path):
    statistics = statistics_of(path)
    (host,) = statistics.hosts
    is_seen_from_python = path.name != "tf_function_loop"
    assert host.source == ("recorder" if is_seen_from_python else "iterator")
    assert host.num_steps >= 20
    assert statistics.input is not None
    assert statistics.device.device_type == "CPU"


def test_generator_waits_and_model_bound_computes():
    waits, computes = statistics_of(OWN / "generator"), statistics_of(OWN / "model_bound")
    assert waits.input.level == "high"
    assert waits.overview.breakdown.input_ns > 0.8 * waits.overview.step_ns
    assert computes.input.level == "none"
    assert computes.overview.breakdown.host_compute_ns > 0.8 * computes.overview.step_ns


def test_gpus_without_work_are_seen_but_not_counted():
    statistics = shared("gpu-tf24-multi-gpu")
    assert (statistics.overview.environment.num_devices, statistics.overview.environment.num_devices_seen) == (2, 8)
    assert 0.2 < statistics.device.compute_16bit_share < 0.4, "mixed precision, told by the ops' shapes"
    assert {row.allocator for row in statistics.memory.allocators} >= {"GPU_4_bfc", "GPU_6_bfc", "gpu_host_bfc"}


def test_waiting_for_input_on_a_gpu():
    statistics = shared("gpu-tf24-prefetch")
    assert statistics.input.input_share == pytest.approx(0.63, abs=0.01)
    assert "waiting for input" in statistics.overview.next_steps[0]


def test_without_libcupti():
    statistics = shared("gpu-tf24-no-libcupti")
    assert statistics.kernels is None
    assert "libcupti could not be loaded" in statistics.missing["kernels"]
    assert (statistics.device.device_type, statistics.device.num_devices) == ("GPU", 0)
    assert statistics.device.idle_share is None


def test_an_amd_gpu_has_no_compute_capability():
    statistics = shared("gpu-jax-no-tfdata")
    assert statistics.device.compute_capability is None, "gfx942 is no compute capability"
    assert statistics.device.has_xla_ops
    assert statistics.ops[1].type == "custom-call"
    assert (statistics.device.num_devices, statistics.overview.environment.num_devices_seen) == (1, 8)


def test_a_tpu_has_steps_but_no_kernels():
    statistics = shared("tpu-inference-no-tfdata")
    assert statistics.overview.environment.device_name == "TPU v6 Lite"
    assert (statistics.hosts[0].source, statistics.hosts[0].num_steps) == ("program", 100)
    assert statistics.kernels is None
    assert statistics.input is None
    assert statistics.ops[0].type == "copy-done"
