"""Errors for users: one sentence that says what happened, where, and what to do, with the command's exit code.

`advisor.cli` prints the sentence and exits without a traceback.
"""

from __future__ import annotations


class AdvisorError(Exception):
    """The command cannot be carried out (exit code 2)."""

    exit_code = 2


class OutOfTime(AdvisorError):
    """An operation did not finish before its deadline and was stopped."""


class NotWritable(AdvisorError):
    """A file that was to be changed (`--write`) cannot be written; without that option, changes are tried and shown."""


class ScriptFailed(AdvisorError):
    """The user's script failed before anything was measured (exit code 3). Its traceback has been printed unchanged."""

    exit_code = 3
    script_code: int | None = None
    """The script's own exit code, 128 + the number of a signal that ended it; None if it is not known."""
    runs: int = 1
    """How many runs there were in a series of which the last one failed."""


class ChangeFailed(ScriptFailed):
    """The script fails with a change that was to be judged, and not without it (exit code 3)."""
