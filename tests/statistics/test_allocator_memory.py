"""Allocations: the peak, who holds it, and a timeline that keeps it. Times in microseconds."""

from __future__ import annotations

from tests.profile.made_profile import ProfileBuilder
from tests.statistics.made_profiles import statistics_of


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


def test_use_at_the_peak_includes_what_was_in_use_before(tmp_path):
    """In use: 100 at the start, then 300, 100, 300, 600 (the peak: 200 + 300 + 100 from before), 300."""
    profile = ProfileBuilder()
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
    profile = ProfileBuilder()
    line = profile.host.line("python")
    for number in range(1000):
        memory_event(line, "MemoryAllocation", number, number, 1, 999 if number == 501 else number % 7)
    (memory,) = statistics_of(profile, tmp_path).memory.allocators
    assert len(memory.timeline) == 200
    assert max(point.heap_bytes for point in memory.timeline) == 999
