"""One rule asked about one analysis, whatever its code does.

In: a `LoadedRule` and an `Analysis`.  Out: an `Answer`: findings, notes and what went wrong. What the rule prints goes to
stderr: stdout belongs to the report.
"""

from __future__ import annotations

import contextlib
import sys
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from advisor.engine.finding_checks import finding_error
from advisor.engine.loader import LoadedRule
from advisor.model.finding import Finding
from advisor.model.pipeline import Analysis
from advisor.rule import Note

MAX_ITEMS = 1_000
"""Findings and notes of one rule; nobody reads more, and a rule that yields for ever must end."""
MAX_MESSAGE = 1_000


@dataclass(frozen=True, slots=True)
class Answer:
    """What one rule had to say."""

    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    """A sentence each; they become rows of the report."""


def ask(loaded: LoadedRule, analysis: Analysis) -> Answer:
    """The rule's answer, asked in this process. KeyboardInterrupt passes through; nothing else that the rule raises does."""
    items: list[object] = []
    with printing_to_stderr():
        try:
            for item in loaded.rule.check(analysis):
                items.append(item)
                if len(items) > MAX_ITEMS:
                    return Answer(errors=(f"yielded more than {MAX_ITEMS:,} findings and notes",))
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # `sys.exit(0)` in a rule must not end the command, and a gate with it
            return Answer(errors=(_where_it_raised(error, loaded),))
    wrong = [finding_error(item) for item in items]
    sound = [item for item, error in zip(items, wrong, strict=True) if error is None]
    return Answer(
        findings=tuple(item for item in sound if isinstance(item, Finding)),
        notes=tuple(item.text for item in sound if isinstance(item, Note)),
        errors=tuple(dict.fromkeys(error for error in wrong if error is not None)),
    )


@contextlib.contextmanager
def printing_to_stderr() -> Iterator[None]:
    """What the block prints goes to stderr."""
    with contextlib.redirect_stdout(sys.stderr):
        yield


def _where_it_raised(error: BaseException, loaded: LoadedRule) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if frame.filename == str(loaded.path)] or frames[-1:]
    place = f" ({Path(own[-1].filename).name}:{own[-1].lineno})" if own else ""
    return f"{type(error).__name__}: {error}"[:MAX_MESSAGE] + place
