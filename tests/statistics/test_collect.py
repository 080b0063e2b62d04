"""Statistics of several hosts: put together, told apart."""

from __future__ import annotations

from advisor.model.profile_statistics import AllocatorMemory, OutlierStep
from advisor.statistics import add_statistics
from advisor.statistics import collect as statistics_collect
from advisor.statistics.collect import Collected, collect
from tests.profile.made_profile import ProfileBuilder
from tests.statistics.made_profiles import NOTHING_KNOWN, gpu_training


def two_hosts(tmp_path, names=("a", "b")):
    return [
        replace_host(gpu_training(), name).write(tmp_path / f"file{number}.xplane.pb")
        for number, name in enumerate(names)
    ]


def replace_host(profile: ProfileBuilder, name: str) -> ProfileBuilder:
    profile.message.hostnames[0] = name.encode()
    return profile


def test_steps_and_ops_of_several_hosts_are_joined(tmp_path):
    paths = []
    for number, length in enumerate((100, 300)):
        profile = ProfileBuilder(f"worker{number}")
        line = profile.host.line("python")
        for step in range(4):
            line.event("train", step * length, (step + 1) * length, step_num=step, _r=1)
            line.event("x:MatMul", step * length, step * length + 50, "MatMul")
        paths.append(profile.write(tmp_path / f"{number}.xplane.pb"))
    statistics = add_statistics(NOTHING_KNOWN, paths).statistics
    assert [(host.host, host.num_steps, host.mean_ns) for host in statistics.hosts] == [
        ("worker0", 4, 100_000),
        ("worker1", 4, 300_000),
    ]
    assert statistics.overview.step_ns == 200_000
    assert statistics.overview.environment.num_hosts == 2
    assert statistics.ops[0].occurrences + statistics.ops[1].occurrences == 8


def test_hosts_of_one_name_go_by_their_files(tmp_path):
    named = add_statistics(NOTHING_KNOWN, two_hosts(tmp_path / "x")).statistics
    alike = add_statistics(NOTHING_KNOWN, two_hosts(tmp_path / "y", ("a", "a"))).statistics
    assert named.overview.environment.hosts == ("a", "b")
    assert [host.host for host in named.hosts] == ["a", "b"]
    assert [host.host for host in alike.hosts] == ["file0", "file1"]


def test_a_damaged_host_is_left_out(tmp_path):
    good, bad = two_hosts(tmp_path)
    bad.write_bytes(b"no profile")
    assert add_statistics(NOTHING_KNOWN, [bad, good]).statistics.overview.environment.hosts == ("a",)


def test_equal_devices_of_many_hosts_are_one_group(tmp_path):
    paths = two_hosts(tmp_path)
    collected = collect(paths, None)
    (group,) = collected.devices
    assert (group.kind, group.number, group.num_events) == (
        "GPU",
        2,
        2 * collect(paths[:1], None).devices[0].num_events,
    )
    assert add_statistics(NOTHING_KNOWN, paths).statistics.overview.environment.num_devices == 2


def test_of_many_allocators_and_outliers_the_largest_are_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(statistics_collect, "MAX_ALLOCATORS", 2)
    monkeypatch.setattr(statistics_collect, "MAX_OUTLIERS", 3)
    collected = Collected()
    for number in range(4):
        part = Collected()
        part.memory = [allocator(f"GPU_{number}_bfc", peak=100 * number), allocator(f"cpu {number}", peak=10_000)]
        part.num_memory, part.memory_peak_share = 2, number / 10
        part.outliers = [OutlierStep("x", number, length, ()) for length in (10 * number, number)]
        collected.merge(part)
    assert [memory.allocator for memory in collected.memory] == ["GPU_3_bfc", "GPU_2_bfc"]
    assert (collected.num_memory, collected.memory_peak_share) == (8, 0.3)
    assert [step.duration_ns for step in collected.outliers] == [30, 20, 10]


def allocator(name: str, peak: int) -> AllocatorMemory:
    return AllocatorMemory("x", name, 1, 0, peak, 0, peak, 0, 0, None, peak, peak)
