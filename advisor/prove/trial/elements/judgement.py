"""What comparing elements showed about the effect of edits on the data.

In: nothing.  Out: the type `Judgement`, which `advisor.prove.trial.elements.element_comparison` makes.
"""

from __future__ import annotations

from dataclasses import dataclass

from advisor.model.finding import Safety

_LEVELS = tuple(Safety)


@dataclass(frozen=True, slots=True)
class Judgement:
    """The observed effect of edits on the elements."""

    seen: Safety | None
    """None: unknown; `note` gives the reason."""
    elements: int
    """Number of elements compared, without repetitions in further epochs."""
    is_complete: bool
    """All elements of an epoch were compared."""
    note: str = ""
    """What differed, or what limits the statement."""
    element_bytes: float = 0.0
    """Mean size of an element."""
    undecided: str = ""
    """Why the elements could not have refuted `seen`, in one sentence; empty if they could."""
    power: str = ""
    """What a comparison by distribution could have shown, in one sentence; empty if elements were compared bit by bit."""

    @property
    def text(self) -> str:
        """All limits of the statement, in sentences."""
        parts = dict.fromkeys(part.rstrip(".") for part in (self.undecided, self.note, self.power) if part)
        return " ".join(f"{part[:1].upper()}{part[1:]}." for part in parts)

    def holds(self, claimed: Safety) -> bool:
        """Whether nothing worse than the claimed level was observed."""
        return self.seen is not None and _LEVELS.index(self.seen) <= _LEVELS.index(claimed)
