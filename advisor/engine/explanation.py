"""The page of a rule, read from the docstrings of its class and its thresholds.

In: a rule class and its file. Out: `Page`, for `advisor explain RULE` and docs/rules.md.
"""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass, fields
from pathlib import Path

from advisor.model.field_docstrings import field_docstrings
from advisor.rule import Rule

_HEADING = re.compile(r"^## (.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Threshold:
    """A field of a rule."""

    name: str
    default: object
    reason: str
    """Meaning, unit and justification of the value: the docstring of the field."""


@dataclass(frozen=True, slots=True)
class Page:
    """The documentation of a rule."""

    summary: str
    """The problem in one sentence."""
    sections: dict[str, str]
    """Heading -> Markdown text."""
    thresholds: tuple[Threshold, ...]


def read_page(cls: type[Rule], path: Path) -> Page:
    """The page of the rule class in the file `path`."""
    pieces = _HEADING.split(inspect.cleandoc(cls.__doc__ or ""))
    sections = {heading.strip(): text.strip() for heading, text in zip(pieces[1::2], pieces[2::2], strict=True)}
    reasons = field_docstrings(Path(inspect.getfile(Rule)), Rule.__name__) | field_docstrings(path, cls.__name__)
    own = sorted(fields(cls), key=lambda field: field.name in Rule.__dataclass_fields__)
    thresholds = tuple(Threshold(field.name, field.default, reasons.get(field.name, "")) for field in own)
    sections["Thresholds"] = "\n".join(f"* `{t.name}` = {t.default!r}. {t.reason}".rstrip() for t in thresholds)
    return Page(pieces[0].strip(), sections, thresholds)
