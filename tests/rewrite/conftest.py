"""TensorFlow with its tf.data API recorded in this very process, every call kept; a project, a run folder and a state folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.recorded import Recorded, install
from tests.rewrite.changed_files import BEFORE


@pytest.fixture
def recorded() -> Iterator[Recorded]:
    """A fresh recording."""
    with install() as session:
        yield session


@pytest.fixture(autouse=True)
def state_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "project" / "train.py"
    path.parent.mkdir()
    path.write_bytes(BEFORE)
    return path


@pytest.fixture
def run_folder(tmp_path):
    path = tmp_path / "run"
    path.mkdir()
    return path
