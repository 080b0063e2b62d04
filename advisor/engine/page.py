"""The page of a rule, read from the docstrings of its class and its thresholds.

In: a rule class and its file. Out: `Page`, for `advisor explain RULE` and docs/rules.md.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import re
from dataclasses import dataclass, fields
from pathlib import Path

from advisor.rule import Rule

SECTIONS = ("Why it is slow", "What the fix does", "When not to", "What tf.data already does", "Thresholds")
"""The sections of every shipped rule's page, in this order; the last is generated from the rule's fields."""

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
    reasons = _field_docstrings(Path(inspect.getfile(Rule)), Rule.__name__) | _field_docstrings(path, cls.__name__)
    own = sorted(fields(cls), key=lambda field: field.name in Rule.__dataclass_fields__)
    thresholds = tuple(Threshold(field.name, field.default, reasons.get(field.name, "")) for field in own)
    sections["Thresholds"] = "\n".join(f"* `{t.name}` = {t.default!r}. {t.reason}".rstrip() for t in thresholds)
    return Page(pieces[0].strip(), sections, thresholds)


def _field_docstrings(path: Path, class_name: str) -> dict[str, str]:
    """Field name -> docstring."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    body = next((n.body for n in tree.body if isinstance(n, ast.ClassDef) and n.name == class_name), [])
    docstrings = {}
    for statement, following in itertools.pairwise(body):
        if (
            isinstance(statement, ast.AnnAssign)
            and isinstance(statement.target, ast.Name)
            and isinstance(following, ast.Expr)
        ):
            value = following.value
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                docstrings[statement.target.id] = " ".join(inspect.cleandoc(value.value).split())
    return docstrings
