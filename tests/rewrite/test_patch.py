"""Patches of several files, what they may touch, and patches on patches."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from advisor.model.edits import Code, InsertAfter, Remove, SetArgument
from advisor.model.finding import Fix, Safety
from advisor.rewrite.cannot_rewrite import CannotRewrite
from advisor.rewrite.patch import Patch, patch_for, why_not
from advisor.rewrite.project import project_root
from tests.rewrite.source_text import calls_in

CACHE = InsertAfter("map", "cache")
TEXT = "import tensorflow as tf\nds = ds.map(f).batch(2)\n"


def patched(edits, path, root, base=None, text=TEXT):
    return patch_for(edits, calls_in(text, str(path)), root, base)


def test_a_patch_holds_the_bytes_and_a_diff_that_applies(tmp_path):
    path = tmp_path / "train.py"
    path.write_bytes(TEXT.encode())
    patch = patched([CACHE], path, tmp_path)
    assert isinstance(patch, Patch)
    assert patch.files == {path: (TEXT.encode(), TEXT.replace("map(f)", "map(f).cache()").encode())}
    subprocess.run(["patch", "-p1"], input=patch.diff.encode(), cwd=tmp_path, check=True, capture_output=True)
    assert path.read_bytes() == patch.after()[str(path)]


def test_a_patch_on_a_patch_is_one_change_of_the_users_bytes(tmp_path):
    path = tmp_path / "train.py"
    path.write_bytes(TEXT.encode())
    first = patched([CACHE], path, tmp_path)
    assert isinstance(first, Patch)
    now = first.after()[str(path)].decode()
    second = patched([SetArgument("map", "num_parallel_calls", Code("tf.data.AUTOTUNE"))], path, tmp_path, first, now)
    assert isinstance(second, Patch)
    after = "import tensorflow as tf\nds = ds.map(f, num_parallel_calls=tf.data.AUTOTUNE).cache().batch(2)\n"
    assert second.files == {path: (TEXT.encode(), after.encode())}
    changed = [line for line in second.diff.splitlines()[2:] if line[0] in "+-"]
    assert changed == ["-ds = ds.map(f).batch(2)", "+" + after.splitlines()[1]]
    back = patched([Remove("cache")], path, tmp_path, first, now)
    assert back == Patch()


def test_all_or_none_of_several_files(tmp_path):
    calls = {}
    for name, method in (("a.py", "map"), ("b.py", "batch")):
        (tmp_path / name).write_text(f"ds = ds.{method}(8)\n")
        calls |= calls_in(f"ds = ds.{method}(8)\n", str(tmp_path / name))
    edits = [CACHE, InsertAfter("batch", "prefetch", (("", 2),))]
    patch = patch_for(edits, calls, tmp_path)
    assert isinstance(patch, Patch)
    assert [path.name for path in patch.files] == ["a.py", "b.py"]
    (tmp_path / "b.py").write_text("other = 3\n")
    result = patch_for(edits, calls, tmp_path)
    assert result == CannotRewrite("No call ends where batch was recorded (line 1): the file has changed.")


def test_a_link_is_followed_to_the_file_if_that_is_in_the_project(tmp_path):
    project, outside = tmp_path / "project", tmp_path / "elsewhere.py"
    project.mkdir()
    (project / "real.py").write_text(TEXT)
    (project / "train.py").symlink_to("real.py")
    patch = patched([CACHE], project / "train.py", project)
    assert isinstance(patch, Patch)
    assert list(patch.files) == [project / "real.py"]
    outside.write_text(TEXT)
    (project / "other.py").symlink_to(outside)
    result = patched([CACHE], project / "other.py", project)
    assert isinstance(result, CannotRewrite)
    assert "outside the project" in result.reason


TARGETS = ("target", "target in the project's folder")


def environment(root: Path, kind: str) -> Path:
    if kind == "venv":
        folder = root / "env"
        (folder / "code").mkdir(parents=True)
        (folder / "pyvenv.cfg").write_text("home = /usr/bin\n")
        return folder / "code" / "train.py"
    if kind == "conda":
        (root / "env" / "conda-meta").mkdir(parents=True)
        return root / "env" / "train.py"
    if kind == "python":
        folder = root / "py" / "lib" / "python3.12"
        (folder / "json").mkdir(parents=True)
        (folder / "os.py").write_text("")
        return folder / "json" / "train.py"
    if kind in TARGETS:  # pip install --target
        folder = root / "vendor" if kind == TARGETS[0] else root
        (folder / "keras").mkdir(parents=True)
        (folder / "keras-3.0.dist-info").mkdir()
        (folder / "keras-3.0.dist-info" / "RECORD").write_text("keras/train.py,sha256=abc,12\n../../bin/keras,,\n")
        return folder / "keras" / "train.py"
    folder = root / "lib" / kind / "keras"
    folder.mkdir(parents=True)
    return folder / "train.py"


@pytest.mark.parametrize("kind", ["site-packages", "dist-packages", "venv", "conda", "python", *TARGETS])
def test_what_is_installed_is_never_touched_even_inside_the_project(tmp_path, kind):
    path = environment(tmp_path, kind)
    path.write_text(TEXT)
    result = patched([CACHE], path, tmp_path)
    assert isinstance(result, CannotRewrite)
    assert "belongs to an installed package or to Python itself" in result.reason


def test_a_script_beside_installed_packages_is_still_the_users(tmp_path):
    environment(tmp_path, TARGETS[1])
    (tmp_path / "train.py").write_text(TEXT)
    assert isinstance(patched([CACHE], tmp_path / "train.py", tmp_path), Patch)


def test_the_standard_library_is_never_touched():
    path = Path(sysconfig.get_paths()["stdlib"]) / "textwrap.py"
    result = patched([CACHE], path, Path(path.anchor))
    assert isinstance(result, CannotRewrite)
    assert "Python itself" in result.reason


def test_bytes_that_would_not_come_back_are_left_alone(tmp_path):
    path = tmp_path / "train.py"
    path.write_bytes(b"# coding: utf-8\nx = '\xff'\n" + TEXT.encode())
    result = patched([CACHE], path, tmp_path)
    assert isinstance(result, CannotRewrite)
    assert "not valid text in its declared encoding" in result.reason


def test_the_project_is_the_nearest_folder_with_a_sign_of_one(tmp_path):
    script = tmp_path / "work" / "scripts" / "train.py"
    script.parent.mkdir(parents=True)
    script.write_text("")
    assert project_root(script) == script.parent
    (tmp_path / "work" / "pyproject.toml").write_text("")
    assert project_root(script) == tmp_path / "work"
    link = tmp_path / "link.py"
    link.symlink_to(script)
    assert project_root(link) == tmp_path / "work"


def test_a_home_folder_is_no_project(tmp_path, monkeypatch):
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    (tmp_path / ".git").mkdir()
    script = tmp_path / "play" / "train.py"
    script.parent.mkdir()
    assert project_root(script) == script.parent


WHY = {
    "another text": ("ds = ds.zap(f).batch(2)\n", "The text does not show that ds.zap calls map (line 2)."),
    "stars": (
        "ds = ds.map(*f).batch(2)\n",
        "The arguments of map include * or **, which may contain num_parallel_calls.",
    ),
    "no Python": ("ds = ds.map(f\n", "The file cannot be parsed as Python."),
    "already so": ("ds = ds.map(f, num_parallel_calls=4)\n", "The source already contains the change."),
}


@pytest.mark.parametrize(("text", "reason"), WHY.values(), ids=WHY)
def test_the_reason_is_told(tmp_path, text, reason):
    path = tmp_path / "train.py"
    path.write_text("import tensorflow as tf\n" + text)
    recorded = text.replace("zap", "map") if text.endswith(")\n") else "ds = ds.map(f)\n"
    calls = calls_in("import tensorflow as tf\n" + recorded, str(path))
    fix = Fix((SetArgument("map", "num_parallel_calls", 4),), Safety.EXACT, True)
    assert why_not(fix, calls, tmp_path) == reason


def test_analysis_does_not_load_libcst_for_a_plan():
    code = (
        "import sys, advisor.rewrite.fix_plan, advisor.rewrite.apply.write; "
        "sys.exit('libcst' in sys.modules or 'tensorflow' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
