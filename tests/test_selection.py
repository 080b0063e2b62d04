"""What `make test` runs with TensorFlow: every command, every hook and every kind of edit, although it leaves the long tests out.

The three tests that are named here fail on a command, a hook or a kind of edit that they do not know.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from advisor.cli import COMMANDS
from tests.capture.instrument import test_consumers, test_every_hook
from tests.commands import test_every_command
from tests.rewrite import test_halves, test_snippets
from tests.scheduling import IN_ONE_PROCESS


def marks(test: Callable[..., None]) -> set[str]:
    """The names of the marks of a test and of its module."""
    of_module = getattr(sys.modules[test.__module__], "pytestmark", [])
    own = getattr(test, "pytestmark", [])
    return {mark.name for mark in (*own, *(of_module if isinstance(of_module, list) else [of_module]))}


@pytest.mark.parametrize(
    "test",
    [
        test_every_command.test_command,
        test_every_hook.test_every_hook_is_reached,
        test_consumers.test_every_kind_of_consumer_in_one_run,
        test_snippets.test_snippet,
        test_halves.test_the_written_halves_are_the_proved_ones,
    ],
    ids=["commands", "hooks", "consumers", "edits", "split functions"],
)
def test_every_part_is_in_the_short_selection(test: Callable[..., None]) -> None:
    assert "tensorflow" in marks(test)
    assert not marks(test) & {"long", "slow"}


def test_files_of_one_process_exist() -> None:
    root = Path(__file__).parents[1]
    assert [file for file in IN_ONE_PROCESS if not (root / file).is_file()] == []


def test_every_command_has_a_check() -> None:
    assert set(test_every_command.CHECKS) == set(COMMANDS)
