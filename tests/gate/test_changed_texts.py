"""The change that `advisor prove` judges: another file, a patch, a revision. Nothing of the user's is written."""

from __future__ import annotations

import difflib
import io
import subprocess
from pathlib import Path

import pytest

from advisor.gate.changed_texts import read_other, read_patch, read_revision
from advisor.model.errors import AdvisorError

BEFORE = "import helper\n\nx = 1\ny = 2\n"
AFTER = "import helper\n\nx = 10\ny = 2\n"
HELPER = "a = 1\nb = 2\n"


@pytest.fixture
def project(tmp_path, monkeypatch):
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "pyproject.toml").write_text("")
    (folder / "train.py").write_text(BEFORE)
    (folder / "helper.py").write_text(HELPER)
    monkeypatch.chdir(folder)
    yield folder
    assert (folder / "train.py").read_text() == BEFORE and (folder / "helper.py").read_text() == HELPER


def diff(old, new, before, after):
    lines = difflib.unified_diff(before.splitlines(True), after.splitlines(True), old, new)
    return "".join(lines)


def git(folder, *arguments):
    options = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *options, *arguments], cwd=folder, check=True, capture_output=True)


def test_another_file_replaces_the_script(project):
    (project / "faster.py").write_text(AFTER)
    texts = read_other(Path("train.py"), Path("faster.py"))
    assert texts.files == {project / "train.py": (BEFORE.encode(), AFTER.encode())}
    assert texts.label == "--with faster.py" and texts.only_with_change == ()


@pytest.mark.parametrize(("old", "new"), [("a/train.py", "b/train.py"), ("train.py", "train.py")])
def test_a_patch_with_and_without_prefixes(project, old, new):
    (project / "change.diff").write_text(diff(old, new, BEFORE, AFTER))
    texts = read_patch(Path("train.py"), Path("change.diff"))
    assert texts.files == {project / "train.py": (BEFORE.encode(), AFTER.encode())}


def test_a_patch_on_stdin(project, monkeypatch):
    text = diff("a/train.py", "b/train.py", BEFORE, AFTER).encode()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text)))
    texts = read_patch(Path("train.py"), Path("-"))
    assert texts.files == {project / "train.py": (BEFORE.encode(), AFTER.encode())} and texts.label == "--patch -"


def test_a_patch_relative_to_the_folder_of_the_script(project):
    (project / "sub").mkdir()
    (project / "sub" / "more.py").write_text("z = 1\n")
    (project / "change.diff").write_text(diff("a/more.py", "b/more.py", "z = 1\n", "z = 2\n"))
    texts = read_patch(Path("sub/more.py"), Path("change.diff"))
    assert texts.files == {project / "sub" / "more.py": (b"z = 1\n", b"z = 2\n")}
    assert (project / "sub" / "more.py").read_text() == "z = 1\n"


def test_a_patch_of_several_files_and_of_a_new_one(project):
    text = diff("a/train.py", "b/train.py", BEFORE, AFTER) + diff(
        "a/helper.py", "b/helper.py", HELPER, "a = 1\nb = 3\n"
    )
    text += diff("/dev/null", "b/added.py", "", "c = 3\n")
    (project / "change.diff").write_text(text)
    texts = read_patch(Path("train.py"), Path("change.diff"))
    assert {path.name: after for path, (_, after) in texts.files.items()} == {
        "train.py": AFTER.encode(),
        "helper.py": b"a = 1\nb = 3\n",
        "added.py": b"c = 3\n",
    }
    assert [path.name for path in texts.only_with_change] == ["added.py"]
    assert not (project / "added.py").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("no patch at all\n", "does not apply"),
        (diff("a/train.py", "b/train.py", "other\n", "text\n"), "does not apply"),
        (diff("a/train.py", "b/train.py", BEFORE, "import (\n"), "is not valid Python"),
        (diff("a/../x.py", "b/../x.py", "a\n", "b\n"), "outside"),
    ],
)
def test_a_patch_that_cannot_be_used(project, text, message):
    (project / "change.diff").write_text(text)
    with pytest.raises(AdvisorError, match=message):
        read_patch(Path("train.py"), Path("change.diff"))


def test_a_patch_of_other_than_python_files_is_refused_unless_nothing_reads_them(project):
    (project / "config.yaml").write_text("a: 1\n")
    (project / "README.md").write_text("a\n")
    python = diff("a/train.py", "b/train.py", BEFORE, AFTER)
    (project / "change.diff").write_text(python + diff("a/README.md", "b/README.md", "a\n", "b\n"))
    assert len(read_patch(Path("train.py"), Path("change.diff")).files) == 1
    (project / "change.diff").write_text(python + diff("a/config.yaml", "b/config.yaml", "a: 1\n", "a: 2\n"))
    with pytest.raises(AdvisorError, match=r"config\.yaml"):
        read_patch(Path("train.py"), Path("change.diff"))


def test_a_revision(project):
    git(project, "init", "-q")
    git(project, "add", ".")
    git(project, "commit", "-qm", "first")
    (project / "train.py").write_text(AFTER)
    git(project, "commit", "-qam", "second")
    (project / "train.py").write_text(BEFORE)
    texts = read_revision(Path("train.py"), "HEAD")
    assert texts.files == {project / "train.py": (BEFORE.encode(), AFTER.encode())}
    with pytest.raises(AdvisorError, match="--rev nothing"):
        read_revision(Path("train.py"), "nothing")
    with pytest.raises(AdvisorError, match="changes no Python file"):
        read_revision(Path("train.py"), "HEAD~1")


def test_the_same_text_is_no_change(project):
    with pytest.raises(AdvisorError, match="nothing to prove"):
        read_other(Path("train.py"), Path("train.py"))
    with pytest.raises(AdvisorError, match="cannot be read"):
        read_other(Path("train.py"), Path("missing.py"))
