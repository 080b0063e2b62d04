"""Small profiles made event by event, where every figure can be worked out by hand. Times in microseconds."""

from __future__ import annotations

import pytest

from advisor.model.pipeline import Analysis, Verdict
from advisor.report.statistics_json import statistics_to_dict
from advisor.statistics import add_statistics, processes
from advisor.trace.xspace import message_class
from tests.statistics.test_json import validator
from tests.trace.made_profile import MadeProfile

NOTHING_KNOWN = Analysis("x", Verdict(False, None, None, None, "unknown", ""))


def statistics_of(profile: MadeProfile, tmp_path, name="worker"):
    path = profile.write(tmp_path / f"{name}.xplane.pb")
    analysis = add_statistics(NOTHING_KNOWN, [path])
    assert analysis.warnings == ()
    assert analysis.statistics is not None
    return analysis.statistics


def gpu_training() -> MadeProfile:
    """As TensorFlow 2.21 writes it: no groups, no derived lines. Two steps of 100 us."""
    profile = MadeProfile()
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


def test_a_gpu_step_adds_up(tmp_path):
    found = statistics_of(gpu_training(), tmp_path)
    overview = found.overview
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
    found = statistics_of(gpu_training(), tmp_path)
    assert found.overview.compute_16bit_share == pytest.approx(30 / 40), "65 to 70 counts once, as 16 bit"
    assert found.device.compute_capability == 8.0
    assert found.device.tensor_core_eligible_ns == found.device.tensor_core_used_ns == 60_000
    assert found.device.eligible_off_tensor_core_ns == 0
    gemm, add = found.kernels
    assert (gemm.occurrences, gemm.total_ns, gemm.min_ns, gemm.max_ns) == (2, 60_000, 30_000, 30_000)
    assert (gemm.registers_per_thread, gemm.shared_memory_bytes) == (32, 128)
    assert (gemm.block, gemm.grid, gemm.occupancy_share) == ((64, 1, 1), (2, 3, 4), 0.5)
    assert (gemm.op, gemm.is_using_tensor_core, gemm.is_op_tensor_core_eligible) == ("model/dense/MatMul", True, True)
    assert (add.op, add.is_using_tensor_core, add.is_op_tensor_core_eligible) == ("model/add", False, False)


def test_device_time(tmp_path):
    facts = statistics_of(gpu_training(), tmp_path).device
    assert facts.kernels_per_step == 2
    assert facts.idle_share == pytest.approx((18 + 10 + 20) / 100)
    assert facts.to_device_ns_per_step == 12_000
    assert facts.to_device_share == facts.exposed_to_device_share == pytest.approx(0.12)
    assert facts.launch_gap_share == pytest.approx(0.10)
    assert (facts.num_tracings, facts.num_compilations, facts.num_collectives) == (0, 0, 0)


def test_a_copy_behind_computing_is_not_exposed(tmp_path):
    profile = MadeProfile()
    profile.host.line("python").event("train", 0, 100, step_num=0, _r=1)
    gpu = profile.plane("/device:GPU:0")
    gpu.line("Stream #1(Compute)").event("gemm", 0, 50, tf_op="a:MatMul", kernel_details="grid:1,1,1")
    gpu.line("Stream #2(MemcpyH2D)").event("MemcpyH2D", 30, 70, memcpy_details="size:4")
    found = statistics_of(profile, tmp_path)
    assert found.device.to_device_share == pytest.approx(0.4)
    assert found.device.exposed_to_device_share == pytest.approx(0.2)
    assert found.overview.breakdown.to_device_ns == found.overview.breakdown.input_ns == 20_000
    assert found.device.idle_share == pytest.approx(0.3)


def test_two_gpus_are_idle_only_together(tmp_path):
    profile = MadeProfile()
    profile.host.line("python").event("train", 0, 100, step_num=0, _r=1)
    for number, start in enumerate((0, 40)):
        stream = profile.plane(f"/device:GPU:{number}").line("Stream #1(Compute)")
        stream.event("gemm", start, start + 50, tf_op="a:MatMul", kernel_details="grid:1,1,1")
        stream.event(
            "ncclAllReduceRingKernel", start + 50, start + 55, tf_op="a:NcclAllReduce", kernel_details="grid:1,1,1"
        )
    found = statistics_of(profile, tmp_path)
    assert found.device.idle_share == pytest.approx(0.05)
    assert found.device.kernels_per_step == 1
    assert found.device.num_collectives == 2
    assert found.overview.breakdown.device_compute_ns == 90_000
    assert found.overview.breakdown.device_communication_ns == 5_000
    assert found.overview.environment.num_devices == 2


