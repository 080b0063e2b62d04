"""Which file an import names, and which imports leave that open."""

from __future__ import annotations

import ast

import pytest

from advisor.splitting.cannot_split import CannotSplitError
from advisor.splitting.file_text import file_text
from advisor.splitting.imported_function import Imported, check_project, imported_function


def imported(text: str, call_file: str, file: str, name: str = "load") -> Imported:
    """How the argument of the last call in a text is imported."""
    caller = file_text(text)
    calls = [node for node in ast.walk(caller.tree) if isinstance(node, ast.Call)]
    called = calls[-1].args[0]
    assert isinstance(called, ast.Name | ast.Attribute)
    return imported_function(called, name, caller, call_file, file)


@pytest.mark.parametrize(
    ("text", "call_file", "file", "beside"),
    [
        ("from data import load\nds.map(load)\n", "train.py", "data.py", "load"),
        ("from data import load as read\nds.map(read)\n", "/a/train.py", "/a/data.py", "read"),
        ("from lib.data import (\n    load,\n    other,\n)\nds.map(load)\n", "/a/train.py", "/a/lib/data.py", "load"),
        ("import data\nds.map(data.load)\n", "train.py", "data.py", ""),
        ("import lib.data\nds.map(lib.data.load)\n", "/a/train.py", "/a/lib/data.py", ""),
        ("import lib.data as d\nds.map(d.load)\n", "/a/train.py", "/a/lib/data.py", ""),
        ("from lib import data\nds.map(data.load)\n", "/a/train.py", "/a/lib/data.py", ""),
        ("from lib import load\nds.map(load)\n", "/a/train.py", "/a/lib/__init__.py", "load"),
        ("from data import load\nds.map(load)\n", "/a/scripts/train.py", "/a/data.py", "load"),
        ("from lib.data import load\nds.map(load)\n", "/a/scripts/train.py", "/a/src/lib/data.py", "load"),
        ("from .data import load\nds.map(load)\n", "/a/pkg/train.py", "/a/pkg/data.py", "load"),
        ("from . import data\nds.map(data.load)\n", "/a/pkg/train.py", "/a/pkg/data.py", ""),
        ("from ..lib.data import load\nds.map(load)\n", "/a/pkg/train.py", "/a/lib/data.py", "load"),
        ("def f():\n    from data import load\n    return ds.map(load)\n", "train.py", "data.py", "load"),
        ("from data import load\ndef f(ds):\n    return ds.map(load)\n", "train.py", "data.py", "load"),
    ],
)
def test_an_import_that_names_the_file(text, call_file, file, beside):
    assert imported(text, call_file, file) == Imported(file, beside)


@pytest.mark.parametrize(
    ("text", "call_file", "file"),
    [
        ("from pkg import load\nds.map(load)\n", "/a/train.py", "/a/pkg/data.py"),  # imported there from another file
        ("from data import load\nds.map(load)\n", "/a/train.py", "/a/lib/data.py"),  # as `/a/data.py` may import it
        ("from other import load\nds.map(load)\n", "train.py", "data.py"),
        ("from data import other as load\nds.map(load)\n", "train.py", "data.py"),
        ("from data import *\nds.map(load)\n", "train.py", "data.py"),
        ("from data import load\nload = wrap(load)\nds.map(load)\n", "train.py", "data.py"),
        ("try:\n    from data import load\nexcept ImportError:\n    from old import load\nds.map(load)\n", "train.py", "data.py"),
        ("import data\nload = data.load\nds.map(load)\n", "train.py", "data.py"),
        ("import data\ndef f(data):\n    ds.map(data.load)\n", "train.py", "data.py"),
        ("import lib\nds.map(lib.data.load)\n", "/a/train.py", "/a/data.py"),
        ("from ..data import load\nds.map(load)\n", "/a/pkg/train.py", "/a/pkg/data.py"),
        ("from .data import load\nds.map(load)\n", "/a/pkg/train.py", "/a/data.py"),
    ],
)  # fmt: skip
def test_an_import_that_may_name_another_file_is_refused(text, call_file, file):
    with pytest.raises(CannotSplitError, match="not plainly imported"):
        imported(text, call_file, file)


@pytest.mark.parametrize("folder", ["site-packages", "dist-packages"])
def test_functions_of_installed_packages_stay_as_they_are(folder):
    check_project("load", "/home/me/work/data.py")
    with pytest.raises(CannotSplitError, match="installed package"):
        check_project("load", f"/usr/lib/python3/{folder}/tensorflow/image.py")
