"""The diff of a fix: small hunks, one per place, and only of the user's own files."""

from __future__ import annotations

from advisor.rewrite.patch import diff_for
from tests.rewrite.source_text import CACHE, PREFETCH, calls_in, fix


def test_diff_is_one_small_hunk_with_paths_under_the_root(tmp_path):
    path = tmp_path / "src" / "train.py"
    path.parent.mkdir()
    text = "import tensorflow as tf\n\n\n\nds = tf.data.Dataset.range(9)\nds = ds.map(f)\n\nprint(ds)\n"
    path.write_text(text)
    assert diff_for(fix(CACHE), calls_in(text, str(path)), tmp_path) == (
        "--- a/src/train.py\n+++ b/src/train.py\n@@ -5,3 +5,3 @@\n ds = tf.data.Dataset.range(9)\n-ds = ds.map(f)\n"
        "+ds = ds.map(f).cache()\n \n"
    )
    assert path.read_text() == text


def test_diff_marks_a_missing_line_end_and_keeps_windows_ones(tmp_path):
    path = tmp_path / "train.py"
    text = "x = 1\r\nds = ds.map(f)"
    path.write_bytes(text.encode())
    diff = diff_for(fix(CACHE), calls_in(text, str(path)), tmp_path)
    assert diff is not None
    assert " x = 1\r\n" in diff
    assert diff.endswith("+ds = ds.map(f).cache()\n\\ No newline at end of file\n")


def test_diff_covers_several_files(tmp_path):
    calls = {}
    for name, method in (("a.py", "map"), ("b.py", "batch")):
        text = f"import tensorflow as tf\nds = ds.{method}(8)\n"
        (tmp_path / name).write_text(text)
        calls |= calls_in(text, str(tmp_path / name))
    diff = diff_for(fix(CACHE, PREFETCH), calls, tmp_path)
    assert diff is not None
    assert diff.index("+++ b/a.py") < diff.index("+++ b/b.py")


def test_files_that_are_not_the_users_are_left_alone(tmp_path):
    text = "ds = ds.map(f)\n"
    inside, outside = tmp_path / "project", tmp_path / "elsewhere.py"
    package = inside / "lib" / "site-packages" / "keras.py"
    package.parent.mkdir(parents=True)
    for path in (outside, package):
        path.write_text(text)
        assert diff_for(fix(CACHE), calls_in(text, str(path)), inside) is None
    assert diff_for(fix(CACHE), calls_in(text, str(inside / "absent.py")), inside) is None


def test_latin_1_source_is_read_in_its_own_encoding(tmp_path):
    path = tmp_path / "train.py"
    text = "# -*- coding: latin-1 -*-\nx = 'é'; ds = ds.map(f)\n"
    path.write_bytes(text.encode("latin-1"))
    diff = diff_for(fix(CACHE), calls_in(text, str(path)), tmp_path)
    assert diff is not None and "+x = 'é'; ds = ds.map(f).cache()" in diff