def test_an_op_ran_as_often_as_its_most_frequent_kernel(tmp_path):
    profile = MadeProfile()
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


def test_host_ops_and_iterators_nest(tmp_path):
    profile = MadeProfile()
    line = profile.host.line("tf_Compute/1")
    line.event("a:Outer", 0, 10, "Outer")
    line.event("Iterator::Root", 1, 9, id=1)
    line.event("Iterator::Root::BatchV2", 2, 6, id=2, parent_id=1)
    line.event("not an op", 3, 5)
    rows = {row.name: row for row in statistics_of(profile, tmp_path).ops}
    assert rows["a"].self_ns == 2_000
    assert rows["Iterator::Root"].self_ns == 4_000
    assert rows["Iterator::Root::BatchV2"].self_ns == 4_000
    assert rows["IDLE"].self_ns == 0
    assert "not an op" not in rows


def test_top_ops_of_a_host_are_no_iterators(tmp_path):
    profile = MadeProfile()
    line = profile.host.line("python")
    line.event("Iterator::Root", 0, 90, id=1)
    line.event("a:MatMul", 100, 130, "MatMul")
    line.event("b:Add", 130, 140, "Add")
    top = statistics_of(profile, tmp_path).overview.top_ops
    assert [(op.name, op.side, op.share, op.cumulative_share) for op in top] == [
        ("a", "host", 0.75, 0.75),
        ("b", "host", 0.25, 1.0),
    ]


def test_an_eager_op_is_counted_once(tmp_path):
    """TensorFlow 2.21 shows the dispatch alone, 2.4 the op inside it too; a compiled function's call is no eager op."""
    profile = MadeProfile()
    line = profile.host.line("python")
    line.event("EagerLocalExecute: Relu", 0, 10)
    line.event("EagerKernelExecute", 1, 9)
    line.event("EagerLocalExecute: Mul", 20, 30)
    line.event("EagerKernelExecute", 21, 29)
    line.event("Mul:Mul", 22, 28, "Mul")
    line.event("EagerLocalExecute: __inference_step_1", 40, 60)
    line.event("EagerKernelExecute", 41, 59)
    line.event("__inference_step_1:__inference_step_1", 42, 58, "__inference_step_1")
    line.event("EagerLocalExecute: IteratorGetNext", 70, 74)
    profile.host.line("tf_Compute/1").event("Mul:Mul", 0, 14, "Mul")
    found = statistics_of(profile, tmp_path)
    rows = {row.name: row for row in found.ops}
    assert {name for name, row in rows.items() if row.is_eager} == {"Relu", "Mul"}
    assert (rows["Relu"].self_ns, rows["Mul"].self_ns, rows["Mul"].occurrences) == (10_000, 20_000, 2)
    assert found.device.host_eager_share == pytest.approx(16 / (16 + 16 + 4 + 14)), "Mul in a function is not eager"


def test_tracing_and_compilation(tmp_path):
    profile = MadeProfile()
    line = profile.host.line("python")
    for start in (0, 100):
        line.event("step", start, start + 60, tf_function_call="traced-xla")
        line.event("tf.function-graph_building", start + 1, start + 20)
        line.event("GpuCompiler::RunHloPasses", start + 25, start + 30)
        line.event("GpuCompiler::RunBackend", start + 30, start + 50)
    line.event("step", 200, 210, tf_function_call="notTraced-xla")
    profile.host.line("codegen").event("LlvmCompiler::Compile", 35, 45)
    found = statistics_of(profile, tmp_path)
    facts = found.device
    assert (facts.num_tracings, facts.num_compilations) == (2, 2)
    assert facts.compile_ns == 2 * (19 + 25) * 1000
    assert facts.compiled_names == ("step",)
    assert found.hosts[0].source == "function"
    assert found.overview.num_steps == 3
    assert found.overview.breakdown.compile_ns == pytest.approx(2 * 44_000 / 3, abs=1)


