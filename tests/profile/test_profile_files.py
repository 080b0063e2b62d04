"""Which files a path stands for, and one sentence for each that cannot be read."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from advisor.model.errors import AdvisorError
from advisor.profile import file_content, find_profiles, read_trace
from tests.profile.made_profile import ProfileBuilder

RUN = "plugins/profile/2026_11_21_04_53_28"


def made(hostname: str = "worker") -> ProfileBuilder:
    profile = ProfileBuilder(hostname)
    profile.host.line().event("Iterator::Root", 0, 1, id=1)
    return profile


@pytest.mark.parametrize("given", ["", "plugins", "plugins/profile", RUN, f"{RUN}/worker.xplane.pb"])
def test_a_profile_is_found_from_every_level_of_its_run_folder(tmp_path, given):
    made().write(tmp_path / RUN / "worker.xplane.pb")
    assert [host.hostname for host in read_trace(tmp_path / given).hosts] == ["worker"]


def test_a_profile_is_found_below_a_folder_per_role(tmp_path):
    made().write(tmp_path / "train" / RUN / "worker.xplane.pb")
    assert len(read_trace(tmp_path).hosts) == 1


def test_all_hosts_of_the_newest_run_are_read(tmp_path):
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
def test_gzipped_profiles_are_read_whatever_their_name(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(gzip.compress(made().to_bytes()))
    assert read_trace(path).hosts[0].num_events == 1
    assert read_trace(tmp_path).hosts[0].num_events == 1


def many_events() -> bytes:
    profile = ProfileBuilder()
    line = profile.host.line()
    for call in range(100):
        line.event("Iterator::Root", call, call + 1, id=1)
    return profile.to_bytes()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("empty.xplane.pb", b"", "is empty"),
        ("text.xplane.pb", b"Hello, this is no profile at all.\n" * 9, "is not a profile"),
        ("trace.json", b'{"traceEvents": []}', "is not a profile"),
        ("truncated.xplane.pb", many_events()[:-7], "truncated"),
        ("text_trip.xplane.pb", many_events().decode("utf-8", "replace").encode() + b"\xef\xbf\xbd", "damaged"),
        ("nothing.xplane.pb", b"\x22\x01a", "contains no profile"),
        ("cut.xplane.pb.gz", gzip.compress(many_events())[:-9], "gzip"),
        ("bad.xplane.pb.gz", b"\x1f\x8bnot really gzip", "gzip"),
    ],
)
def test_damaged_files_are_one_sentence(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(AdvisorError) as raised:
        read_trace(path)
    sentence = str(raised.value)
    assert str(path) in sentence
    assert message in sentence
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
    with pytest.raises(AdvisorError, match="contains no profile"):
        read_trace(tmp_path)


def test_an_unreadable_file_is_an_advisor_error(tmp_path):
    (tmp_path / "loop.xplane.pb").symlink_to(tmp_path / "loop.xplane.pb")
    with pytest.raises(AdvisorError):
        read_trace(tmp_path / "loop.xplane.pb")


def test_sizes_are_limited(tmp_path, monkeypatch):
    data = many_events()
    (tmp_path / "plain.xplane.pb").write_bytes(data)
    (tmp_path / "bomb.xplane.pb.gz").write_bytes(gzip.compress(data))
    monkeypatch.setattr(file_content, "MAX_BYTES", len(data) - 1)
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


def test_a_host_that_is_listed_twice_is_read_once(tmp_path):
    made().write(tmp_path / "worker.xplane.pb")
    (tmp_path / "worker.xplane.pb.gz").write_bytes(gzip.compress(made().to_bytes()))
    (host,) = read_trace(tmp_path).hosts
    assert host.path.endswith(".pb")


class TestRunsAndHosts:
    @pytest.fixture
    def logdir(self, tmp_path):
        for role in ("train", "validation"):
            for run in ("2025_01_01_00_00_00", "2026_01_01_00_00_00"):
                for host in ("alpha", "alpine", "beta"):
                    made(f"{host}-{run[:4]}-{role}").write(
                        tmp_path / role / "plugins/profile" / run / f"{host}.xplane.pb"
                    )
        return tmp_path

    def hosts(self, *args):
        return [host.hostname for host in read_trace(*args).hosts]

    def test_all_runs_and_hosts_are_known(self, logdir):
        files = find_profiles(logdir / "train")
        assert files.runs == ("2026_01_01_00_00_00", "2025_01_01_00_00_00")
        assert files.hosts == ("alpha", "alpine", "beta")

    def test_a_run_by_name(self, logdir):
        assert self.hosts(logdir / "train", "2025_01_01_00_00_00", ["beta"]) == ["beta-2025-train"]

    @pytest.mark.parametrize("run", ["2025", "2025_01_01_00_00_00"])
    def test_a_run_by_the_beginning_of_its_name(self, logdir, run):
        assert self.hosts(logdir / "train", run, ["beta"]) == ["beta-2025-train"]

    def test_runs_of_several_roles_are_distinguished(self, logdir):
        files = find_profiles(logdir)
        assert set(files.runs) == {
            f"{role}/{year}_01_01_00_00_00" for role in ("train", "validation") for year in (2025, 2026)
        }
        assert self.hosts(logdir, "validation/2025", ["beta"]) == ["beta-2025-validation"]
        with pytest.raises(AdvisorError, match="more than one run in"):
            find_profiles(logdir, "2025_01_01_00_00_00")

    def test_hosts_by_name_in_the_given_order(self, logdir):
        assert self.hosts(logdir / "train", None, ["beta", "alpha"]) == ["beta-2026-train", "alpha-2026-train"]

    @pytest.mark.parametrize(("host", "message"), [("gamma", "There is no host"), ("alp", "more than one host")])
    def test_a_name_that_matches_none_or_several_lists_the_choices(self, logdir, host, message):
        with pytest.raises(AdvisorError, match=message) as raised:
            find_profiles(logdir / "train", None, [host])
        assert "alpha, alpine" in str(raised.value)

    def test_hundreds_are_not_all_named(self, tmp_path):
        for number in range(40):
            made().write(tmp_path / f"plugins/profile/2026_01_01_00_00_{number:02}/h.xplane.pb")
        with pytest.raises(AdvisorError, match="and 30 more"):
            find_profiles(tmp_path, "1999")

    def test_a_single_file_leaves_no_choice(self, tmp_path):
        path = made().write(tmp_path / "h.xplane.pb")
        with pytest.raises(AdvisorError, match="is one file"):
            find_profiles(path, "2026")

    def test_runs_without_a_time_in_their_name_go_by_their_files(self, tmp_path):
        for name, written in (("zz", 1_000_000), ("aa", 2_000_000)):
            path = made(name).write(tmp_path / f"plugins/profile/{name}/h.xplane.pb")
            os.utime(path, (written, written))
        assert find_profiles(tmp_path).run == "aa"


def test_summaries_of_old_versions_are_distinguished_from_nothing(tmp_path):
    run = tmp_path / "plugins/profile/2020_01_01_00_00_00"
    run.mkdir(parents=True)
    (run / "local.trace.json.gz").write_bytes(b"")
    with pytest.raises(AdvisorError, match=r"before 2\.3"):
        read_trace(tmp_path)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can become somebody else")
@pytest.mark.parametrize("what", ["file", "folder"])
def test_no_permission_is_one_sentence(what):
    """Root may read everything, so the command runs as `nobody`, in a folder that everybody may enter."""
    import shutil
    import subprocess
    import sys
    import tempfile

    folder = Path(tempfile.mkdtemp())
    try:
        path = made().write(folder / "logs" / RUN / "worker.xplane.pb")
        folder.chmod(0o755)
        (path if what == "file" else folder / "logs").chmod(0)
        code = (
            "import sys; from advisor.profile import read_trace; from pathlib import Path\n"
            "from advisor.model.errors import AdvisorError\n"
            f"import os; os.setgid(65534); os.setuid(65534)\n"
            f"try: read_trace(Path({str(folder / 'logs')!r}))\n"
            "except AdvisorError as error: print(error)"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    finally:
        (folder / "logs").chmod(0o755)
        shutil.rmtree(folder)
    assert done.stderr == ""
    assert "cannot be read (Permission denied)." in done.stdout
