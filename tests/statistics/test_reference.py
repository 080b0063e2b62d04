"""Figure by figure against what TensorFlow's own tools said about the same profile. docs/statistics.md holds the table."""

from __future__ import annotations

import gzip
import json
from functools import cache

import pytest

from advisor.graph import analyse
from advisor.model.profile_statistics import Statistics
from advisor.profile import find_profiles, read_trace
from advisor.statistics import add_statistics
from advisor.statistics.input_analysis import PREPROCESSING
from advisor.statistics.ops import DEVICE, HOST, IDLE
from tests.statistics.reference import MANY_KERNELS, read_reference

pytestmark = pytest.mark.skipif(not MANY_KERNELS.is_dir(), reason="the shared profiles are not here")

LAYOUT_OP = "gradient_tape/model_1/conv1_conv/Conv2D/Conv2DBackpropFilter-0-TransposeNHWCToNCHW-LayoutOptimizer"
"""TensorFlow 2.4 could not read an op's name with dashes and called the whole text an op of unknown type; later versions can."""


@cache
def statistics() -> Statistics:
    files = find_profiles(MANY_KERNELS)
    analysis = add_statistics(analyse(read_trace(MANY_KERNELS), None, "x"), files.paths)
    assert analysis.statistics is not None
    assert analysis.device is analysis.statistics.device
    return analysis.statistics


def test_step_times_equal_the_reference():
    (step,) = read_reference("input_pipeline.pb", "Input").steps
    theirs = step.value
    overview = statistics().overview
    assert overview is not None
    ours = overview.breakdown
    assert overview.num_steps == 1
    assert overview.step_ns == pytest.approx(theirs.step_time_ms * 1e6, abs=1)
    assert ours.total_ns == pytest.approx(overview.step_ns, abs=8)
    assert ours.other_ns == pytest.approx(theirs.unknown_time_ms * 1e6, abs=1)
    assert ours.kernel_launch_ns == pytest.approx(theirs.host_prepare_ms * 1e6, abs=1)
    assert ours.host_compute_ns == pytest.approx(theirs.host_compute_ms * 1e6, abs=1)
    assert ours.compile_ns == pytest.approx(theirs.host_compile_ms * 1e6, abs=1)
    assert ours.output_ns == pytest.approx(theirs.output_ms * 1e6, abs=1)
    # they take copies (named MemcpyH2D and MemcpyD2D) for computing: their test looks for MemcpyHToD and MemcpyDToD
    assert theirs.host_to_device_ms == theirs.host_wait_input_ms == theirs.device_to_device_ms == 0
    copies = ours.input_ns + ours.device_communication_ns
    assert ours.device_compute_ns + copies == pytest.approx(theirs.device_compute_ms * 1e6, abs=3)
    assert copies == pytest.approx(28_799_059, abs=3)
    assert ours.input_ns == ours.to_device_ns


def test_the_overview_equals_the_reference():
    reference = read_reference("overview_page.pb", "Overview")
    theirs, ours = reference.analysis, statistics().overview
    assert ours is not None
    assert ours.compute_16bit_share == theirs.device_compute_16bit_percent / 100 == 0
    assert ours.compute_32bit_share == theirs.device_compute_32bit_percent / 100 == 1
    assert ours.host_op_share == pytest.approx(theirs.host_tf_op_percent / 100)
    assert ours.device_op_share == pytest.approx(theirs.device_tf_op_percent / 100)
    assert ours.host_eager_share == pytest.approx(theirs.host_op_time_eager_percent / 100)
    assert ours.device_eager_share == pytest.approx(theirs.device_op_time_eager_percent / 100)
    environment = reference.environment
    assert ours.environment.num_hosts == environment.host_count == 1
    assert ours.environment.device_type == environment.device_type == "GPU"
    assert ours.environment.num_devices == environment.device_core_count == 1
    assert ours.environment.compute_capability == "7.0"
    assert len(ours.top_ops) == len(theirs.top_ops) == 10
    for mine, other in zip(ours.top_ops, theirs.top_ops, strict=True):
        assert (mine.name, mine.type) == (other.name, other.category)
        assert mine.share == pytest.approx(other.self_time_fraction)
        assert mine.cumulative_share == pytest.approx(other.cumulative_time_fraction)
        assert bool(mine.is_tensor_core_eligible) == other.is_op_tensorcore_eligible