def test_a_loop_inside_a_function_waits_for_the_scans_input(tmp_path):
    """AutoGraph makes a Scan of the loop: its own call contains the loop's body, which is no waiting."""
    profile = MadeProfile()
    caller, worker = profile.host.line("tf_data_reduce_dataset/1"), profile.host.line("tf_data_prefetch/1")
    for start in (0, 100, 200):
        caller.event("ReduceIterator::Root", start, start + 99, id=1)
        worker.event("ReduceIterator::Root::Prefetch::Scan", start, start + 98, id=2, parent_id=1)
        worker.event("ReduceIterator::Root::Prefetch::Scan::MapAndBatch", start + 1, start + 31, id=3, parent_id=2)
    found = statistics_of(profile, tmp_path)
    assert found.hosts[0].source == "iterator"
    assert found.overview.num_steps == 2
    assert found.input.input_share == pytest.approx(0.3)
    assert found.device.other_share == pytest.approx(0.7)


def test_an_outlier_names_what_ran(tmp_path):
    profile = MadeProfile()
    line = profile.host.line("python")
    start = 0
    for number in range(30):
        length = 500 if number == 17 else 100
        line.event("train", start, start + length, step_num=number, _r=1)
        line.event("train_op:MatMul", start + 1, start + 90, "MatMul")
        if number == 17:
            line.event("save/SaveV2:SaveV2", start + 95, start + 490, "SaveV2")
        start += length
    (outlier,) = statistics_of(profile, tmp_path).device.outliers
    assert (outlier.number, outlier.duration_ns) == (17, 500_000)
    assert outlier.ran_then == ("save/SaveV2:SaveV2",)
    assert outlier.slower_then == ()


def test_an_outlier_tells_what_only_took_longer(tmp_path):
    profile = MadeProfile()
    line = profile.host.line("python")
    start = 0
    for number in range(30):
        length = 300 if number == 9 else 100
        line.event("train", start, start + length, step_num=number, _r=1)
        line.event("ExecutorState::Process", start, start + length - 5)
        line.event("train_op:MatMul", start + 1, start + length - 10, "MatMul")
        start += length
    (outlier,) = statistics_of(profile, tmp_path).device.outliers
    assert (outlier.ran_then, outlier.slower_then) == ((), ("train_op:MatMul",))


def test_even_steps_have_no_outliers(tmp_path):
    profile = MadeProfile()
    line = profile.host.line("python")
    for number in range(30):
        line.event("train", number * 100, number * 100 + 90 + number % 3, step_num=number, _r=1)
    assert statistics_of(profile, tmp_path).device.outliers == ()


def memory_event(line, name, time, address, size, in_use, **stats):
    line.event(
        name,
        time,
        time,
        allocator_name="GPU_0_bfc",
        bytes_reserved=8,
        bytes_allocated=in_use,
        bytes_available=1000 - in_use,
        fragmentation=0.25,
        peak_bytes_in_use=900,
        allocation_bytes=size,
        requested_bytes=size - 1,
        addr=address,
        **stats,
    )


def test_memory(tmp_path):
    """In use: 100 at the start, then 300, 100, 300, 600 (the peak: 200 + 300 + 100 from before), 300."""
    profile = MadeProfile()
    one, other = profile.host.line("tf_Compute/1"), profile.host.line("tf_Compute/2")
    memory_event(
        one, "MemoryAllocation", 1, 2**63 + 1, 200, 300, tf_op="a", region_type="output", data_type=19, shape="[10]"
    )
    memory_event(other, "MemoryDeallocation", 2, 2**63 + 1, 200, 100)
    memory_event(
        one, "MemoryAllocation", 3, 2**63 + 1, 200, 300, tf_op="b", region_type="temp", data_type=1, shape="[5]"
    )
    memory_event(other, "MemoryAllocation", 4, 77, 300, 600, tf_op="c", region_type="output", data_type=1, shape="[9]")
    memory_event(one, "MemoryDeallocation", 5, 77, 300, 300)
    (memory,) = statistics_of(profile, tmp_path).memory.allocators
    assert (memory.num_allocations, memory.num_deallocations) == (3, 2)
    assert (memory.peak_bytes, memory.peak_time_ns) == (608, 4_000)
    assert (memory.peak_heap_bytes, memory.peak_stack_bytes, memory.peak_free_bytes) == (600, 8, 400)
    assert (memory.lifetime_peak_bytes, memory.capacity_bytes) == (900, 1008)
    assert [(user.op, user.bytes, user.data_type) for user in memory.users] == [
        ("c", 300, "float"),
        ("b", 200, "float"),
    ]
    assert memory.unexplained_bytes == 100
    assert [point.heap_bytes for point in memory.timeline] == [300, 100, 300, 600, 300]


