"""Determines the effect of edits on the data by comparing elements.

In: the recorded calls and the edits.  Out: a `Judgement`: the observed safety level and the number of elements compared.

Several epochs of each side are sampled (`advisor.prove.trial.sampled_streams`).

1. Both sides are compared with the script's own seeds. If they are equal and all epochs are the same, the edits are `exact`.
   If only the last digits of a vectorised function's results differ, they are `numerics`, with the largest deviation.
2. If the pipeline is random, twins of both sides are compared, which draw the same numbers (`advisor.replay.replay`). If the
   twins are equal, the edits are `exact`, provided that the epochs differ from each other in the same way (a component drawn
   anew each epoch before the edits must be so after them) and that values which the script reproduces because it fixes a seed
   are reproduced bit for bit. If even two twins of the original differ, because its parallel calls draw in no fixed order, a
   difference in the same components with the same distribution counts as `exact`, and the note says so.
3. Otherwise, the same elements in another order are `reordered`, or `rerandomized` if the order itself is random, which means
   that it differs when the original is rebuilt with other seeds. If batches are composed of other elements, their rows are
   compared.
4. Otherwise, a component may differ only if it is random (it varies between epochs, or when the original is rebuilt with other
   seeds), and its figures must have the same distribution: `rerandomized`. Everything else is `changes`.

Every comparison states what it could have shown. If the elements could not have refuted the claim (there were none, too few for
a test to fail, or components without values), the judgement is undecided and gives the reason.

The input of a new cache must be the same every epoch. That is tested on the cache's own input, because a sample at the root may
be too short to reach a second epoch there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from advisor.capture.instrument.recorder import Recorder
from advisor.model.finding import Edit, Safety, Vectorize
from advisor.prove.trial.distribution_tests import (
    P_VALUE,
    SMALLEST_ORDER,
    Agreement,
    compare_distributions,
    has_moved,
    variation,
)
from advisor.prove.trial.element_digests import Bounds, Stream
from advisor.prove.trial.judgement import Judgement
from advisor.prove.trial.random_streams import broken_dependence, common_elements, judge_components, judge_counts
from advisor.prove.trial.rounding import largest_deviation
from advisor.prove.trial.sampled_streams import WANTED, SampledStreams
from advisor.replay.replay import AS_RECORDED, OTHER, TWIN, Built

_BATCHING = frozenset({"batch", "padded_batch", "ragged_batch", "sparse_batch", "rebatch", "bucket_by_sequence_length"})
OWN_NOISE = (
    "Parallel calls of the script draw their random numbers in no fixed order, so random components were compared by "
    "distribution."
)
_ROWS_NOT_COMPARED = (
    "Batches are composed differently, and their random components could not be compared by distribution."
)
_PART_OF_EPOCH = (
    "Only part of an epoch was compared, and in another order it contains other elements, so it is unknown whether elements are "
    "missing."
)


class Equivalence:
    """Compares edited versions of one recorded dataset with the original."""

    def __init__(self, recorder: Recorder, call_id: str, bounds: Bounds, files: Path) -> None:
        """Prepare the comparison.

        Args:
            recorder: A closed recorder with a replay log.
            call_id: The call that made the dataset.
            bounds: Limits for one pass over the dataset; about six passes are made.
            files: An existing temporary folder for file caches.
        """
        self._recorder, self._call_id, self._bounds, self._files = recorder, call_id, bounds, files
        self._made: SampledStreams | None = None

    @property
    def _streams(self) -> SampledStreams:
        if self._made is None:
            self._made = SampledStreams(self._recorder, self._call_id, self._bounds, self._files)
        return self._made

    def judge(self, edits: tuple[Edit, ...]) -> Judgement:
        """Compare the dataset with these edits to the original.

        Raises:
            CannotReplay: The dataset cannot be rebuilt with the edits.
            OriginalFails: The script's own pipeline raises an exception.
        """
        streams = self._streams
        before = streams.original(AS_RECORDED)
        after_dataset, after_built = streams.dataset(edits, AS_RECORDED)
        static = self._static_difference(after_dataset)
        if static:
            return self._judgement(Safety.CHANGES, static)
        frozen, unseen = self._frozen_by_cache(after_built)
        if frozen:
            return self._judgement(Safety.CHANGES, frozen)
        after = streams.collect(after_dataset, AS_RECORDED)
        if after.error:
            return self._judgement(Safety.CHANGES, f"it fails where the original does not: {after.error}")
        if after.rows == before.rows and streams.is_steady(before):
            judgement = self._judgement(Safety.EXACT, "")
        else:
            judgement = self._rounding(edits) or self._judge_random(edits, before, after)
        return replace(judgement, undecided=unseen) if unseen and judgement.seen is not Safety.CHANGES else judgement

    def _rounding(self, edits: tuple[Edit, ...]) -> Judgement | None:
        """`numerics` if a vectorised function changes nothing but the last digits of its results; None if that is not so."""
        if not any(isinstance(edit, Vectorize) for edit in edits):
            return None
        deviation = largest_deviation(self._streams.pairs(edits))
        return self._judgement(Safety.NUMERICS, deviation.text) if deviation is not None and deviation.ulp else None

    def _judge_random(self, edits: tuple[Edit, ...], before: Stream, after: Stream) -> Judgement:
        """Steps 2 to 4 of the module's docstring."""
        streams = self._streams
        is_count_different = len(after.rows) != len(before.rows)
        constant = "" if is_count_different else self._no_longer_random(before, after)
        if constant:
            return self._judgement(Safety.CHANGES, constant)
        twin = streams.comparable(streams.original(TWIN))
        after_twin = streams.comparable(streams.collect(streams.dataset(edits, TWIN)[0], TWIN))
        if twin.rows == after_twin.rows and self._is_reproduced(before, after):
            return self._judgement(Safety.EXACT, "", self._equal_by_chance(twin))
        if is_count_different:
            return self._judgement(*judge_counts(streams, before, after))
        other = streams.comparable(streams.original(OTHER))
        order = self._order(edits, before, twin, after_twin, other)
        if order is not None:
            return order
        judgement = self._judgement(*judge_components(streams, before, after, twin, after_twin, other))
        becomes_random = streams.is_steady(before) and not streams.is_steady(after)
        if judgement.seen is Safety.CHANGES and not becomes_random and self._is_batched():
            rows = self._compare_rows(edits)
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
        if not note and not streams.is_complete:
            note = f"Only the first {streams.length} elements were compared."
        if seen is Safety.CHANGES:
            undecided = power = ""
        elif seen is not None:
            undecided = self._not_compared() or undecided
        return Judgement(seen, streams.length, streams.is_complete, note, streams.element_bytes, undecided, power)

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
        if not streams.is_complete and streams.length < SMALLEST_ORDER:
            elements = "element was" if streams.length == 1 else f"{streams.length} elements were"
            return f"Only the first {elements} compared, which is too few to detect another order."
        return ""

    def _equal_by_chance(self, twin: Stream) -> str:
        """Return a sentence if the elements are equal with other seeds too, so that equality says nothing about randomness."""
        other = self._streams.comparable(self._streams.original(OTHER))
        if len(other.rows) != len(twin.rows):
            return ""
        equal = sum(one == two for one, two in zip(twin.rows, other.rows, strict=True))
        if (equal / max(1, len(twin.rows))) ** len(twin.rows) < P_VALUE:
            return ""
        return "The random changes are too rare to be compared: other seeds produce the same elements."

    def _static_difference(self, after: Any) -> str:  # noqa: ANN401
        before = self._streams.original_built()[-1].dataset
        if after.element_spec != before.element_spec:
            return f"the element spec is {after.element_spec} instead of {before.element_spec}"
        old, new = int(before.cardinality()), int(after.cardinality())
        if old != new and old != -2 and new != -2:
            return f"an epoch has {_counted(new)} elements instead of {_counted(old)}"
        return ""

    def _frozen_by_cache(self, built: Sequence[Built]) -> tuple[str, str]:
        """Check the inputs of new caches.

        Returns:
            What a cache would freeze that is not frozen in the original, and why that could not be determined; both may be empty.
        """
        unseen = ""
        original = {built_call.id: built_call for built_call in self._streams.original_built()}
        for cache in built:
            if cache.method != "cache" or cache.input is None or not cache.is_new or cache.is_inside:
                continue
            known = original.get(cache.id)
            if known is not None and known.input is not None and self._streams.repeats(known.input) is False:
                continue  # the script's own cache freezes it
            repeats = self._streams.repeats(cache.input)
            if repeats is False:
                return "a cache would freeze elements that vary between epochs", ""
            if repeats is None:
                unseen = "The input of the cache produced no comparable element, so it is unknown what the cache would freeze."
        return "", unseen

    def _is_reproduced(self, before: Stream, after: Stream) -> bool:
        """Whether each component that is the same in two runs of the script is also the same with the edits.

        Checked only if a seed is fixed, because two runs of a short random pipeline may be equal by chance.
        """
        if not self._is_seeded():
            return True
        runs = [
            self._streams.comparable(stream) for stream in (before, self._streams.original(AS_RECORDED, run=1), after)
        ]
        if len(runs[0].rows) != len(runs[1].rows):
            return True  # the number of elements is random, so no two runs are the same
        for component in range(len(before.rows[0]) if before.rows else 0):
            one, two, edited = (stream.column(component) for stream in runs)
            if one == two != edited:
                return False
        return True

    def _is_seeded(self) -> bool:
        """Whether the script fixes a seed that affects its datasets."""
        log = self._recorder.replay_log
        has_global = log is not None and any(call.seeds.global_seed is not None for call in log.calls.values())
        return has_global or any(
            call.arguments.get("seed") is not None or (call.function is not None and call.function.is_seeded)
            for call in self._recorder.calls()
        )

    def _is_own_noise(self, twin: Stream, after: Stream) -> bool:
        """Whether only those components differ that differ between two runs of the unchanged script with the same seeds.

        They do if parallel calls draw random numbers in the order in which they happen to run.
        """
        again = self._streams.comparable(self._streams.original(TWIN, run=1))
        components = range(len(twin.rows[0]) if twin.rows else 0)
        columns = [(twin.column(i), again.column(i), after.column(i)) for i in components]
        return all(one != other for one, other, edited in columns if one != edited)

    def _no_longer_random(self, before: Stream, after: Stream) -> str:
        """Name a component that varies between epochs before the edits, and not or less after them; empty if there is none."""
        old, new = self._streams.epochs_of(before), self._streams.epochs_of(after)
        for component in range(len(before.rows[0]) if before.rows else 0):
            was, now = (variation([epoch.column(component) for epoch in epochs]) for epochs in (old, new))
            if (
                not self._streams.is_complete
            ):  # whether passes over part of an epoch contain the same elements is chance
                was, now = min(was, 1), min(now, 1)
            if now < was:
                what = "the order" if was == 1 and self._streams.is_complete else "the values"
                return f"{what} of component {component + 1} varied between epochs before the change and no longer does"
        return ""

    # -- order

    def _order(
        self, edits: tuple[Edit, ...], before: Stream, twin: Stream, after: Stream, other: Stream
    ) -> Judgement | None:
        """Return the judgement if the elements are the same except for their order, else None."""
        same = self._same_elements(twin, after, other)
        if same is not Agreement.DIFFERENT:
            is_random = not self._streams.is_steady(before) or (
                self._same_elements(twin, other, other) is not Agreement.DIFFERENT and twin.rows != other.rows
            )
            return self._order_judgement(is_random, same)
        if not self._is_batched():
            return None
        rows = [self._streams.rows_of_batches(dataset, seeding) for dataset, seeding in self._sides(edits)]
        if any(stream is None for stream in rows):
            return None
        old, new, drawn = (stream for stream in rows if stream is not None)
        if len(old.rows) == len(drawn.rows) != len(new.rows):
            return self._judgement(
                Safety.CHANGES, f"the batches contain {len(new.rows)} rows instead of {len(old.rows)}"
            )
        if not self._streams.is_steady(before) and not has_moved(old.rows, new.rows):
            return None  # the order is the same; parallel calls raced for the random numbers
        same = Agreement.SAME
        if old.counted() != new.counted():
            if self._streams.is_complete and old.counted() == drawn.counted():
                return self._judgement(Safety.CHANGES, "the batches contain other rows, although rows are not random")
            same = Agreement.DIFFERENT if self._streams.is_complete else common_elements(old, new, drawn)
            if same is Agreement.DIFFERENT:
                return None  # an endless dataset is cut within an epoch, which contains other rows in another order
        return self._order_judgement(not self._streams.is_steady(before) or self._is_drawn(old, drawn), same)

    def _is_drawn(self, rows: Stream, drawn: Stream) -> bool:
        """Whether other seeds give the same rows in another order."""
        if rows.rows == drawn.rows:
            return False
        if self._streams.is_complete:
            return rows.counted() == drawn.counted()
        return common_elements(rows, drawn, drawn) is Agreement.SAME

    def _sides(self, edits: tuple[Edit, ...]) -> list[tuple[Any, str]]:
        return [
            (self._streams.dataset((), TWIN)[0], TWIN),
            (self._streams.dataset(edits, TWIN)[0], TWIN),
            (self._streams.dataset((), OTHER)[0], OTHER),
        ]

    def _order_judgement(self, is_random: bool, same: Agreement) -> Judgement:
        undecided = _PART_OF_EPOCH if same is Agreement.UNDECIDED else ""
        return self._judgement(Safety.RERANDOMIZED if is_random else Safety.REORDERED, "", undecided)

    def _same_elements(self, one: Stream, two: Stream, drawn: Stream) -> Agreement:
        """Compare the elements of each epoch regardless of their order; for parts of an epoch, see `common_elements`.

        `drawn` is the original with other seeds.
        """
        if not self._streams.is_complete:
            return common_elements(one, two, drawn)
        pairs = zip(self._streams.epochs_of(one), self._streams.epochs_of(two), strict=True)
        return Agreement.SAME if all(a.counted() == b.counted() for a, b in pairs) else Agreement.DIFFERENT

    def _is_batched(self) -> bool:
        todo, seen = [self._call_id], set[str]()
        while todo:
            call = self._recorder.call(todo.pop())
            if call is None or call.id in seen:
                continue
            seen.add(call.id)
            if call.method in _BATCHING:
                return True
            todo += call.inputs
        return False

    def _compare_rows(self, edits: tuple[Edit, ...]) -> Agreement:
        """Whether differently composed batches contain the same rows as before, except for random components."""
        rows = [self._streams.rows_of_batches(dataset, seeding) for dataset, seeding in self._sides(edits)]
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


def _counted(cardinality: int) -> str:
    return "infinitely many" if cardinality == -1 else str(cardinality)