@pytest.mark.parametrize("table", ["with_idle", "without_idle"])
def test_ops(table):
    ours = {(row.side, row.name): row for row in statistics().ops or ()}
    theirs = getattr(read_reference("tensorflow_stats.pb", "OpStats"), table).records
    assert len(theirs) == {"with_idle": 519, "without_idle": 517}[table]
    different = []
    for other in theirs:
        row = ours.get((other.host_or_device.lower(), other.op_name))
        if row is None:
            different.append(other.op_name)
            continue
        assert (row.type, row.occurrences, row.is_eager) == (other.op_type, other.occurrences, other.is_eager)
        assert row.total_ns == pytest.approx(other.total_time_in_us * 1000, abs=1)
        assert row.self_ns == pytest.approx(other.total_self_time_in_us * 1000, abs=1)
        share = other.device_share if row.side == DEVICE else other.host_share
        assert (row.share_with_idle if table == "with_idle" else row.share) == pytest.approx(share, abs=1e-9)
    assert different == [f"{LAYOUT_OP}:Transpose"]
    layout_op = ours[DEVICE, LAYOUT_OP]
    assert (layout_op.type, layout_op.total_ns) == ("Transpose", 342_010)


def test_cumulative_shares_end_at_the_whole():
    for side in (HOST, DEVICE):
        rows = [row for row in statistics().ops or () if row.side == side]
        assert rows[-1].cumulative_share == pytest.approx(1)
        assert rows[-1].cumulative_share_with_idle == pytest.approx(1)
        assert [row.self_ns for row in rows] == sorted((row.self_ns for row in rows), reverse=True)
        assert sum(row.name == IDLE for row in rows) == 1


def test_op_types_are_the_ops_folded():
    ops, types = statistics().ops or (), statistics().op_types or ()
    for row in types:
        members = [op for op in ops if op.side == row.side and op.type == row.type]
        assert row.num_ops == len(members)
        assert row.occurrences == sum(op.occurrences for op in members)
        assert row.self_ns == pytest.approx(sum(op.self_ns for op in members), abs=len(members))
    assert (types[0].type, types[0].self_ns) == ("Conv2DBackpropFilter", 86_438_262)


def test_kernels_equal_the_reference():
    """TensorFlow 2.4 did not read launch configurations: it folds the runs of one kernel for one op."""
    folded: dict[tuple[str, str], list[int]] = {}
    for row in statistics().kernels or ():
        sums = folded.setdefault((row.name, row.op), [0, 0, row.min_ns, 0])
        sums[0] += row.occurrences
        sums[1] += row.total_ns
        sums[2] = min(sums[2], row.min_ns)
        sums[3] = max(sums[3], row.max_ns)
        assert row.block is not None
        assert row.grid is not None
        assert row.registers_per_thread is not None
        assert row.shared_memory_bytes is not None
    theirs = read_reference("kernel_stats.pb", "Kernels").reports
    assert len(theirs) == 1000, "they keep the 1000 longest; all shorter ones together are 0.14 % of the time"
    different = []
    for other in theirs:
        ours = folded.get((other.name, other.op_name))
        figures = [other.occurrences, other.total_duration_ns, other.min_duration_ns, other.max_duration_ns]
        if ours != figures:
            different.append(other.op_name)
    assert different == [f"{LAYOUT_OP}:Transpose"]
    by_key = {(row.name, row.op): row for row in statistics().kernels or ()}
    for other in theirs:
        if other.op_name not in different:
            row = by_key[other.name, other.op_name]
            assert row.is_using_tensor_core == other.is_kernel_using_tensor_core
            assert row.is_op_tensor_core_eligible == other.is_op_tensor_core_eligible
    first = (statistics().kernels or ())[0]
    assert (first.registers_per_thread, first.shared_memory_bytes) == (96, 3328)
    assert (first.block, first.grid) == ((8, 8, 1), (3, 2, 4096))


def test_input_ops_equal_the_reference():
    reference = read_reference("input_pipeline.pb", "Input")
    ours = statistics().input
    assert ours is not None
    assert len(ours.ops) == len(reference.ops) == 8
    for mine, other in zip(ours.ops, reference.ops, strict=True):
        assert (mine.name, mine.count) == (other.op_name, other.count)
        assert mine.total_ns == pytest.approx(other.time_in_ms * 1e6, abs=1)
        assert mine.total_share == pytest.approx(other.time_in_percent / 100)
        assert mine.self_ns == pytest.approx(other.self_time_in_ms * 1e6, abs=1)
        assert mine.self_share == pytest.approx(other.self_time_in_percent / 100)
        assert mine.category == other.category.lower()
    assert ours.host_time_ns[PREPROCESSING] == pytest.approx(reference.host_time.preprocessing_us * 1000, abs=1)
    assert reference.host_time.enqueue_us == 0, "MemcpyH2D again: 29.9 ms of the host's time"
    assert ours.host_time_ns["enqueuing"] == 29_875_868


