from __future__ import annotations

import re
from pathlib import Path

import pytest

from advisor.model.errors import AdvisorError
from advisor.model.run_folder import default_run_folder, is_saved_run, new_run_folder, write_whole


def make_run(folder: Path) -> Path:
    """What a capture leaves."""
    profile = folder / "plugins/profile/2026_01_01_00_00_00"
    profile.mkdir(parents=True)
    (profile / "vm.xplane.pb").write_bytes(b"")
    (folder / "recording.json").write_text('{"target":"train.py","host":{"hostname":"vm"}}')
    (folder / "report.json").write_text(
        '{\n  "schema_version": 1,\n  "advisor_version": "0.1.0",\n  "target": "train.py"\n}'
    )
    for name in ("host.json", "script.out"):
        (folder / name).write_text("old")
    return folder


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_new_folder_is_made_and_kept(tmp_path):
    with new_run_folder(tmp_path / "a/b", "train") as folder:
        assert folder.is_dir()
    assert folder.is_dir()


def test_default_lies_in_the_users_state_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with new_run_folder(None, "train") as folder, new_run_folder(None, "train") as second:
        assert folder != second
    assert re.fullmatch(r"train-\d{8}-\d{6}", folder.name)
    assert str(default_run_folder("x")).startswith(str(folder.parent))


def test_earlier_run_makes_room(tmp_path):
    with new_run_folder(make_run(tmp_path / "run"), "train") as folder:
        assert files(folder) == set()


@pytest.mark.parametrize("name", ["notes.txt", "plugins/profile/mine/vm.xplane.pb", "plugins/profile/x.txt", ".git"])
def test_a_folder_with_files_of_the_users_is_refused_and_untouched(tmp_path, name):
    run = make_run(tmp_path / "run")
    (run / name).parent.mkdir(parents=True, exist_ok=True)
    (run / name).write_text("mine")
    before = files(run)
    with pytest.raises(AdvisorError, match="do not belong to an earlier run"), new_run_folder(run, "train"):
        pass
    assert files(run) == before


@pytest.mark.parametrize("name", ["recording.json", "report.json", "report.html"])
def test_files_that_only_have_the_names_of_ours_are_refused_and_untouched(tmp_path, name):
    run = make_run(tmp_path / "run")
    (run / name).write_text('{"take": 3, "recorded": "at home"}')
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    with pytest.raises(AdvisorError, match="do not belong to an earlier run"), new_run_folder(run, "train"):
        pass
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before


def test_a_logdir_of_others_is_refused(tmp_path):
    run = make_run(tmp_path / "run")
    (run / "recording.json").unlink()
    with pytest.raises(AdvisorError, match="do not belong to an earlier run"), new_run_folder(run, "train"):
        pass


def test_a_file_is_refused(tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(AdvisorError, match="is a file"), new_run_folder(tmp_path / "file", "train"):
        pass
    with pytest.raises(AdvisorError, match="Cannot write"), new_run_folder(tmp_path / "file/run", "train"):
        pass


@pytest.mark.parametrize("error", [KeyboardInterrupt, AdvisorError])
@pytest.mark.parametrize("was_there", [True, False])
def test_after_an_error_nothing_half_written_is_left(tmp_path, error, was_there):
    run = tmp_path / "run"
    if was_there:
        run.mkdir()
    with pytest.raises(error), new_run_folder(run, "train") as folder:
        (folder / "script.out").write_text("half")
        raise error
    assert run.exists() == was_there
    assert files(tmp_path) == set()


def test_what_is_read_and_what_is_run(tmp_path):
    package = tmp_path / "package"
    package.mkdir()
    assert is_saved_run(package)
    (package / "__main__.py").touch()
    assert not is_saved_run(package)
    assert is_saved_run(make_run(tmp_path / "run"))
    assert is_saved_run(tmp_path / "x.xplane.pb")
    assert is_saved_run(tmp_path / "x.xplane.pb.gz")
    assert not is_saved_run(tmp_path / "x.py")


def test_files_are_written_whole(tmp_path):
    path = tmp_path / "x.json"
    path.write_text("old")
    path.chmod(0o640)
    write_whole(path, b"new")
    assert path.read_text() == "new"
    assert path.stat().st_mode & 0o777 == 0o640
    assert files(tmp_path) == {"x.json"}
    with pytest.raises(AdvisorError, match="Cannot write"):
        write_whole(tmp_path / "absent/x.json", b"")


def test_a_full_disk_is_one_sentence():
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    with pytest.raises(AdvisorError, match="No space left"):
        write_whole(Path("/dev/full"), b"x")
