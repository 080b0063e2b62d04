"""How a paired test that may stop early has ended, and what that means for its estimate.

`PairedTest` is made by `advisor.prove.measure.end_to_end`, with the reasons of `advisor.model.sequential_test`.
"""

from __future__ import annotations

from dataclasses import dataclass

from advisor.model import units

CLEAR, FUTILE, CURTAILED, LAST = "clear", "futile", "curtailed", "last"
"""Why a test stopped: the interval excludes 1; it excludes a worthwhile gain; the pairs that remain could not make it exclude 1;
all pairs were measured."""
OUT_OF_TIME = "out of time"
"""The time was used up before the test had decided."""
REASONS = (CLEAR, FUTILE, CURTAILED, LAST, OUT_OF_TIME)


@dataclass(frozen=True, slots=True)
class PairedTest:
    """The pairs of runs behind a ratio of step times."""

    ended_because: str
    """One of `REASONS`."""
    pairs: int
    """Number of pairs that were measured."""
    max_pairs: int
    """Number of pairs after which the test would have ended at the latest."""
    median: tuple[float, float, float] | None = None
    """The median of the ratios with its exact 95 % interval (value, low, high), which assumes no distribution but does not allow
    for early stopping; None with fewer than 6 pairs, which have no such interval."""

    @property
    def is_early(self) -> bool:
        """Whether the test stopped because of its result, so that its estimate is conditional on that."""
        return self.ended_because in (CLEAR, FUTILE, CURTAILED)

    @property
    def sentences(self) -> tuple[str, ...]:
        """What a reader of the estimate should know."""
        told = []
        after = f"The runs ended early, after {self.pairs} of up to {self.max_pairs} pairs"
        if self.ended_because == CLEAR:
            told.append(
                f"{after}, as the result was clear: the measured effect is conditional on that, and probably somewhat too large."
            )
        elif self.is_early:
            told.append(
                f"{after}, as more could not have shown an effect that counts: the measured ratio is conditional on that."
            )
        if self.median is not None:
            told.append(
                f"The exact interval of the median of the {self.pairs} pairs is {units.format_range(*self.median)}."
            )
        return tuple(told)
