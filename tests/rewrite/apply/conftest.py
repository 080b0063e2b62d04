"""A project of three files that a change touches."""

from __future__ import annotations

import pytest

from tests.rewrite.changed_files import BEFORE


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    for name in "abc":
        (folder / f"{name}.py").write_bytes(BEFORE)
    return folder
