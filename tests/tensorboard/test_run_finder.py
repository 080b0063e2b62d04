"""The runs of a logdir: which are found, under which names, and that nothing outside of it is."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

import advisor.tensorboard.run_finder as run_finder
from advisor.tensorboard.run_finder import RunFinder, find_runs
from tests.tensorboard.logdirs import DATA, broken, foreign, recorded


def names(listing):
    return [run.name for run in listing.runs]


def finder_of(logdir):
    return RunFinder(str(logdir))


def test_runs_of_any_origin_are_found_newest_first(tmp_path):
    recorded("keras_fit", tmp_path)
    foreign(tmp_path, "deep/below/job", hosts=3)
    broken(tmp_path)
    listing = finder_of(tmp_path).listing()
    assert names(listing) == [
        "keras_fit/2026_11_21_05_22_17",
        "broken/2026_03_03_00_00_00",
        "deep/below/job/2026_01_01_00_00_00",
    ]
    assert [run.is_recorded for run in listing.runs] == [True, False, False]
    assert [len(run.files) for run in listing.runs] == [1, 1, 3]
    assert (listing.problem, listing.notes) == ("", ())


def test_a_run_folder_may_itself_be_the_logdir(tmp_path):
    recorded("keras_fit", tmp_path, "run")
    (run,) = finder_of(tmp_path / "run").listing().runs
    assert (run.name, run.is_recorded) == ("2026_11_21_05_22_17", True)


def test_the_recording_belongs_to_the_oldest_profile(tmp_path):
    run = recorded("keras_fit", tmp_path)
    (profile,) = (run / "plugins/profile").iterdir()
    shutil.copytree(profile, profile.with_name("2027_01_01_00_00_00"))
    assert [run.is_recorded for run in finder_of(tmp_path).listing().runs] == [False, True]


def test_a_run_of_the_advisor_without_a_profile_is_listed(tmp_path):
    run = recorded("keras_fit", tmp_path)
    shutil.rmtree(run / "plugins")
    (listed,) = finder_of(tmp_path).listing().runs
    assert (listed.name, listed.files, listed.is_recorded) == ("keras_fit", (), True)


def test_an_absent_and_an_empty_logdir_have_no_runs(tmp_path):
    for logdir in (tmp_path, tmp_path / "absent"):
        finder = finder_of(logdir)
        assert not finder.has_runs()
        assert (finder.listing().runs, finder.listing().problem) == ((), "")


def test_a_profile_that_appears_makes_the_tab_active(tmp_path):
    finder = finder_of(tmp_path)
    assert not finder.has_runs()
    foreign(tmp_path)
    assert finder.has_runs()


@pytest.mark.parametrize(
    "wish", ["", ".", "..", "../outside", "/etc/passwd", "job/2026_01_01_00_00_00", "%2e%2e", "\0", "a" * 10_000]
)
def test_only_ids_of_the_listing_name_a_run(tmp_path, wish):
    foreign(tmp_path / "logs")
    foreign(tmp_path, "outside")
    finder = finder_of(tmp_path / "logs")
    (run,) = finder.listing().runs
    assert finder.run(run.id) == run
    assert finder.run(wish) is None


def test_ids_are_stable_and_known_without_a_listing(tmp_path):
    foreign(tmp_path)
    (run,) = finder_of(tmp_path).listing().runs
    assert finder_of(tmp_path).run(run.id) == run


def test_links_out_of_the_logdir_are_not_followed(tmp_path):
    foreign(tmp_path, "outside")
    logdir = tmp_path / "logs"
    foreign(logdir, "inside")
    (logdir / "linked").symlink_to(tmp_path / "outside")
    (logdir / "other").mkdir()
    (logdir / "other/plugins").symlink_to(tmp_path / "outside/plugins")
    (logdir / "third/plugins").mkdir(parents=True)
    (logdir / "third/plugins/profile").symlink_to(tmp_path / "outside/plugins/profile")
    listing = finder_of(logdir).listing()
    assert names(listing) == ["inside/2026_01_01_00_00_00"]
    (note,) = listing.notes
    assert all(name in note for name in ("linked", "other/plugins", "third/plugins/profile"))


def test_a_profile_that_is_a_link_out_of_the_logdir_is_left_out(tmp_path):
    secret = foreign(tmp_path, "outside") / "host0.xplane.pb"
    run = foreign(tmp_path / "logs", "mixed")
    (run / "host9.xplane.pb").symlink_to(secret)
    alone = tmp_path / "logs/alone/plugins/profile/2026_02_02_00_00_00"
    alone.mkdir(parents=True)
    (alone / "host.xplane.pb").symlink_to(secret)
    listing = finder_of(tmp_path / "logs").listing()
    assert [[path.name for path in run.files] for run in listing.runs] == [["host0.xplane.pb"]]
    assert len(listing.notes) == 1


def test_a_profile_that_is_a_link_inside_the_logdir_is_read(tmp_path):
    store = tmp_path / "store"
    store.mkdir()
    run = foreign(tmp_path)
    (run / "host0.xplane.pb").rename(store / "blob")
    (run / "host0.xplane.pb").symlink_to(store / "blob")
    assert len(finder_of(tmp_path).listing().runs) == 1


def test_a_folder_that_became_a_link_is_no_longer_served(tmp_path):
    outside = foreign(tmp_path, "outside")
    inside = foreign(tmp_path / "logs")
    finder = finder_of(tmp_path / "logs")
    (run,) = finder.listing().runs
    shutil.rmtree(inside)
    inside.symlink_to(outside)
    assert finder.run(run.id) is None


def test_the_logdir_itself_may_be_a_link(tmp_path):
    foreign(tmp_path / "real")
    (tmp_path / "logs").symlink_to(tmp_path / "real")
    assert len(finder_of(tmp_path / "logs").listing().runs) == 1


def test_of_a_packed_and_an_unpacked_profile_of_one_host_one_is_read(tmp_path):
    run = foreign(tmp_path)
    (run / "host0.xplane.pb.gz").write_bytes(b"packed")
    (listed,) = finder_of(tmp_path).listing().runs
    assert [path.name for path in listed.files] == ["host0.xplane.pb"]


def test_pipes_and_folders_are_no_profiles(tmp_path):
    run = tmp_path / "job/plugins/profile/2026_01_01_00_00_00"
    run.mkdir(parents=True)
    os.mkfifo(run / "pipe.xplane.pb")
    (run / "folder.xplane.pb").mkdir()
    assert finder_of(tmp_path).listing().runs == ()


def test_names_of_folders_are_made_printable(tmp_path):
    foreign(tmp_path, "red\x1b[31m")
    foreign(tmp_path, os.fsdecode(b"byte\xff"))
    assert all(run.name.isprintable() for run in finder_of(tmp_path).listing().runs)
    assert len({run.id for run in finder_of(tmp_path).listing().runs}) == 2


def test_the_walk_and_the_listing_are_bounded_and_say_so(tmp_path, monkeypatch):
    for number in range(6):
        foreign(tmp_path, f"job{number}")
    monkeypatch.setattr(run_finder, "MAX_RUNS", 4)
    listing = find_runs(tmp_path)
    assert len(listing.runs) == 4 and "2 older runs" in listing.notes[0]
    monkeypatch.setattr(run_finder, "MAX_FOLDERS", 3)
    listing = find_runs(tmp_path)
    assert len(listing.runs) == 2 and "at most 3 folders" in listing.notes[0]
    monkeypatch.setattr(run_finder, "MAX_FOLDERS", 100)
    monkeypatch.setattr(run_finder, "MAX_DEPTH", 0)
    assert find_runs(tmp_path).runs == ()


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="the superuser can read every folder")
def test_a_folder_without_permission_is_noted(tmp_path):
    foreign(tmp_path)
    locked = tmp_path / "locked"
    locked.mkdir(mode=0)
    listing = finder_of(tmp_path).listing()
    locked.chmod(0o700)
    assert len(listing.runs) == 1 and "locked" in listing.notes[0]


@pytest.mark.parametrize(
    ("logdir", "spec", "says"),
    [
        ("", "a:/tmp/a,b:/tmp/b", "--logdir_spec"),
        ("", "", "without a logdir"),
        ("gs://bucket/logs", "", "gs://bucket/logs"),
    ],
)
def test_what_is_not_one_local_folder_is_declined_with_a_sentence(logdir, spec, says):
    finder = RunFinder(logdir, spec)
    assert says in finder.listing().problem and finder.listing().problem.endswith((".", "`."))
    assert not finder.has_runs()
    assert finder.run("anything") is None


def test_every_recorded_run_of_the_tests_is_found():
    with_profiles = {path.parents[2].name for path in DATA.glob("*/plugins/profile/*")}
    assert {run.folder.parents[2].name for run in find_runs(Path(os.path.realpath(DATA))).runs} == with_profiles
