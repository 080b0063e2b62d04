"""Errors for people: one sentence that says what happened, where and what to do, with the command's exit code.

In: nothing.  Out: `AdvisorError` and its kinds; `advisor.cli` prints the sentence and exits, never with a traceback.
"""

from __future__ import annotations


class AdvisorError(Exception):
    """The command could not do what was asked (exit code 2)."""

    exit_code = 2


class OutOfTime(AdvisorError):
    """What was under way did not end by its deadline and was stopped."""


class ScriptFailed(AdvisorError):
    """The user's script failed before anything was measured (exit code 3). Its own traceback has been shown untouched."""

    exit_code = 3