def test_memory_equals_the_reference():
    (file,) = MANY_KERNELS.glob("plugins/profile/*/*.memory_profile.json.gz")
    theirs = json.loads(gzip.decompress(file.read_bytes()))["memoryProfilePerAllocator"]
    memory = statistics().memory
    assert memory is not None
    assert [row.allocator for row in memory.allocators] == ["GPU_0_bfc", "gpu_host_bfc"] == list(theirs)
    for ours in memory.allocators:
        summary = theirs[ours.allocator]["profileSummary"]
        peak = summary["peakStats"]
        assert ours.lifetime_peak_bytes == int(summary["peakBytesUsageLifetime"])
        assert ours.capacity_bytes == int(summary["memoryCapacity"])
        assert ours.peak_bytes == int(peak["peakBytesInUse"])
        assert ours.peak_heap_bytes == int(peak["heapAllocatedBytes"])
        assert ours.peak_stack_bytes == int(peak["stackReservedBytes"])
        assert ours.peak_free_bytes == int(peak["freeMemoryBytes"])
        assert ours.peak_fragmentation == pytest.approx(peak["fragmentation"])
        # theirs counts from the line's start, 32,594 ns behind the profile's
        assert ours.peak_time_ns == int(summary["peakStatsTimePs"]) // 1000 + 32_594


def test_memory_at_the_peak():
    (file,) = MANY_KERNELS.glob("plugins/profile/*/*.memory_profile.json.gz")
    theirs = json.loads(gzip.decompress(file.read_bytes()))["memoryProfilePerAllocator"]["GPU_0_bfc"]
    memory = statistics().memory
    assert memory is not None
    ours = memory.allocators[0]
    held: dict[tuple[str, str, str, int], int] = {}
    for allocation in theirs["activeAllocations"]:
        if int(allocation["snapshotIndex"]) >= 0:
            what = theirs["memoryProfileSnapshots"][int(allocation["snapshotIndex"])]["activityMetadata"]
            key = (what["tfOpName"], what["dataType"], what["tensorShape"], int(what["allocationBytes"]))
            held[key] = held.get(key, 0) + int(allocation["numOccurrences"])
    (before,) = theirs["specialAllocations"]
    # two blocks were freed outside of any step: they skip that and, when the addresses are used again, take them off twice
    assert ours.unexplained_bytes - int(before["allocationBytes"]) == 512 + 2048
    folded: dict[tuple[str, str, str, int], int] = {}
    for user in ours.users:
        key = (user.op, user.data_type, user.shape, user.bytes // user.occurrences)
        folded[key] = folded.get(key, 0) + user.occurrences
    assert folded == held
    assert len(ours.users) == len(theirs["activeAllocations"]) - 1 == 185
    assert ours.users[0].bytes == 553_779_200


def test_a_memory_timeline_reaches_the_peak_and_is_short():
    memory = statistics().memory
    assert memory is not None
    for ours in memory.allocators:
        points = [point.heap_bytes + point.stack_bytes for point in ours.timeline]
        assert max(points) == ours.peak_bytes
        assert len(points) <= 200
        assert [point.time_ns for point in ours.timeline] == sorted(point.time_ns for point in ours.timeline)


def test_facts_for_rules_equal_the_reference():
    facts = statistics().device
    assert facts is not None
    assert (facts.device_type, facts.num_devices, facts.compute_capability) == ("GPU", 1, 7.0)
    assert facts.compute_16bit_share == 0
    assert facts.kernels_per_step == 1158
    assert facts.median_kernel_ns == 26_624
    assert facts.tensor_core_used_ns == 0
    assert facts.eligible_off_tensor_core_ns == facts.tensor_core_eligible_ns == 224_468_741
    assert facts.kernel_ns == 363_659_396
    assert facts.launch_gap_share == pytest.approx(5.880756 / 406.0276)
    assert facts.idle_share == pytest.approx(0.0334, abs=1e-4)
    assert facts.to_device_ns_per_step == 28_666_518
    assert facts.other_share == pytest.approx(7.635459 / 406.0276)
    assert facts.memory_peak_share == pytest.approx(13_955_346_688 / 15_469_833_088)
    assert facts.eager_step_share == pytest.approx(0, abs=1e-3)
