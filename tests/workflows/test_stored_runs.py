"""Old run folders make room for new ones, and nothing else is ever deleted."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

import advisor
from advisor.cli import main
from advisor.model.run_folder import MARKER, new_run_folder, runs_folder
from advisor.model.settings import Settings, load_settings
from advisor.rewrite.apply.undo import undo
from advisor.rewrite.apply.write import write_patch
from advisor.rewrite.patch import Patch
from advisor.workflows.stored_runs import delete, excess, prune, stored_runs

DAY = 86400
DEAD = 2**22 + 1
"""More than any process id of Linux."""


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)


def make(name, age_days=0.0, size=1000, out=None):
    with new_run_folder(out, name) as folder:
        (folder / "recording.json").write_text(
            json.dumps({"target": f"{name}.py --epochs 3", "host": {"hostname": "vm"}}, separators=(",", ":"))
        )
        (folder / "script.out").write_bytes(bytes(size))
        profile = folder / "plugins/profile/2026_01_01_00_00_00/vm.xplane.pb"
        profile.parent.mkdir(parents=True)
        profile.write_bytes(b"")
    if (folder / MARKER).exists():
        (folder / MARKER).write_text(f"{DEAD} made this folder.")
    made = (folder / "recording.json").stat().st_mtime - age_days * DAY
    os.utime(folder / "recording.json", (made, made))
    return folder


def names(runs):
    return [re.sub(r"-\d{8}-\d{6}(-\d+)?$", "", run.path.name) for run in runs]


def test_runs_are_listed_the_newest_first(capsys):
    make("old", age_days=3)
    make("new", size=5000)
    (runs_folder() / "something-else").mkdir()
    runs = stored_runs()
    assert names(runs) == ["new", "old"]
    assert runs[0].target == "new.py --epochs 3"
    assert runs[0].size_bytes > 5000
    assert main(["runs"]) == 0
    out = capsys.readouterr().out
    assert out.index("new.py") < out.index("old.py")
    assert "3 d" in out


def test_no_runs_is_one_line(capsys):
    assert main(["runs"]) == 0
    assert capsys.readouterr().out.startswith("There are no runs in ")


@pytest.mark.parametrize(
    ("limits", "gone"),
    [
        ({"keep": 2}, ["c", "d"]),
        ({"keep_bytes": 2.5e6}, ["c", "d"]),
        ({"older_than_s": 2.5 * DAY}, ["d"]),
        ({"keep": 1}, ["b", "c", "d"]),
        ({"keep_bytes": 1}, ["b", "c", "d"]),  # the newest stays whatever it holds
        ({"keep": 20, "keep_bytes": 1e9, "older_than_s": 30 * DAY}, []),
    ],
)
def test_what_is_beyond_a_limit_goes_the_oldest_first(limits, gone):
    for age, name in enumerate("abcd"):
        make(name, age_days=age, size=1_000_000)
    chosen = excess(stored_runs(), **limits)
    assert names(chosen) == gone
    assert names(delete(chosen)) == gone
    assert names(stored_runs()) == [name for name in "abcd" if name not in gone]
    assert {path.name for path in runs_folder().iterdir()} == {run.path.name for run in stored_runs()}


def test_only_what_was_made_by_default_and_is_wholly_ours_is_deleted(tmp_path):
    make("new")
    kept = {
        "not marked": make("x", 9, out=runs_folder() / "mine"),
        "holds other files": make("noted", 9),
        "in use": make("running", 9),
    }
    (kept["holds other files"] / "notes.txt").write_text("mine")
    (kept["in use"] / MARKER).write_text(f"{os.getppid()} made this folder.")
    pinned = make("pinned", 9)
    (pinned / MARKER).unlink()
    elsewhere = make("train", 9, out=tmp_path / "elsewhere")
    linked = runs_folder() / "linked-20260101-000000"
    linked.symlink_to(elsewhere)
    plain = runs_folder() / "plain-20260101-000000"
    plain.mkdir()
    (plain / "data.txt").write_text("mine")
    make("doomed", 9)
    reasons = {run.path: run.kept_because for run in stored_runs() if run.kept_because}
    assert reasons == {**{path: reason for reason, path in kept.items()}, pinned: "not marked"}
    assert names(prune(keep=1)) == ["doomed"]
    for folder in (*kept.values(), pinned, elsewhere, linked, plain):
        assert folder.is_dir()
    assert (elsewhere / "recording.json").exists()
    assert delete([run for run in stored_runs() if run.kept_because]) == []


def test_a_default_run_that_is_named_by_out_later_is_nobody_elses_to_delete():
    folder = make("old", age_days=9)
    with new_run_folder(folder, "old") as again:
        (again / "recording.json").write_text("{}")
    os.utime(folder / "recording.json", (1, 1))
    make("new")
    assert prune(keep=1) == []
    assert folder.is_dir()


def test_a_run_whose_change_can_be_undone_is_kept_until_it_is(tmp_path):
    script = tmp_path / "train.py"
    script.write_bytes(b"old")
    folder = make("fixed", age_days=9)
    write_patch(Patch({script: (b"old", b"new")}), folder)
    make("new")
    assert prune(keep=1) == []
    undo(script)
    assert script.read_bytes() == b"old"
    assert names(prune(keep=1)) == ["fixed"]


def test_prune_command_says_what_it_does(capsys):
    for age, name in enumerate("abc"):
        make(name, age_days=age * 5)
    assert main(["runs", "prune", "--older-than", "7d", "--dry-run"]) == 0
    assert "Would delete 1 old run" in capsys.readouterr().out
    assert names(stored_runs()) == ["a", "b", "c"]
    assert main(["runs", "prune", "--older-than", "7d"]) == 0
    assert "Deleted 1 old run" in capsys.readouterr().out
    assert names(stored_runs()) == ["a", "b"]
    assert main(["runs", "prune", "--keep", "1"]) == 0
    assert names(stored_runs()) == ["a"]
    assert main(["runs", "prune", "--older-than", "soon"]) == 2
    assert "'soon' is not an age" in capsys.readouterr().err


def test_limits_are_settings(tmp_path):
    assert (Settings().keep_runs, Settings().keep_runs_bytes) == (20, 2 << 30)
    for text, expected in (
        ("keep-runs = 3\nkeep-runs-gib = 0.5", (3, 1 << 29)),
        ("keep-runs = false", (None, 2 << 30)),
    ):
        (tmp_path / "pyproject.toml").write_text(f"[tool.advisor]\n{text}\n")
        settings = load_settings(tmp_path)
        assert (settings.keep_runs, settings.keep_runs_bytes) == expected
    make("a")
    make("b", age_days=9)
    assert prune(None, 1) == []


def test_a_new_run_makes_room(tmp_path, capsys):
    (tmp_path / "pyproject.toml").write_text("[tool.advisor]\nkeep-runs = 2\n")
    script = tmp_path / "train.py"
    script.write_text("print('no pipeline')\n")
    for age in (1, 2, 3):
        make("old", age_days=age)
    assert main(["analyze", str(script)]) == 0
    assert "Deleted 2 old runs" in capsys.readouterr().err
    assert names(stored_runs()) == ["train", "old"]
    assert main(["analyze", "--out", str(Path("out")), str(script)]) == 0
    assert names(stored_runs()) == ["train", "old"]


@pytest.mark.long
def test_the_python_api_makes_room_too(tmp_path):
    (tmp_path / "pyproject.toml").write_text("[tool.advisor]\nkeep-runs = 2\n")
    script = tmp_path / "train.py"
    script.write_text("print('no pipeline')\n")
    for age in (1, 2, 3):
        make("old", age_days=age)
    advisor.analyze(script)
    assert names(stored_runs()) == ["train", "old"]
