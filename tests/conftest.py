"""What tests of several parts share."""

from __future__ import annotations

import signal
from collections.abc import Callable

import pytest

from tests.browser import browser, open_file

__all__ = ["browser", "open_file", "validate"]


if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts what it puts into the background so, and the children whose Ctrl-C is tested would inherit it.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def validate() -> Callable[[object], None]:
    """Raises unless its argument is a report.json of the shipped schema."""
    import jsonschema

    from advisor.report.report_json import load_schema

    return jsonschema.Draft202012Validator(load_schema()).validate
