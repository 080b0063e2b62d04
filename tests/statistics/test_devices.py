"""Devices: what a step on them is made of, precision, copies, kernels. Times in microseconds."""

from __future__ import annotations

import pytest

from tests.profile.made_profile import ProfileBuilder
from tests.statistics.made_profiles import gpu_training, statistics_of


def test_a_gpu_step_adds_up(tmp_path):
    statistics = statistics_of(gpu_training(), tmp_path)
    overview = statistics.overview
    assert (overview.num_steps, overview.step_ns) == (2, 100_000)
    step = overview.breakdown
    assert step.total_ns == 100_000
    assert step.input_ns == 30_000, "waiting till 18, copying till 30: the copy counts ahead of the end of the wait"
    assert step.to_device_ns == 12_000
    assert step.kernel_launch_ns == 10_000, "30 to 40; the rest of ExecutorState::Process lies under input"
    assert step.device_compute_ns == 40_000
    assert step.other_ns == 20_000
    assert step.host_compute_ns == 0, "threads of tf.data work ahead: the step does not wait for them"


def test_precision_and_tensor_cores(tmp_path):
    statistics = statistics_of(gpu_training(), tmp_path)
    assert statistics.overview.compute_16bit_share == pytest.approx(30 / 40), "65 to 70 counts once, as 16 bit"
    assert statistics.device.compute_capability == 8.0
    assert statistics.device.tensor_core_eligible_ns == statistics.device.tensor_core_used_ns == 60_000
    assert statistics.device.eligible_off_tensor_core_ns == 0
    gemm, add = statistics.kernels
    assert (gemm.occurrences, gemm.total_ns, gemm.min_ns, gemm.max_ns) == (2, 60_000, 30_000, 30_000)
    assert (gemm.registers_per_thread, gemm.shared_memory_bytes) == (32, 128)
    assert (gemm.block, gemm.grid, gemm.occupancy_share) == ((64, 1, 1), (2, 3, 4), 0.5)
    assert (gemm.op, gemm.is_using_tensor_core, gemm.is_op_tensor_core_eligible) == ("model/dense/MatMul", True, True)
    assert (add.op, add.is_using_tensor_core, add.is_op_tensor_core_eligible) == ("model/add", False, False)


def test_device_time_is_divided_as_in_the_profile(tmp_path):
    facts = statistics_of(gpu_training(), tmp_path).device
    assert facts.kernels_per_step == 2
    assert facts.idle_share == pytest.approx((18 + 10 + 20) / 100)
    assert facts.to_device_ns_per_step == 12_000
    assert facts.to_device_share == facts.exposed_to_device_share == pytest.approx(0.12)
    assert facts.launch_gap_share == pytest.approx(0.10)
    assert (facts.num_tracings, facts.num_compilations, facts.num_collectives) == (0, 0, 0)


def test_a_copy_behind_computing_is_not_exposed(tmp_path):
    profile = ProfileBuilder()
    profile.host.line("python").event("train", 0, 100, step_num=0, _r=1)
    gpu = profile.plane("/device:GPU:0")
    gpu.line("Stream #1(Compute)").event("gemm", 0, 50, tf_op="a:MatMul", kernel_details="grid:1,1,1")
    gpu.line("Stream #2(MemcpyH2D)").event("MemcpyH2D", 30, 70, memcpy_details="size:4")
    statistics = statistics_of(profile, tmp_path)
    assert statistics.device.to_device_share == pytest.approx(0.4)
    assert statistics.device.exposed_to_device_share == pytest.approx(0.2)
    assert statistics.overview.breakdown.to_device_ns == statistics.overview.breakdown.input_ns == 20_000
    assert statistics.device.idle_share == pytest.approx(0.3)


def test_two_gpus_are_idle_only_together(tmp_path):
    profile = ProfileBuilder()
    profile.host.line("python").event("train", 0, 100, step_num=0, _r=1)
    for number, start in enumerate((0, 40)):
        stream = profile.plane(f"/device:GPU:{number}").line("Stream #1(Compute)")
        stream.event("gemm", start, start + 50, tf_op="a:MatMul", kernel_details="grid:1,1,1")
        stream.event(
            "ncclAllReduceRingKernel", start + 50, start + 55, tf_op="a:NcclAllReduce", kernel_details="grid:1,1,1"
        )
    statistics = statistics_of(profile, tmp_path)
    assert statistics.device.idle_share == pytest.approx(0.05)
    assert statistics.device.kernels_per_step == 1
    assert statistics.device.num_collectives == 2
    assert statistics.overview.breakdown.device_compute_ns == 90_000
    assert statistics.overview.breakdown.device_communication_ns == 5_000
    assert statistics.overview.environment.num_devices == 2


def test_an_op_ran_as_often_as_its_most_frequent_kernel(tmp_path):
    profile = ProfileBuilder()
    stream = profile.plane("/device:GPU:0").line("Stream #1(Compute)")
    for start in (0, 10, 20):
        stream.event("gemm", start, start + 4, tf_op="a/Conv2D:Conv2D", kernel_details="grid:1,1,1")
    stream.event("transpose", 30, 33, tf_op="a/Conv2D:Conv2D", kernel_details="grid:1,1,1")
    idle, op = statistics_of(profile, tmp_path).ops
    assert (op.side, op.type, op.name, op.occurrences) == ("device", "Conv2D", "a/Conv2D", 3)
    assert op.self_ns == 15_000
    assert (idle.type, idle.self_ns) == ("IDLE", 18_000)
    assert op.share == 1
    assert op.share_with_idle == pytest.approx(15 / 33)
