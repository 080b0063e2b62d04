"""Two changes are the same exactly if they do the same to the same texts."""

from __future__ import annotations

import difflib
from pathlib import Path

import pytest

from advisor.gate.change_identity import identify
from advisor.gate.changed_texts import ChangedTexts, read_other, read_patch

BEFORE = "import helper\nfrom package import inner\n\nx = 1\ny = [1, 2]\ny = [1, 2]\n"
AFTER = BEFORE.replace("x = 1", "x = 10")
SCRIPT = Path("train.py")


@pytest.fixture(autouse=True)
def project(tmp_path, monkeypatch):
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "train.py").write_text(BEFORE)
    (tmp_path / "helper.py").write_text("a = 1\n")
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("")
    (tmp_path / "package" / "inner.py").write_text("from . import other\n")
    (tmp_path / "package" / "other.py").write_text("b = 1\n")
    (tmp_path / "unrelated.py").write_text("c = 1\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def identity(after=AFTER, args=(), script=SCRIPT):
    Path("other_text.py").write_text(after)
    return identify(script, None, args, read_other(script, Path("other_text.py")))


def test_a_patch_and_a_file_that_do_the_same():
    lines = difflib.unified_diff(BEFORE.splitlines(True), AFTER.splitlines(True), "a/train.py", "b/train.py")
    Path("change.diff").write_text("".join(lines))
    assert identify(SCRIPT, None, (), read_patch(SCRIPT, Path("change.diff"))) == identity()


@pytest.mark.parametrize(
    "after",
    [
        AFTER.replace("x = 10", "x = 10  # faster"),
        AFTER.replace("x = 10", "\n\nx=(10)"),
        AFTER.replace("[1, 2]", "[\n    1,\n    2,\n]"),
        AFTER.replace("\n", "\r\n"),
    ],
)
def test_layout_and_comments_do_not_count(after):
    assert identity(after) == identity()


def test_layout_of_the_unchanged_text_does_not_count_either():
    before = identity()
    SCRIPT.write_text("# a comment\n" + BEFORE.replace("x = 1", "x  =  1"))
    assert identity() == before


@pytest.mark.parametrize(
    "after",
    [
        BEFORE.replace("x = 1", "x = 11"),
        AFTER.replace("y = [1, 2]\ny", "y = [1]\ny"),
        BEFORE.replace("y = [1, 2]\ny = [1, 2]", "y = [1]\ny = [1, 2]"),
        BEFORE.replace("y = [1, 2]\ny = [1, 2]", "y = [1, 2]\ny = [1]"),
    ],
)
def test_other_changes_are_other_ones(after):
    others = [BEFORE.replace("y = [1, 2]\ny = [1, 2]", "y = [1, 2, 3]\ny = [1, 2]"), AFTER]
    assert all(identity(after).diff != identity(other).diff for other in others)


def test_equal_lines_at_other_places_are_other_changes():
    first = BEFORE.replace("y = [1, 2]\ny = [1, 2]", "y = [1]\ny = [1, 2]")
    second = BEFORE.replace("y = [1, 2]\ny = [1, 2]", "y = [1, 2]\ny = [1]")
    assert identity(first).diff != identity(second).diff


def test_equal_lines_of_another_file_are_another_change():
    Path("unrelated.py").write_text(Path("helper.py").read_text())
    digests = set()
    for name in ("helper.py", "unrelated.py"):
        path = Path(name).resolve()
        texts = ChangedTexts("", {path: (path.read_bytes(), b"a = 2\n")})
        digests.add(identify(SCRIPT, None, (), texts).diff)
    assert len(digests) == 2


@pytest.mark.parametrize("file", ["helper.py", "package/inner.py", "package/other.py", "package/__init__.py"])
def test_imported_modules_belong_to_the_text(file):
    before = identity()
    Path(file).write_text(Path(file).read_text() + "z = 2\n")
    after = identity()
    assert after.diff == before.diff and after.base != before.base


def test_other_modules_do_not():
    before = identity()
    Path("unrelated.py").write_text("c = 2\n")
    assert identity() == before


def test_a_module_that_only_the_changed_text_imports_belongs_to_it():
    after = f"import unrelated\n{AFTER}"
    before = identity(after)
    Path("unrelated.py").write_text("c = 2\n")
    assert identity(after) != before


def test_arguments_and_names_belong_to_the_text():
    Path("second.py").write_text(BEFORE)
    identities = {identity().base, identity(args=("--fast",)).base, identity(args=("--fast", "")).base,
             identity(script=Path("second.py")).base}  # fmt: skip
    assert len(identities) == 4


def test_the_folder_does_not(tmp_path, monkeypatch):
    before = identity()
    for path in ["train.py", "helper.py", "package", "pyproject.toml"]:
        (tmp_path / "moved").mkdir(exist_ok=True)
        Path(path).rename(tmp_path / "moved" / path)
    monkeypatch.chdir(tmp_path / "moved")
    assert identity() == before


def test_a_module_is_found_by_its_name():
    def found():
        path = Path("package/inner.py").resolve()
        return identify(None, "package.inner", (), ChangedTexts("", {path: (path.read_bytes(), b"d = 1\n")}))

    before = found()
    Path("package/other.py").write_text("b = 2\n")
    assert found().base != before.base and found().diff == before.diff


@pytest.mark.parametrize("text", [b"x = (\n", b"\xff\xfe", b"x = '\\d'\n", b"(" * 500 + b")" * 500, b"\0"])
def test_texts_that_python_cannot_parse_are_compared_as_they_are(text, recwarn):
    path = SCRIPT.resolve()
    digests = {
        identify(SCRIPT, None, (), ChangedTexts("", {path: (text, after)})).diff for after in (text, text + b"\n1")
    }
    assert len(digests) == 2
    assert not list(recwarn)
