"""TensorFlow with its tf.data API recorded in this very process, every call kept."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.recorded import Recorded, install
from tests.sandbox.conftest import home, project, temporary  # noqa: F401  # fixtures


@pytest.fixture
def recorded() -> Iterator[Recorded]:
    """A fresh recording."""
    with install() as session:
        yield session
