"""What a rule says, and the edits that would mend it.

In: nothing.  Out: `Finding`, `Fix` and the closed set of `Edit`s, which two interpreters read: `replay/replay.py` (run time)
and `rewrite/source.py` (the user's file).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from advisor.model.recording import Site


class Safety(StrEnum):
    """What a fix does to the data; the order is from harmless to harmful."""

    EXACT = "exact"
    """The same elements in the same order, bit for bit."""
    RERANDOMIZED = "rerandomized"
    """Random ops draw other numbers of the same distribution."""
    REORDERED = "reordered"
    """The same elements in another order."""
    NUMERICS = "numerics"
    """Training arithmetic or schedule changes."""
    CHANGES = "changes"
    """Different data: never applied, only told."""


@dataclass(frozen=True, slots=True)
class Code:
    """An argument written as source text (`tf.data.AUTOTUNE`); `tf` stands for TensorFlow however the file imports
    it.
    """

    text: str


Value = Code | int | float | bool | str | None


@dataclass(frozen=True, slots=True)
class SetArgument:
    """Pass `name=value` in a call, replacing what was passed."""

    call_id: str
    name: str
    value: Value


@dataclass(frozen=True, slots=True)
class InsertAfter:
    """Add `.method(arguments)` behind a call."""

    call_id: str
    method: str
    arguments: tuple[tuple[str, Value], ...] = ()
    """(parameter, value); an empty parameter name means positional."""


@dataclass(frozen=True, slots=True)
class Remove:
    """Take a call out of its chain (its single input takes its place)."""

    call_id: str


@dataclass(frozen=True, slots=True)
class MoveAfter:
    """Take a call out of its chain and put it behind another call of the same chain."""

    call_id: str
    after_id: str


@dataclass(frozen=True, slots=True)
class SetOption:
    """Set a `tf.data.Options` field, dotted (`autotune.enabled`), behind a call; None removes what the user set."""

    call_id: str
    option: str
    value: Value


Edit = SetArgument | InsertAfter | Remove | MoveAfter | SetOption


@dataclass(frozen=True, slots=True)
class Fix:
    """Edits that belong together."""

    edits: tuple[Edit, ...]
    safety: Safety
    is_auto: bool
    """Applied without being asked for (its safety permitting)."""
    is_provable: bool = True
    """False: it makes nothing faster, it saves memory or restores what was meant. The change of the text is shown, never applied,
    for what is applied is proved to be faster."""
    assumptions: tuple[str, ...] = ()
    """What must hold so that the data stays as `safety` says, where no observation could establish it; a clause each, without a
    period. A fix with assumptions is tried only when its rule is asked for by name (`--only`), whatever levels are allowed."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """One measured fact. `value` keeps full precision; `unit` is `ns`, `bytes`, `share`, `elements/s`, `calls`, ``
    ...
    """

    name: str
    value: float
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Effect:
    """What a change does to one iterator: factors from 0 (gone) to 1 (unchanged)."""

    iterator_id: str
    cost: float
    """Of the time for which it keeps others waiting; parallel calls make this smaller and leave the work."""
    work: float = 1.0
    """Of the work that still has to be done by some core."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """Predicted end-to-end speedup (ratio of step times, > 1 is faster) with its range."""

    value: float
    low: float
    high: float
    effects: tuple[Effect, ...] = field(default=(), compare=False)
    """What it was predicted from, so that several changes can be predicted together; empty: nothing is known of that."""


@dataclass(frozen=True, slots=True)
class Finding:
    rule: str
    """The rule's id (`serial-map`)."""
    title: str
    """What to do, short: `Parallelise map(decode)`."""
    because: str
    """What was measured, with figures, in one or two sentences."""
    site: Site | None = None
    iterator_id: str | None = None
    call_id: str | None = None
    prediction: Prediction | None = None
    memory_bytes: int | None = None
    """Additional memory the change is predicted to hold; 0: none worth a word; None: unknown."""
    fix: Fix | None = None
    """None: advice only."""
    evidence: tuple[Evidence, ...] = ()
    diff: str | None = None
    """Unified one-hunk diff, filled in by the engine from the fix and the user's source."""
