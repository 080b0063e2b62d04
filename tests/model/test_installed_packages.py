"""Which modules pip installed into a folder."""

from __future__ import annotations

import pytest

from advisor.model.installed_packages import installed_names, installed_package

RECORD = """\
../../bin/tool,sha256=abc,120
six.py,sha256=abc,120
"odd,name/__init__.py",sha256=abc,120
keras/__init__.py,sha256=abc,120
keras/src/layers.py,sha256=abc,120
keras-3.0.dist-info/RECORD,,
"""


def install(folder, files):
    (folder / "keras-3.0.dist-info").mkdir(parents=True)
    for name, text in files.items():
        (folder / "keras-3.0.dist-info" / name).write_text(text)


@pytest.mark.parametrize("files", [{"RECORD": RECORD}, {"top_level.txt": "six\nkeras\n", "RECORD": "no/such.py,,\n"}])
def test_modules_and_packages_are_known_by_their_first_name(tmp_path, files):
    install(tmp_path, files)
    assert {"six", "keras"} <= installed_names(str(tmp_path))
    assert installed_package(tmp_path / "keras" / "src" / "layers.py", tmp_path) == "keras"
    assert installed_package(tmp_path / "six.py", tmp_path) == "six"
    assert installed_package(tmp_path / "train.py", tmp_path) is None
    assert installed_package(tmp_path / "bin" / "tool", tmp_path) is None


def test_what_is_elsewhere_or_without_a_record_belongs_to_nobody(tmp_path):
    install(tmp_path / "site", {})
    assert installed_names(str(tmp_path / "site")) == frozenset()
    assert installed_names(str(tmp_path / "missing")) == frozenset()
    assert installed_package(tmp_path / "train.py", tmp_path / "site") is None
    assert installed_package(tmp_path, tmp_path) is None
