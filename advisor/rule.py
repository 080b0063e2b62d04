"""All that a rule file imports: the `Rule` base class, the data it reads and the data it makes.

In: an `Analysis`.  Out: `Finding`s (advice) and notes (why a tempting fix is not proposed).

A rule is a frozen dataclass; its fields are its thresholds, set in `[tool.advisor.rules.<id>]`; its docstring is its
page.
"""

from __future__ import annotations

from collections.abc import Iterator as Iter
from dataclasses import dataclass
from typing import ClassVar

from advisor.model import catalog
from advisor.model.finding import (
    Code,
    Evidence,
    Finding,
    Fix,
    InsertAfter,
    MoveAfter,
    Prediction,
    Remove,
    Safety,
    SetArgument,
    SetOption,
)
from advisor.model.pipeline import Analysis, Iterator, OpCost, Pipeline, StepStats, Verdict
from advisor.model.recording import Call, Consumer, FunctionFacts, Host, Site

AUTOTUNE = Code("tf.data.AUTOTUNE")


@dataclass(frozen=True, slots=True)
class Note:
    """Something worth saying that is no advice."""

    text: str


@dataclass(frozen=True)
class Rule:
    """Base of all rules. Subclasses are frozen dataclasses named in CamelCase; the id is the file's name with
    dashes.
    """

    needs_input_bound: ClassVar[bool] = True
    """The engine asks the rule only when the verdict is input-bound. Device-side rules set this to False."""

    def check(self, analysis: Analysis) -> Iter[Finding | Note]:
        """Yield what is wrong; yield nothing for a healthy pipeline."""
        raise NotImplementedError


__all__ = [
    "AUTOTUNE",
    "Analysis",
    "Call",
    "Code",
    "Consumer",
    "Evidence",
    "Finding",
    "Fix",
    "FunctionFacts",
    "Host",
    "InsertAfter",
    "Iterator",
    "MoveAfter",
    "Note",
    "OpCost",
    "Pipeline",
    "Prediction",
    "Remove",
    "Rule",
    "Safety",
    "SetArgument",
    "SetOption",
    "Site",
    "StepStats",
    "Verdict",
    "catalog",
]