def test_a_long_memory_timeline_keeps_its_peak(tmp_path):
    profile = MadeProfile()
    line = profile.host.line("python")
    for number in range(1000):
        memory_event(line, "MemoryAllocation", number, number, 1, 999 if number == 501 else number % 7)
    (memory,) = statistics_of(profile, tmp_path).memory.allocators
    assert len(memory.timeline) == 200
    assert max(point.heap_bytes for point in memory.timeline) == 999


def test_several_hosts(tmp_path):
    paths = []
    for number, length in enumerate((100, 300)):
        profile = MadeProfile(f"worker{number}")
        line = profile.host.line("python")
        for step in range(4):
            line.event("train", step * length, (step + 1) * length, step_num=step, _r=1)
            line.event("x:MatMul", step * length, step * length + 50, "MatMul")
        paths.append(profile.write(tmp_path / f"{number}.xplane.pb"))
    found = add_statistics(NOTHING_KNOWN, paths).statistics
    assert [(host.host, host.num_steps, host.mean_ns) for host in found.hosts] == [
        ("worker0", 4, 100_000),
        ("worker1", 4, 300_000),
    ]
    assert found.overview.step_ns == 200_000
    assert found.overview.environment.num_hosts == 2
    assert found.ops[0].occurrences + found.ops[1].occurrences == 8


def two_hosts(tmp_path, names=("a", "b")):
    return [
        replace_host(gpu_training(), name).write(tmp_path / f"file{number}.xplane.pb")
        for number, name in enumerate(names)
    ]


def replace_host(profile: MadeProfile, name: str) -> MadeProfile:
    profile.message.hostnames[0] = name.encode()
    return profile


def test_hosts_of_one_name_go_by_their_files(tmp_path):
    named = add_statistics(NOTHING_KNOWN, two_hosts(tmp_path / "x")).statistics
    alike = add_statistics(NOTHING_KNOWN, two_hosts(tmp_path / "y", ("a", "a"))).statistics
    assert named.overview.environment.hosts == ("a", "b")
    assert [host.host for host in named.hosts] == ["a", "b"]
    assert [host.host for host in alike.hosts] == ["file0", "file1"]


def test_processes_find_what_one_process_finds(tmp_path, monkeypatch):
    paths = two_hosts(tmp_path)
    here = add_statistics(NOTHING_KNOWN, paths).statistics
    monkeypatch.setattr(processes, "MIN_BYTES", 0)
    monkeypatch.setattr(processes, "_cores", lambda: 2)
    assert add_statistics(NOTHING_KNOWN, paths).statistics == here


def test_a_damaged_host_is_left_out(tmp_path):
    good, bad = two_hosts(tmp_path)
    bad.write_bytes(b"no profile")
    assert add_statistics(NOTHING_KNOWN, [bad, good]).statistics.overview.environment.hosts == ("a",)


def test_a_profile_without_events_has_no_figures(tmp_path):
    profile = MadeProfile()
    profile.host.line("python")
    path = profile.write(tmp_path / "a.xplane.pb")
    assert add_statistics(NOTHING_KNOWN, [path]).statistics is None


def test_missing_sections_say_what_would_fill_them(tmp_path):
    profile = MadeProfile()
    profile.host.line("python").event("something", 0, 1)
    missing = statistics_of(profile, tmp_path).missing
    assert set(missing) == {"overview", "input", "ops", "op_types", "kernels", "memory", "hosts"}
    assert all(text.endswith(".") for text in missing.values())


@pytest.mark.parametrize("offset_ps", [-(2**63), -1, 2**62, 2**63 - 1])
@pytest.mark.parametrize("timestamp_ns", [-(2**63), -1, 0, 2**62, 2**63 - 1])
def test_times_that_no_clock_shows_give_a_valid_report(tmp_path, offset_ps, timestamp_ns):
    profile = MadeProfile()
    for line in (
        profile.host.line("python"),
        profile.plane("/device:GPU:0").line("Stream #1", timestamp_ns=timestamp_ns),
    ):
        for length in (5, 2**62, -3):
            line.event("a:B", 0, 1, "B", tf_op="a:B", kernel_details="regs:x grid:1,-1,9999999999999999999")
            event = message_class("XEvent").FromString(line.message.events[-1])
            event.offset_ps, event.duration_ps = offset_ps, length
            line.message.events[-1] = event.SerializeToString()
    validator().validate(statistics_to_dict(statistics_of(profile, tmp_path)))
