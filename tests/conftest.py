"""What tests of several parts share."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.browser import browser, open_file
from tests.effort import register_profiles

__all__ = ["browser", "open_file", "validate"]

register_profiles()

MAY_IMPORT = {"tensorflow", "long", "slow"}
"""Marks of tests that may import TensorFlow."""

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts what it puts into the background so, and the children whose Ctrl-C is tested would inherit it.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Of pytest-xdist; None leaves the choice to it."""
    if config.getvalue("dist") != "load":
        return None
    from tests.scheduling import SharedFiles

    return SharedFiles(config, log)


@pytest.fixture(scope="session")
def validate() -> Callable[[object], None]:
    """Raises unless its argument is a report.json of the shipped schema."""
    import jsonschema

    from advisor.report.report_json import load_schema

    return jsonschema.Draft202012Validator(load_schema()).validate


@pytest.fixture(autouse=True)
def without_tensorflow(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test that imports TensorFlow unmarked: others of its process ask what holds without it."""
    had = "tensorflow" in sys.modules
    yield
    if not had and "tensorflow" in sys.modules and not MAY_IMPORT & {mark.name for mark in request.node.iter_markers()}:
        pytest.fail("The test imports TensorFlow; mark it with tensorflow.")


@pytest.fixture(autouse=True)
def without_seed() -> Iterator[None]:
    """Take the seed back that a test, or a script run in this process, has given to TensorFlow: other tests need none."""
    yield
    tensorflow = sys.modules.get("tensorflow")
    if tensorflow is not None and hasattr(tensorflow, "random"):
        tensorflow.random.set_seed(None)
