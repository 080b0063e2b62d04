"""The examples import each other as scripts do: their folder is on the path while these tests run."""

import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
EXAMPLES = REPOSITORY / "examples"


@pytest.fixture
def sample_data(monkeypatch):
    pytest.importorskip("PIL")
    pytest.importorskip("skimage")
    pytest.importorskip("sklearn")
    monkeypatch.syspath_prepend(str(EXAMPLES))
    import sample_data

    yield sample_data
    for name in ("sample_data", "flowers_like_dataset"):
        sys.modules.pop(name, None)
