"""Statistics of several hosts: put together, told apart."""

from __future__ import annotations

from advisor.statistics import add_statistics
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
