"""What tests of several parts share."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.browser import browser, open_file

__all__ = ["browser", "open_file", "validate"]


@pytest.fixture(scope="session")
def validate() -> Callable[[object], None]:
    """Raises unless its argument is a report.json of the shipped schema."""
    import jsonschema

    from advisor.report.json import load_schema

    return jsonschema.Draft202012Validator(load_schema()).validate
