"""Which files a path stands for, and one sentence for each that cannot be read."""

from __future__ import annotations

import gzip

import pytest

from advisor.errors import AdvisorError
from advisor.trace import content, read_trace
from tests.trace.made_profile import MadeProfile

RUN = "plugins/profile/2026_11_21_04_53_28"


def made(hostname: str = "worker") -> MadeProfile:
    profile = MadeProfile(hostname)
    profile.host.line().event("Iterator::Root", 0, 1, id=1)
    return profile


@pytest.mark.parametrize("given", ["", "plugins", "plugins/profile", RUN, f"{RUN}/worker.xplane.pb"])
def test_every_level_of_a_run_folder(tmp_path, given):
    made().write(tmp_path / RUN / "worker.xplane.pb")
    assert [host.hostname for host in read_trace(tmp_path / given).hosts] == ["worker"]


def test_logdir_with_a_folder_per_role(tmp_path):
    made().write(tmp_path / "train" / RUN / "worker.xplane.pb")
    assert len(read_trace(tmp_path).hosts) == 1


def test_all_hosts_of_the_newest_run(tmp_path):
    made("old").write(tmp_path / "plugins/profile/2025_01_01_00_00_00/old.xplane.pb")
    made("other").write(tmp_path / "plugins/profile/zz-renamed/other.xplane.pb")
    made("b").write(tmp_path / RUN / "b.xplane.pb")
    made("a").write(tmp_path / RUN / "a.xplane.pb")
    trace = read_trace(tmp_path)
    assert [host.hostname for host in trace.hosts] == ["a", "b"]
    (warning,) = trace.warnings
    assert "3 profiled runs" in warning
    assert "2026_11_21_04_53_28" in warning


def test_host_is_named_by_the_file_where_the_profile_names_none(tmp_path):
    (host,) = read_trace(made("").write(tmp_path / "my.host.xplane.pb")).hosts
    assert host.hostname == "my.host"
    assert host.path == str(tmp_path / "my.host.xplane.pb")


@pytest.mark.parametrize("name", ["worker.xplane.pb.gz", "worker.xplane.pb"])
def test_gzip(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(gzip.compress(made().to_bytes()))
    assert read_trace(path).hosts[0].num_events == 1
    assert read_trace(tmp_path).hosts[0].num_events == 1


def many_events() -> bytes:
    profile = MadeProfile()
    line = profile.host.line()
    for call in range(100):
        line.event("Iterator::Root", call, call + 1, id=1)
    return profile.to_bytes()


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("empty.xplane.pb", b"", "is empty"),
        ("text.xplane.pb", b"Hello, this is no profile at all.\n" * 9, "is no profile"),
        ("trace.json", b'{"traceEvents": []}', "is no profile"),
        ("truncated.xplane.pb", many_events()[:-7], "truncated"),
        ("text_trip.xplane.pb", many_events().decode("utf-8", "replace").encode() + b"\xef\xbf\xbd", "damaged"),
        ("nothing.xplane.pb", b"\x22\x01a", "holds no profile"),
        ("cut.xplane.pb.gz", gzip.compress(many_events())[:-9], "gzip"),
        ("bad.xplane.pb.gz", b"\x1f\x8bnot really gzip", "gzip"),
    ],
)
def test_damaged_files_are_one_sentence(tmp_path, name, content, said):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(AdvisorError) as raised:
        read_trace(path)
    sentence = str(raised.value)
    assert str(path) in sentence
    assert said in sentence
    assert sentence.endswith(".")
    assert "\n" not in sentence


def test_one_damaged_event_is_one_sentence(tmp_path):
    profile = made()
    profile.host.message.lines[0].events.append(b"\x08")
    with pytest.raises(AdvisorError, match="damaged"):
        read_trace(profile.write(tmp_path / "worker.xplane.pb"))


def test_missing_path_and_folder_without_profile(tmp_path):
    with pytest.raises(AdvisorError, match="does not exist"):
        read_trace(tmp_path / "nowhere")
    (tmp_path / "plugins").mkdir()
    with pytest.raises(AdvisorError, match="holds no profile"):
        read_trace(tmp_path)


def test_unreadable_file(tmp_path):
    (tmp_path / "loop.xplane.pb").symlink_to(tmp_path / "loop.xplane.pb")
    with pytest.raises(AdvisorError):
        read_trace(tmp_path / "loop.xplane.pb")


def test_sizes_are_limited(tmp_path, monkeypatch):
    data = many_events()
    (tmp_path / "plain.xplane.pb").write_bytes(data)
    (tmp_path / "bomb.xplane.pb.gz").write_bytes(gzip.compress(data))
    monkeypatch.setattr(content, "MAX_BYTES", len(data) - 1)
    with pytest.raises(AdvisorError, match="larger than 2 GiB"):
        read_trace(tmp_path / "plain.xplane.pb")
    with pytest.raises(AdvisorError, match="unpacks to more than 2 GiB"):
        read_trace(tmp_path / "bomb.xplane.pb.gz")


def test_a_damaged_host_is_a_warning_where_another_can_be_read(tmp_path):
    made("good").write(tmp_path / RUN / "good.xplane.pb")
    (tmp_path / RUN / "bad.xplane.pb").write_bytes(b"no profile at all")
    trace = read_trace(tmp_path)
    assert [host.hostname for host in trace.hosts] == ["good"]
    (warning,) = trace.warnings
    assert "bad.xplane.pb" in warning


def test_a_host_that_stands_there_twice_is_read_once(tmp_path):
    made().write(tmp_path / "worker.xplane.pb")
    (tmp_path / "worker.xplane.pb.gz").write_bytes(gzip.compress(made().to_bytes()))
    (host,) = read_trace(tmp_path).hosts
    assert host.path.endswith(".pb")
