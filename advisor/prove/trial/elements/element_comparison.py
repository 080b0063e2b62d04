"""Determines the effect of a change on the data by comparing the elements of two datasets.

In: the streams of both (`advisor.prove.trial.elements.compared_streams`).  Out: a `Judgement`: the observed safety level and
the number
of elements compared.

Several epochs of each side are sampled (`advisor.prove.trial.elements.sampled_streams`).

1. Both sides are compared with the script's own seeds. If they are equal and all epochs are the same, the edits are `exact`.
   If only the last digits of a vectorised function's results differ, they are `numerics`, with the largest deviation.
2. If the pipeline is random, twins of both sides are compared, which draw the same numbers (`advisor.replay.replay`). If the
   twins are equal, the edits are `exact`, provided that the epochs differ from each other in the same way (a component drawn
   anew each epoch before the edits must be so after them) and that values which the script reproduces because it fixes a seed
   are reproduced bit for bit. If even two twins of the original differ, because its parallel calls draw in no fixed order, a
   difference in the same components with the same distribution counts as `exact`, and the note says so.
3. Otherwise, the same elements in another order are `reordered`, or `rerandomized` if the order itself is random, which means
   that it differs when the original is rebuilt with other seeds. If batches are composed of other elements, their rows are
   compared. If only a part of an epoch was compared, and every common element has kept its place, nothing was lost in that part:
   the others have drawn other numbers, and step 4 judges these.
4. Otherwise, a component may differ only if it is random (it varies between epochs, or when the original is rebuilt with other
   seeds), and its figures must have the same distribution: `rerandomized`. Everything else is `changes`.

Every comparison states what it could have shown. If the elements could not have refuted the claim (there were none, too few for
a test to fail, or components without values), the judgement is undecided and gives the reason.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from advisor.model.finding import Safety
from advisor.prove.trial.elements.compared_streams import WANTED, ComparedStreams
from advisor.prove.trial.elements.distribution_tests import (
    P_VALUE,
    SMALLEST_ORDER,
    Agreement,
    compare_distributions,
    has_kept_places,
    has_moved,
    variation,
)
from advisor.prove.trial.elements.judgement import Judgement
from advisor.prove.trial.elements.random_streams import (
    broken_dependence,
    common_elements,
    judge_components,
    judge_counts,
)
from advisor.prove.trial.elements.streams import Stream
from advisor.replay.seedings import AS_RECORDED, OTHER, TWIN

OWN_NOISE = (
    "Two runs of the script's own pipeline draw different random numbers, "
    "so random components were compared by distribution."
)
_ROWS_NOT_COMPARED = (
    "Batches are composed differently, and their random components could not be compared by distribution."
)
_PART_OF_EPOCH = (
    "Only part of an epoch was compared, and in another order it contains other elements, so it is unknown whether elements are "
    "missing."
)


class ElementComparison:
    """Judges one pair of datasets."""

    def __init__(self, streams: ComparedStreams) -> None:
        """Prepare the comparison; nothing is sampled yet."""
        self._streams = streams

    def judge(self) -> Judgement:
        """Compare the changed dataset with the original.

        Raises:
            CannotReplay: A dataset cannot be rebuilt.
            OriginalFails: The script's own pipeline raises an exception.
        """
        streams = self._streams
        before = streams.original(AS_RECORDED)
        static = streams.static_difference()
        if static:
            return self._judgement(Safety.CHANGES, static)
        frozen, unseen = streams.frozen_by_cache()
        if frozen:
            return self._judgement(Safety.CHANGES, frozen)
        after = streams.changed(AS_RECORDED)
        if after.error:
            return self._judgement(Safety.CHANGES, f"it fails where the original does not: {after.error}")
        if after.rows == before.rows and streams.passes.is_steady(before):
            judgement = self._judgement(Safety.EXACT, "")
        else:
            judgement = self._rounding() or self._judge_random(before, after)
        return replace(judgement, undecided=unseen) if unseen and judgement.seen is not Safety.CHANGES else judgement

    def _rounding(self) -> Judgement | None:
        """`numerics` if only the last digits of numbers differ; None if that is not so."""
        deviation = self._streams.rounding()
        return self._judgement(Safety.NUMERICS, deviation.text) if deviation is not None and deviation.ulp else None

    def _judge_random(self, before: Stream, after: Stream) -> Judgement:
        """Steps 2 to 4 of the module's docstring."""
        streams = self._streams
        is_count_different = len(after.rows) != len(before.rows)
        constant = "" if is_count_different else self._no_longer_random(before, after)
        if constant:
            return self._judgement(Safety.CHANGES, constant)
        twin = streams.passes.comparable(streams.original(TWIN))
        after_twin = streams.passes.comparable(streams.changed(TWIN))
        if twin.rows == after_twin.rows and self._is_reproduced(before, after):
            return self._judgement(Safety.EXACT, "", self._equal_by_chance(twin))
        if is_count_different:
            return self._judgement(*judge_counts(streams, before, after))
        other = streams.passes.comparable(streams.original(OTHER))
        order = self._order(before, twin, after_twin, other)
        if order is not None:
            return order
        judgement = self._judgement(*judge_components(streams, before, after, twin, after_twin, other))
        becomes_random = streams.passes.is_steady(before) and not streams.passes.is_steady(after)
        if judgement.seen is Safety.CHANGES and not becomes_random and self._streams.is_batched:
            rows = self._compare_rows()
            if (
                rows is not Agreement.DIFFERENT
            ):  # batches of the same rows, composed differently, with random components
                return self._judgement(Safety.REORDERED, "", _ROWS_NOT_COMPARED if rows is Agreement.UNDECIDED else "")
        if judgement.seen is Safety.RERANDOMIZED and self._is_own_noise(twin, after_twin):
            return replace(judgement, seen=Safety.EXACT, note=OWN_NOISE)
        return judgement

    # -- single tests

    def _judgement(self, seen: Safety | None, note: str, undecided: str = "", power: str = "") -> Judgement:
        streams = self._streams
        if not note and not streams.passes.is_complete:
            note = f"Only the first {streams.passes.length} elements were compared."
        if seen is Safety.CHANGES:
            undecided = power = ""
        elif seen is not None:
            undecided = self._not_compared() or undecided
        return Judgement(
            seen,
            streams.passes.length,
            streams.passes.is_complete,
            note,
            streams.passes.element_bytes,
            undecided,
            power,
        )

    def _not_compared(self) -> str:
        """Why no claim at all could have been refuted; empty if one could."""
        streams = self._streams
        stream = streams.original(AS_RECORDED)
        if not stream.rows:
            return "The dataset produced no elements, so nothing was compared."
        if stream.opaque:
            what = "components" if len(stream.opaque) > 1 else "component"
            numbers = ", ".join(str(component + 1) for component in stream.opaque)
            return f"Not compared: {what} {numbers} of the elements, which have no values (a variant or a resource)."
        if not streams.passes.is_complete and streams.passes.length < SMALLEST_ORDER:
            elements = "element was" if streams.passes.length == 1 else f"{streams.passes.length} elements were"
            return f"Only the first {elements} compared, which is too few to detect another order."
        return ""

    def _equal_by_chance(self, twin: Stream) -> str:
        """Return a sentence if the elements are equal with other seeds too, so that equality says nothing about randomness."""
        other = self._streams.passes.comparable(self._streams.original(OTHER))
        if len(other.rows) != len(twin.rows):
            return ""
        equal = sum(one == two for one, two in zip(twin.rows, other.rows, strict=True))
        if (equal / max(1, len(twin.rows))) ** len(twin.rows) < P_VALUE:
            return ""
        return "The random changes are too rare to be compared: other seeds produce the same elements."

    def _is_reproduced(self, before: Stream, after: Stream) -> bool:
        """Whether each component that is the same in two runs of the script is also the same with the edits.

        Checked only if a seed is fixed, because two runs of a short random pipeline may be equal by chance.
        """
        if not self._streams.is_seeded:
            return True
        runs = [
            self._streams.passes.comparable(stream)
            for stream in (before, self._streams.original(AS_RECORDED, run=1), after)
        ]
        if len(runs[0].rows) != len(runs[1].rows):
            return True  # the number of elements is random, so no two runs are the same
        for component in range(len(before.rows[0]) if before.rows else 0):
            one, two, edited = (stream.column(component) for stream in runs)
            if one == two != edited:
                return False
        return True

    def _is_own_noise(self, twin: Stream, after: Stream) -> bool:
        """Whether only those components differ that differ between two runs of the unchanged script with the same seeds.

        They do if parallel calls draw random numbers in the order in which they happen to run.
        """
        again = self._streams.passes.comparable(self._streams.original(TWIN, run=1))
        components = range(len(twin.rows[0]) if twin.rows else 0)
        columns = [(twin.column(i), again.column(i), after.column(i)) for i in components]
        return all(one != other for one, other, edited in columns if one != edited)

    def _no_longer_random(self, before: Stream, after: Stream) -> str:
        """Name a component that varies between epochs before the edits, and not or less after them; empty if there is none."""
        old, new = self._streams.passes.epochs_of(before), self._streams.passes.epochs_of(after)
        for component in range(len(before.rows[0]) if before.rows else 0):
            was, now = (variation([epoch.column(component) for epoch in epochs]) for epochs in (old, new))
            if (
                not self._streams.passes.is_complete
            ):  # whether passes over part of an epoch contain the same elements is chance
                was, now = min(was, 1), min(now, 1)
            if now < was:
                what = "the order" if was == 1 and self._streams.passes.is_complete else "the values"
                return f"{what} of component {component + 1} varied between epochs before the change and no longer does"
        return ""

    # -- order

    def _order(self, before: Stream, twin: Stream, after: Stream, other: Stream) -> Judgement | None:
        """Return the judgement if the elements are the same except for their order, else None."""
        same = self._same_elements(twin, after, other)
        is_steady = self._streams.passes.is_steady(before)
        if same is Agreement.UNDECIDED and not is_steady and has_kept_places(twin.rows, after.rows):
            return None  # the order is the same; parallel calls raced for the random numbers of some elements
        if same is not Agreement.DIFFERENT:
            is_random = not is_steady or (
                self._same_elements(twin, other, other) is not Agreement.DIFFERENT and twin.rows != other.rows
            )
            return self._order_judgement(is_random, same)
        if not self._streams.is_batched:
            return None
        rows = self._rows()
        if any(stream is None for stream in rows):
            return None
        old, new, drawn = (stream for stream in rows if stream is not None)
        if len(old.rows) == len(drawn.rows) != len(new.rows):
            return self._judgement(
                Safety.CHANGES, f"the batches contain {len(new.rows)} rows instead of {len(old.rows)}"
            )
        if not is_steady and not has_moved(old.rows, new.rows):
            return None  # the order is the same; parallel calls raced for the random numbers
        same = Agreement.SAME
        if old.counted() != new.counted():
            if self._streams.passes.is_complete and old.counted() == drawn.counted():
                return self._judgement(Safety.CHANGES, "the batches contain other rows, although rows are not random")
            same = Agreement.DIFFERENT if self._streams.passes.is_complete else common_elements(old, new, drawn)
            if same is Agreement.DIFFERENT:
                return None  # an endless dataset is cut within an epoch, which contains other rows in another order
        return self._order_judgement(not is_steady or self._is_drawn(old, drawn), same)

    def _is_drawn(self, rows: Stream, drawn: Stream) -> bool:
        """Whether other seeds give the same rows in another order."""
        if rows.rows == drawn.rows:
            return False
        if self._streams.passes.is_complete:
            return rows.counted() == drawn.counted()
        return common_elements(rows, drawn, drawn) is Agreement.SAME

    def _rows(self) -> tuple[Stream | None, Stream | None, Stream | None]:
        """Return the rows of the batches of the original, of the changed dataset, and of the original with other seeds."""
        streams = self._streams
        return streams.rows(TWIN, False), streams.rows(TWIN, True), streams.rows(OTHER, False)

    def _order_judgement(self, is_random: bool, same: Agreement) -> Judgement:
        undecided = _PART_OF_EPOCH if same is Agreement.UNDECIDED else ""
        return self._judgement(Safety.RERANDOMIZED if is_random else Safety.REORDERED, "", undecided)

    def _same_elements(self, one: Stream, two: Stream, drawn: Stream) -> Agreement:
        """Compare the elements of each epoch regardless of their order; for parts of an epoch, see `common_elements`.

        `drawn` is the original with other seeds.
        """
        if not self._streams.passes.is_complete:
            return common_elements(one, two, drawn)
        pairs = zip(self._streams.passes.epochs_of(one), self._streams.passes.epochs_of(two), strict=True)
        return Agreement.SAME if all(a.counted() == b.counted() for a, b in pairs) else Agreement.DIFFERENT

    def _compare_rows(self) -> Agreement:
        """Whether differently composed batches contain the same rows as before, except for random components."""
        rows = self._rows()
        if any(stream is None or not stream.rows for stream in rows):
            return Agreement.DIFFERENT
        old, new, drawn = (stream for stream in rows if stream is not None)
        if len(old.rows) != len(new.rows) or len(old.rows) < WANTED:
            return Agreement.DIFFERENT
        seen = Agreement.SAME
        for component in range(len(old.rows[0])):
            was, now, other = (Counter(stream.column(component)) for stream in (old, new, drawn))
            if was == now:
                continue
            agreement = Agreement.DIFFERENT if was == other else compare_distributions(old, drawn, new, component)
            if agreement is Agreement.DIFFERENT:
                return Agreement.DIFFERENT
            seen = Agreement.UNDECIDED if agreement is Agreement.UNDECIDED else seen
        return Agreement.DIFFERENT if broken_dependence(old, drawn, new, is_complete=True) else seen
