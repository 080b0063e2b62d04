"""Evaluate one rule on one analysis, whatever its code does.

In: a `LoadedRule` and an `Analysis`. Out: an `Answer` with findings, notes and errors. Output printed by the rule goes
to stderr, because stdout is reserved for the report.
"""

from __future__ import annotations

import contextlib
import sys
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from advisor.engine.finding_checks import finding_error
from advisor.engine.rule_file import LoadedRule
from advisor.model.finding import Finding, Rejected
from advisor.model.pipeline import Analysis
from advisor.rule import Note

MAX_ITEMS = 1_000
"""Maximum number of findings and notes of one rule. It also ends a rule that never stops yielding."""
MAX_MESSAGE = 1_000


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of one rule."""

    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    rejected: tuple[Rejected, ...] = ()
    errors: tuple[str, ...] = ()
    """One sentence per error; each becomes a row of the report."""


def ask(loaded: LoadedRule, analysis: Analysis) -> Answer:
    """Evaluate the rule in this process. Only KeyboardInterrupt propagates; other exceptions become errors."""
    items: list[object] = []
    with printing_to_stderr():
        try:
            for item in loaded.rule.check(analysis):
                items.append(item)
                if len(items) > MAX_ITEMS:
                    return Answer(errors=(f"yielded more than {MAX_ITEMS:,} findings and notes",))
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # `sys.exit(0)` in a rule must not end the command, for example in CI
            return Answer(errors=(_where_it_raised(error, loaded),))
    item_errors = [finding_error(item) for item in items]
    valid = [item for item, error in zip(items, item_errors, strict=True) if error is None]
    return Answer(
        findings=tuple(item for item in valid if isinstance(item, Finding)),
        notes=tuple(item.text for item in valid if isinstance(item, Note)),
        rejected=tuple(item for item in valid if isinstance(item, Rejected)),
        errors=tuple(dict.fromkeys(error for error in item_errors if error is not None)),
    )


@contextlib.contextmanager
def printing_to_stderr() -> Iterator[None]:
    """Redirect the block's output from stdout to stderr."""
    with contextlib.redirect_stdout(sys.stderr):
        yield


def _where_it_raised(error: BaseException, loaded: LoadedRule) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if frame.filename == str(loaded.path)] or frames[-1:]
    place = f" ({Path(own[-1].filename).name}:{own[-1].lineno})" if own else ""
    return f"{type(error).__name__}: {error}"[:MAX_MESSAGE] + place
