"""Small profiles made event by event, where every figure can be worked out by hand. Times in microseconds."""

from __future__ import annotations

from advisor.model.pipeline import Analysis, Verdict
from advisor.statistics import add_statistics
from tests.profile.made_profile import ProfileBuilder

NOTHING_KNOWN = Analysis("x", Verdict(False, None, None, None, "unknown", ""))


def statistics_of(profile: ProfileBuilder, tmp_path, name="worker"):
    path = profile.write(tmp_path / f"{name}.xplane.pb")
    analysis = add_statistics(NOTHING_KNOWN, [path])
    assert analysis.warnings == ()
    assert analysis.statistics is not None
    return analysis.statistics


def gpu_training() -> ProfileBuilder:
    """As TensorFlow 2.21 writes it: no groups, no derived lines. Two steps of 100 us."""
    profile = ProfileBuilder()
    python = profile.host.line("python")
    compute = profile.host.line("tf_Compute/1")
    wait = profile.host.line("tf_data_iterator_get_next/1")
    worker = profile.host.line("tf_data_iterator_resource/1")
    gpu = profile.plane("/device:GPU:0")
    gpu.stat(gpu.message.stats, "compute_cap_major", 8)
    gpu.stat(gpu.message.stats, "compute_cap_minor", 0)
    gpu.stat(gpu.message.stats, "memory_size", 40 << 30)
    stream = gpu.line("Stream #1(Compute)")
    copies = gpu.line("Stream #2(MemcpyH2D)")
    for number, zero in enumerate((0, 100)):
        python.event("train", zero, zero + 100, step_num=number, _r=1)
        wait.event("IteratorGetNextOp::DoCompute", zero, zero + 20)
        wait.event("Iterator::Root", zero + 1, zero + 19, id=7)
        worker.event("decode:DecodeJpeg", zero, zero + 90, "DecodeJpeg")
        compute.event("ExecutorState::Process", zero + 15, zero + 40, id=1, _ct=2, _c=3)
        compute.event("cuLaunchKernel", zero + 32, zero + 34, correlation_id=10 + number)
        copies.event("MemcpyH2D", zero + 18, zero + 30, memcpy_details="kind_src:host size:4096", correlation_id=9)
        stream.event(
            "volta_fp16_s884gemm_fp16_128x128",
            zero + 40,
            zero + 70,
            tf_op="model/dense/MatMul:MatMul",
            kernel_details="regs:32 static_shared:100 dynamic_shared:28 grid:2,3,4 block:64,1,1 occ_pct:50",
            correlation_id=10 + number,
        )
        stream.event(
            "add_kernel",
            zero + 65,
            zero + 80,
            tf_op="model/add:AddV2",
            kernel_details="regs:16 static_shared:0 dynamic_shared:0 grid:1,1,1 block:64,1,1",
        )
    return profile
