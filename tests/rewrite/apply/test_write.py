"""The user's files are untouched or wholly changed, whatever happens; undoing gives every byte back."""

from __future__ import annotations

import os
import stat

import pytest

from advisor.model.errors import AdvisorError
from advisor.rewrite.apply import backup_index
from advisor.rewrite.apply.undo import undo
from advisor.rewrite.apply.write import write_patch
from advisor.rewrite.patch import Patch
from tests.rewrite.changed_files import AFTER, BEFORE, names_in, patch_of


def test_write_and_undo_give_the_same_bytes(script, run_folder):
    assert write_patch(patch_of(script), run_folder) == (script,)
    assert script.read_bytes() == AFTER
    assert undo(run_folder) == (script,)
    assert script.read_bytes() == BEFORE
    with pytest.raises(AdvisorError, match="has been undone already"):
        undo(run_folder)
    assert names_in(script.parent) == {"train.py"}


def test_undo_by_the_scripts_name_takes_the_last_change_first(script, run_folder, tmp_path):
    second, third = tmp_path / "second", b"third"
    write_patch(patch_of(script), run_folder)
    write_patch(Patch({script: (AFTER, third)}), second)
    with pytest.raises(AdvisorError, match="has changed since"):
        undo(run_folder)
    undo(script)
    assert script.read_bytes() == AFTER
    undo(script)
    assert script.read_bytes() == BEFORE
    with pytest.raises(AdvisorError, match="Nothing to undo"):
        undo(script)


def test_a_script_whose_module_was_changed_is_undone_by_its_own_name(script, run_folder):
    module = script.with_name("data.py")
    module.write_bytes(BEFORE)
    write_patch(patch_of(module), run_folder, script)
    undo(script)
    assert module.read_bytes() == BEFORE


def test_permissions_and_a_link_to_the_script_stay(script, run_folder, tmp_path):
    script.chmod(0o754)
    os.utime(script, (1, 1))
    link = tmp_path / "link.py"
    link.symlink_to(script)
    write_patch(patch_of(link.resolve()), run_folder, link)
    assert link.is_symlink()
    assert link.read_bytes() == AFTER
    assert stat.S_IMODE(script.stat().st_mode) == 0o754
    assert script.stat().st_mtime > 1  # or Python would not compile it again
    undo(link)
    assert (script.read_bytes(), stat.S_IMODE(script.stat().st_mode)) == (BEFORE, 0o754)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_the_owner_stays(script, run_folder):
    os.chown(script, 1234, 1234)
    write_patch(patch_of(script), run_folder)
    assert (script.stat().st_uid, script.stat().st_gid) == (1234, 1234)


def test_a_file_with_hard_links_is_left_alone(script, run_folder):
    script.with_name("copy.py").hardlink_to(script)
    with pytest.raises(AdvisorError, match="2 hard links"):
        write_patch(patch_of(script), run_folder)
    assert script.read_bytes() == BEFORE


@pytest.mark.parametrize("number", [0, 1])
def test_a_file_edited_meanwhile_keeps_the_edit_and_no_other_is_changed(script, run_folder, number):
    module = script.with_name("data.py")
    module.write_bytes(BEFORE)
    edited, other = [(script, module), (module, script)][number]
    edited.write_bytes(b"mine")
    with pytest.raises(AdvisorError, match="has changed since it was measured"):
        write_patch(patch_of(script, module), run_folder)
    assert (edited.read_bytes(), other.read_bytes()) == (b"mine", BEFORE)
    assert not (run_folder / "source").exists()


def test_undo_refuses_a_file_edited_since_and_names_the_backup(script, run_folder):
    module = script.with_name("data.py")
    module.write_bytes(BEFORE)
    write_patch(patch_of(script, module), run_folder)
    module.write_bytes(b"mine")
    with pytest.raises(AdvisorError) as error:
        undo(script)
    assert "has changed since advisor fix wrote it" in str(error.value)
    backup = run_folder / "source" / "1.before"
    assert str(backup) in str(error.value)
    assert backup.read_bytes() == BEFORE
    assert (script.read_bytes(), module.read_bytes()) == (AFTER, b"mine")
    module.write_bytes(AFTER)
    undo(script)
    assert (script.read_bytes(), module.read_bytes()) == (BEFORE, BEFORE)


def test_a_vanished_file_is_told(script, run_folder):
    write_patch(patch_of(script), run_folder)
    script.unlink()
    with pytest.raises(AdvisorError, match=r"cannot be read \(no such file.*0\.before"):
        undo(run_folder)


def test_a_second_change_in_the_same_run_folder_is_refused_until_the_first_is_undone(script, run_folder):
    write_patch(patch_of(script), run_folder)
    with pytest.raises(AdvisorError, match="undo it first"):
        write_patch(Patch({script: (AFTER, BEFORE)}), run_folder)
    undo(run_folder)
    write_patch(patch_of(script), run_folder)
    assert script.read_bytes() == AFTER


@pytest.mark.parametrize("what", ["file", "folder"])
def test_what_is_read_only_is_left_alone(script, run_folder, what):
    path = script if what == "file" else script.parent
    mode = path.stat().st_mode
    path.chmod(mode & ~0o222)
    try:
        with pytest.raises(AdvisorError, match=r"is read-only, so no file was changed"):
            write_patch(patch_of(script), run_folder)
    finally:
        path.chmod(mode)
    assert script.read_bytes() == BEFORE
    write_patch(patch_of(script), run_folder)
    script.chmod(0o444)
    with pytest.raises(AdvisorError, match="is read-only"):
        undo(run_folder)
    script.chmod(0o644)
    undo(run_folder)
    assert script.read_bytes() == BEFORE


def test_a_run_folder_that_is_gone_is_told(script, run_folder):
    write_patch(patch_of(script), run_folder)
    for path in sorted(run_folder.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    run_folder.rmdir()
    with pytest.raises(AdvisorError, match="which contained the backup of the last change"):
        undo(script)


def test_a_file_name_that_is_no_unicode(script, run_folder):
    odd = script.with_name(os.fsdecode(b"tr\xff.py"))
    script.rename(odd)
    write_patch(patch_of(odd), run_folder)
    assert odd.read_bytes() == AFTER
    undo(odd)
    assert odd.read_bytes() == BEFORE


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff", b'{"state": "written", "pid": 1, "entries": [{}]}'])
def test_a_damaged_journal_is_reported_with_the_place_of_the_old_bytes(script, run_folder, content):
    write_patch(patch_of(script), run_folder)
    journal = run_folder / "source" / "journal.json"
    journal.write_bytes(content)
    with pytest.raises(AdvisorError) as error:
        undo(script)
    assert str(error.value).startswith(f"{journal} cannot be read (")
    assert str(error.value).endswith(f"); the old bytes of the files are in {journal.parent}.")


@pytest.mark.parametrize("content", [b"", b"[]", b'{"file": "train.py", "run_folders": 1}'])
def test_after_a_damaged_entry_the_run_folder_undoes(script, run_folder, content):
    write_patch(patch_of(script), run_folder)
    (entry,) = backup_index.folder().glob("*.json")
    entry.write_bytes(content)
    with pytest.raises(AdvisorError, match=r"no change of .* is recorded"):
        undo(script)
    assert undo(run_folder) == (script,)
    assert script.read_bytes() == BEFORE
