"""The texts of another revision: read from git, with nothing written."""

from __future__ import annotations

import subprocess

import pytest

from advisor.gate.base_revision import read_base
from advisor.model.errors import AdvisorError


def git(folder, *words):
    identity = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path):
    """A repository with one commit, tagged `base`, and changes in the working tree."""
    top = tmp_path / "repo"
    (top / "sub").mkdir(parents=True)
    git(tmp_path, "init", "-q", "repo")
    for name in ("train.py", "same.py", "gone.py", "sub/häßlich name.py", "notes.txt"):
        (top / name).write_text(f"base of {name}\n")
    git(top, "add", "-A")
    git(top, "commit", "-q", "-m", "base")
    git(top, "tag", "base")
    (top / "train.py").write_text("head of train.py\n")
    (top / "sub/häßlich name.py").write_bytes(b"head\r\n\xff")
    (top / "notes.txt").write_text("head of notes\n")
    (top / "gone.py").unlink()
    (top / "new.py").write_text("new\n")
    git(top, "add", "new.py")
    return top


def snapshot(top):
    return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in top.rglob("*") if path.is_file()}


@pytest.mark.parametrize("folder", ["", "sub"])
def test_python_files_that_differ_are_read_and_nothing_is_written(repository, folder):
    before = snapshot(repository)
    base = read_base("base", repository / folder, repository / "train.py")
    assert snapshot(repository) == before
    assert base.files == {
        repository / "train.py": (b"head of train.py\n", b"base of train.py\n"),
        repository / "sub/häßlich name.py": (b"head\r\n\xff", "base of sub/häßlich name.py\n".encode()),
        repository / "gone.py": (b"", b"base of gone.py\n"),
    }
    assert base.only_in_base == (repository / "gone.py",)
    assert base.only_in_head == (repository / "new.py",)
    assert base.names == ("gone.py", "new.py", "sub/häßlich name.py", "train.py")
    assert base.has_script and not base.is_same_text and len(base.commit) == 40


def test_other_files_and_modes_are_no_difference(repository):
    git(repository, "add", "-A")
    git(repository, "commit", "-q", "-m", "head")
    (repository / "notes.txt").write_text("other notes\n")
    (repository / "train.py").chmod(0o755)
    assert read_base("HEAD", repository).is_same_text


def test_a_script_that_the_revision_lacks(repository):
    (repository / "untracked.py").write_text("")
    assert not read_base("base", repository, repository / "new.py").has_script
    assert not read_base("base", repository, repository / "untracked.py").has_script
    assert not read_base("base", repository, repository.parent / "elsewhere.py").has_script


@pytest.mark.parametrize("revision", ["nothing", "--help", "base:train.py", "", "-c"])
def test_no_such_revision_is_one_sentence(repository, revision):
    with pytest.raises(AdvisorError, match="has no such revision; fetch it first"):
        read_base(revision, repository)


def test_no_repository_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    with pytest.raises(AdvisorError, match="needs a git repository") as error:
        read_base("HEAD", tmp_path)
    assert "\n" not in str(error.value)


def test_no_git_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(AdvisorError, match="git, which is not installed"):
        read_base("HEAD", tmp_path)
