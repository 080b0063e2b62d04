from __future__ import annotations

import os
import unicodedata
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.model.calls import Call, Site
from advisor.report.places import call_text, clean, display_path, source_line

SOURCE = "import x\nds = tf.data.Dataset.range(9)\nds = (ds\n    .map(augment)\t# \x1b[31m\n    .batch(2))\n"


def call(file, line=4, column=6, method="map", text=".map(augment)"):
    return Call("c1", method, Site(str(file), line, column, line, column + 12), text=text)


@given(st.text())
def test_clean_leaves_nothing_that_acts(text):
    shown = clean(text)
    assert all(unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Zl", "Zp") for char in shown)
    shown.encode("utf-8")


@given(st.text(alphabet=st.characters(categories=["L", "N", "P", "S", "Zs"])))
def test_clean_leaves_ordinary_text_alone(text):
    assert clean(text) == text


def test_source_line_is_shown(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(SOURCE)
    assert source_line(call(path)) == ".map(augment)    # \\x1b[31m"


@pytest.mark.parametrize("change", [{"line": 5}, {"line": 40}, {"line": 1}, {"column": 300}, {"method": "filter"}])
def test_another_line_than_the_recorded_is_not_shown(tmp_path, change):
    path = tmp_path / "train.py"
    path.write_text(SOURCE)
    assert source_line(call(path, **change)) is None


def test_what_is_no_source_file_is_not_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "binary").write_bytes(b"\xff\xfe" * 100)
    for name in ("pipe", "binary", "absent", "."):
        assert source_line(call(tmp_path / name, line=1)) is None
    assert source_line(call("a\x00b")) is None


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (".map(augment)", ".map(augment)"),
        (".map(\n    augment,\n)", ".map( augment, )"),
        (".map(" + "x" * 100, ".map(...)"),
        ("", "map(...)"),
    ],
)
def test_call_text_is_short(text, shown):
    assert call_text(call("train.py", text=text)) == shown


def test_call_of_a_library_is_told_as_such():
    made = replace(call("train.py", text="tfds.load('x')"), library="tensorflow_datasets")
    assert call_text(made) == "map in tensorflow_datasets"


def test_path_is_relative_where_that_is_shorter(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert display_path(str(tmp_path / "a/train.py")) == "a/train.py"
    assert display_path("/elsewhere/train.py") == "/elsewhere/train.py"
