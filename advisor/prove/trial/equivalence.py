"""What edits did to the data, seen on real elements.

In: the recorded calls and the edits.  Out: a `Judgement`: the safety level seen, on how many elements.

Each side is probed over several epochs (`advisor.prove.trial.sampled_streams`).

1. Before and after, seeded as the script is. Equal, and every epoch the same: `exact`.
   A vectorised function whose results differ in their last digits alone: `numerics`, with the largest deviation.
2. A random pipeline: twins of both, which draw the same numbers (`advisor.replay.replay`). Twins equal: `exact`, if the epochs
   also differ from each other in the same way (a component that is drawn anew each epoch before must be so after) and what the
   script itself reproduces, because it fixes a seed, comes again bit for bit. Where the script's own twin does not come
   again, because parallel calls draw in no fixed order, a difference like its own, of the same distribution, is no
   difference: `exact`, and the note says so.
3. Else the same elements in another order are `reordered`, or `rerandomized` where the order is itself random: it differs when
   the original is made with other seeds. If batches were composed of other elements, their rows are compared.
4. Else a component may differ only if it is random (it differs from epoch to epoch, or when the original is made with other
   seeds), and then its figures must be of the same distribution: `rerandomized`. All else is `changes`.

Every comparison knows what it could have shown. Where the elements seen could not have refuted the claim (none came, too few for
a test to fail, components without values), the judgement is undecided, with the reason.

A new cache must stand behind something that repeats itself; that is tested where it stands, for the root may be too far away to
see a second epoch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from advisor.capture.instrument.recorder import Recorder
from advisor.model import units
from advisor.model.finding import Edit, Safety, Vectorize
from advisor.prove.trial.distribution_tests import (
    P_VALUE,
    SMALLEST_ORDER,
    Likeness,
    common_share,
    has_moved,
    likeness,
    loss_is_visible,
    pairing,
    probability_of_counts,
    smallest_visible_loss,
    smallest_visible_share,
    variation,
)
from advisor.prove.trial.element_digests import Bounds, Stream
from advisor.prove.trial.rounding import largest_deviation
from advisor.prove.trial.sampled_streams import WANTED, Probes
from advisor.replay.replay import AS_RECORDED, OTHER, TWIN, Built

_LEVELS = tuple(Safety)
_BATCHING = frozenset({"batch", "padded_batch", "ragged_batch", "sparse_batch", "rebatch", "bucket_by_sequence_length"})
OWN_NOISE = (
    "Parallel calls of the script itself draw their random numbers in no fixed order, so what is random was compared by its "
    "distribution."
)
_TOO_FEW_ROWS = "Batches are composed otherwise, and their random components could not be compared by distribution."
_OTHER_PART = (
    "Only a part of an epoch was seen, and in another order it holds other elements: whether all come is unknown."
)
_MAX_PAIRED = 6
"""Components that are compared pair by pair."""
_VISIBLE_LOSS = 0.1
"""Where elements are only counted, at least the loss of this share of them must be visible."""
_VISIBLE_CHANCE = 0.25
"""The same where only the share of common elements tells, which is a rough measure."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What was seen."""

    seen: Safety | None
    """None: it could not be told; `note` says why."""
    elements: int
    """Elements compared: different ones, not counting their repetitions."""
    is_complete: bool
    """All elements of an epoch were compared."""
    note: str = ""
    """What differed, or what limits the statement."""
    element_bytes: float = 0.0
    """Mean size of an element."""
    undecided: str = ""
    """Why the elements seen could not have refuted `seen`, in one sentence; empty: they could."""
    power: str = ""
    """What a comparison by distribution could have shown, in one sentence; empty: elements were compared bit by bit."""

    @property
    def text(self) -> str:
        """All that limits the statement, in sentences."""
        parts = dict.fromkeys(part.rstrip(".") for part in (self.undecided, self.note, self.power) if part)
        return " ".join(f"{part[:1].upper()}{part[1:]}." for part in parts)

    def holds(self, claimed: Safety) -> bool:
        """Whether the claim holds: nothing worse was seen."""
        return self.seen is not None and _LEVELS.index(self.seen) <= _LEVELS.index(claimed)


class Equivalence:
    """Compares edits of one recorded dataset with the original."""

    def __init__(self, recorder: Recorder, call_id: str, bounds: Bounds, files: Path) -> None:
        """`bounds` hold for one pass over the dataset; about six passes are made."""
        self._recorder, self._call_id, self._bounds, self._files = recorder, call_id, bounds, files
        self._made: Probes | None = None

    @property
    def _probes(self) -> Probes:
        if self._made is None:
            self._made = Probes(self._recorder, self._call_id, self._bounds, self._files)
        return self._made

    def judge(self, edits: tuple[Edit, ...]) -> Judgement:
        """Compare. Raises CannotReplay, and OriginalFails where the script's own pipeline raises."""
        probes = self._probes
        before = probes.original(AS_RECORDED)
        after_dataset, after_built = probes.dataset(edits, AS_RECORDED)
        static = self._static_difference(after_dataset)
        if static:
            return self._told(Safety.CHANGES, static)
        frozen, unseen = self._frozen(after_built)
        if frozen:
            return self._told(Safety.CHANGES, frozen)
        after = probes.collect(after_dataset, AS_RECORDED)
        if after.error:
            return self._told(Safety.CHANGES, f"it fails where the original does not: {after.error}")
        if after.rows == before.rows and probes.is_steady(before):
            judgement = self._told(Safety.EXACT, "")
        else:
            judgement = self._rounding(edits) or self._judge_random(edits, before, after)
        return replace(judgement, undecided=unseen) if unseen and judgement.seen is not Safety.CHANGES else judgement

    def _rounding(self, edits: tuple[Edit, ...]) -> Judgement | None:
        """`numerics` if a vectorised function changes nothing but the last digits of its results; None if that is not so."""
        if not any(isinstance(edit, Vectorize) for edit in edits):
            return None
        deviation = largest_deviation(self._probes.pairs(edits))
        return self._told(Safety.NUMERICS, deviation.text) if deviation is not None and deviation.ulp else None

    def _judge_random(self, edits: tuple[Edit, ...], before: Stream, after: Stream) -> Judgement:
        """Steps 2 to 4 of the module's text."""
        probes = self._probes
        is_counted_otherwise = len(after.rows) != len(before.rows)
        held = "" if is_counted_otherwise else self._held_still(before, after)
        if held:
            return self._told(Safety.CHANGES, held)
        twin = probes.comparable(probes.original(TWIN))
        after_twin = probes.comparable(probes.collect(probes.dataset(edits, TWIN)[0], TWIN))
        if twin.rows == after_twin.rows and self._is_reproduced(before, after):
            return self._told(Safety.EXACT, "", self._equal_by_chance(twin))
        if is_counted_otherwise:
            return self._counts(before, after)
        other = probes.comparable(probes.original(OTHER))
        order = self._order(edits, before, twin, after_twin, other)
        if order is not None:
            return order
        judgement = self._components(before, after, twin, after_twin, other)
        has_thawed = probes.is_steady(before) and not probes.is_steady(after)
        if judgement.seen is Safety.CHANGES and not has_thawed and self._is_batched():
            rows = self._are_rows_alike(edits)
            if rows is not Likeness.OTHER:  # batches of other rows, which are random themselves
                return self._told(Safety.REORDERED, "", _TOO_FEW_ROWS if rows is Likeness.UNDECIDED else "")
        if judgement.seen is Safety.RERANDOMIZED and self._is_own_noise(twin, after_twin):
            return replace(judgement, seen=Safety.EXACT, note=OWN_NOISE)
        return judgement

    # -- single tests

    def _told(self, seen: Safety | None, note: str, undecided: str = "", power: str = "") -> Judgement:
        probes = self._probes
        if not note and not probes.is_complete:
            note = f"Only the first {probes.length} elements were compared."
        if seen is Safety.CHANGES:
            undecided = power = ""
        elif seen is not None:
            undecided = self._not_compared() or undecided
        return Judgement(seen, probes.length, probes.is_complete, note, probes.element_bytes, undecided, power)

    def _not_compared(self) -> str:
        """Why no claim at all could have been refuted; empty if one could."""
        probes = self._probes
        stream = probes.original(AS_RECORDED)
        if not stream.rows:
            return "The dataset gave no element, so nothing was compared."
        if stream.opaque:
            what = "components" if len(stream.opaque) > 1 else "component"
            numbers = ", ".join(str(component + 1) for component in stream.opaque)
            return f"Not compared: {what} {numbers} of the elements, which hold no values (a variant or a resource)."
        if not probes.is_complete and probes.length < SMALLEST_ORDER:
            elements = "element was" if probes.length == 1 else f"{probes.length} elements were"
            return f"Only the first {elements} compared: too few to show another order."
        return ""

    def _equal_by_chance(self, twin: Stream) -> str:
        """Whether the elements would be equal with other seeds too, so that equal ones show nothing of what is random."""
        other = self._probes.comparable(self._probes.original(OTHER))
        if len(other.rows) != len(twin.rows):
            return ""
        equal = sum(one == two for one, two in zip(twin.rows, other.rows, strict=True))
        if (equal / max(1, len(twin.rows))) ** len(twin.rows) < P_VALUE:
            return ""
        return "What is random in the elements is too rare to be compared: other seeds give the same elements."

    def _static_difference(self, after: Any) -> str:  # noqa: ANN401
        before = self._probes.original_built()[-1].dataset
        if after.element_spec != before.element_spec:
            return f"the element spec is {after.element_spec} instead of {before.element_spec}"
        old, new = int(before.cardinality()), int(after.cardinality())
        if old != new and old != -2 and new != -2:
            return f"an epoch has {_counted(new)} elements instead of {_counted(old)}"
        return ""

    def _frozen(self, built: Sequence[Built]) -> tuple[str, str]:
        """(what a cache of the edited pipeline would freeze that is not frozen in the original, why that could not be seen)."""
        unseen = ""
        original = {each.id: each for each in self._probes.original_built()}
        for cache in built:
            if cache.method != "cache" or cache.input is None or not cache.is_new or cache.is_inside:
                continue
            known = original.get(cache.id)
            if known is not None and known.input is not None and self._probes.repeats(known.input) is False:
                continue  # the script itself freezes it there
            repeats = self._probes.repeats(cache.input)
            if repeats is False:
                return "a cache would freeze what differs from epoch to epoch before it", ""
            if repeats is None:
                unseen = "Before the cache no element came that could be compared, so what it would freeze is unknown."
        return "", unseen

    def _is_reproduced(self, before: Stream, after: Stream) -> bool:
        """Whether each component that is the same in any two runs of the script is so with the edits too.

        Asked only where a seed is fixed: two runs of a short random pipeline may well be the same by chance.
        """
        if not self._is_seeded():
            return True
        runs = [
            self._probes.comparable(stream) for stream in (before, self._probes.original(AS_RECORDED, run=1), after)
        ]
        if len(runs[0].rows) != len(runs[1].rows):
            return True  # a random number of elements: no two runs are the same
        for component in range(len(before.rows[0]) if before.rows else 0):
            one, two, edited = (stream.column(component) for stream in runs)
            if one == two != edited:
                return False
        return True

    def _is_seeded(self) -> bool:
        """Whether anything in the script fixes random numbers of its datasets."""
        kept = self._recorder.kept
        has_global = kept is not None and any(call.seeds.global_seed is not None for call in kept.calls.values())
        return has_global or any(
            call.arguments.get("seed") is not None or (call.function is not None and call.function.is_seeded)
            for call in self._recorder.calls()
        )

    def _is_own_noise(self, twin: Stream, after: Stream) -> bool:
        """Whether all that differs is what two runs of the script as it is differ in, though both draw from the same seeds:
        parallel calls take their random numbers in the order in which they happen to run.
        """
        again = self._probes.comparable(self._probes.original(TWIN, run=1))
        components = range(len(twin.rows[0]) if twin.rows else 0)
        columns = [(twin.column(i), again.column(i), after.column(i)) for i in components]
        return all(one != other for one, other, edited in columns if one != edited)

    def _held_still(self, before: Stream, after: Stream) -> str:
        """What differs from epoch to epoch before and does not (or less) after."""
        old, new = self._probes.epochs_of(before), self._probes.epochs_of(after)
        for component in range(len(before.rows[0]) if before.rows else 0):
            was, now = (variation([epoch.column(component) for epoch in epochs]) for epochs in (old, new))
            if (
                not self._probes.is_complete
            ):  # passes that end within an epoch hold other elements by chance, or by chance not
                was, now = min(was, 1), min(now, 1)
            if now < was:
                what = "comes in another order" if was == 1 and self._probes.is_complete else "is drawn anew"
                return f"component {component + 1} {what} every epoch before, and no longer after"
        return ""

    # -- order

    def _order(
        self, edits: tuple[Edit, ...], before: Stream, twin: Stream, after: Stream, other: Stream
    ) -> Judgement | None:
        """The judgement if the elements are the same but for their order; None if they are others."""
        same = self._same_elements(twin, after, other)
        if same is not Likeness.OTHER:
            is_random = not self._probes.is_steady(before) or (
                self._same_elements(twin, other, other) is not Likeness.OTHER and twin.rows != other.rows
            )
            return self._told_order(is_random, same)
        if not self._is_batched():
            return None
        rows = [self._probes.rows_of_batches(dataset, seeding) for dataset, seeding in self._sides(edits)]
        if any(stream is None for stream in rows):
            return None
        old, new, drawn = (stream for stream in rows if stream is not None)
        if len(old.rows) == len(drawn.rows) != len(new.rows):
            return self._told(Safety.CHANGES, f"the batches hold {len(new.rows)} rows instead of {len(old.rows)}")
        if not self._probes.is_steady(before) and not has_moved(old.rows, new.rows):
            return None  # the twins differ in little or nothing now: who draws which number is a race, and no matter of order
        same = Likeness.LIKE
        if old.counted() != new.counted():
            if self._probes.is_complete and old.counted() == drawn.counted():
                return self._told(Safety.CHANGES, "the batches hold other rows, although rows are not random")
            same = Likeness.OTHER if self._probes.is_complete else _common_elements(old, new, drawn)
            if same is Likeness.OTHER:
                return None  # of an endless one the last epoch is cut, and in another order it holds other rows until there
        return self._told_order(old.counted() == drawn.counted() and old.rows != drawn.rows, same)

    def _sides(self, edits: tuple[Edit, ...]) -> list[tuple[Any, str]]:
        return [
            (self._probes.dataset((), TWIN)[0], TWIN),
            (self._probes.dataset(edits, TWIN)[0], TWIN),
            (self._probes.dataset((), OTHER)[0], OTHER),
        ]

    def _told_order(self, is_random: bool, same: Likeness) -> Judgement:
        undecided = _OTHER_PART if same is Likeness.UNDECIDED else ""
        return self._told(Safety.RERANDOMIZED if is_random else Safety.REORDERED, "", undecided)

    def _same_elements(self, one: Stream, two: Stream, drawn: Stream) -> Likeness:
        """Epoch by epoch the same elements in any order; of a part of an epoch see `_common_elements`. `drawn`: the original with
        other seeds.
        """
        if not self._probes.is_complete:
            return _common_elements(one, two, drawn)
        pairs = zip(self._probes.epochs_of(one), self._probes.epochs_of(two), strict=True)
        return Likeness.LIKE if all(a.counted() == b.counted() for a, b in pairs) else Likeness.OTHER

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

    def _are_rows_alike(self, edits: tuple[Edit, ...]) -> Likeness:
        """Whether batches hold the same rows as before, composed otherwise, but for what is random in a row."""
        rows = [self._probes.rows_of_batches(dataset, seeding) for dataset, seeding in self._sides(edits)]
        if any(stream is None or not stream.rows for stream in rows):
            return Likeness.OTHER
        old, new, drawn = (stream for stream in rows if stream is not None)
        if len(old.rows) != len(new.rows) or len(old.rows) < WANTED:
            return Likeness.OTHER
        seen = Likeness.LIKE
        for component in range(len(old.rows[0])):
            was, now, other = (Counter(stream.column(component)) for stream in (old, new, drawn))
            if was == now:
                continue
            alike = Likeness.OTHER if was == other else likeness(old, drawn, new, component)
            if alike is Likeness.OTHER:
                return Likeness.OTHER
            seen = Likeness.UNDECIDED if alike is Likeness.UNDECIDED else seen
        return Likeness.OTHER if _parted(old, drawn, new, is_complete=True) else seen

    # -- random numbers of elements, random components

    def _counts(self, before: Stream, after: Stream) -> Judgement:
        """Other numbers of elements: a change, unless a random filter lets another number pass every time."""
        other = self._probes.original(OTHER)
        counts = [len(stream.rows) for stream in (self._probes.original(TWIN), before, other)]
        total, share = sum(counts), 1 / (len(counts) + 1)
        if len(set(counts)) == 1:
            return self._told(
                Safety.CHANGES, f"{len(after.rows)} elements come where {len(before.rows)} came (in all epochs probed)"
            )
        is_spread = probability_of_counts(min(counts), max(counts), 0.5) < P_VALUE
        if not is_spread and probability_of_counts(len(after.rows), total, share) < P_VALUE:
            return self._told(
                Safety.CHANGES, f"{len(after.rows)} elements come where about {total / len(counts):.0f} came"
            )
        undecided = "How many elements come differs too much from epoch to epoch to be compared." if is_spread else ""
        loss = smallest_visible_loss(total, share)
        if loss > _VISIBLE_LOSS:
            undecided = undecided or (
                f"How many elements come is random: of so few, {loss:.0%} could be missing without being noticed."
            )
        for component in range(len(before.rows[0]) if before.rows else 0):
            alike = likeness(before, other, after, component)
            if alike is Likeness.OTHER:
                return self._told(Safety.CHANGES, f"component {component + 1} is distributed otherwise")
            if alike is Likeness.UNDECIDED:
                undecided = undecided or _too_few(component, len(after.rows))
        note = "How many elements come is itself random: only figures could be compared."
        return self._told(Safety.RERANDOMIZED, note, undecided, _power(len(before.rows), len(after.rows)))

    def _components(self, before: Stream, now: Stream, twin: Stream, after: Stream, other: Stream) -> Judgement:
        """`before` and `now` are seeded as the script is."""
        epochs, new_epochs = self._probes.epochs_of(before), self._probes.epochs_of(now)
        undecided = ""
        for component in range(len(twin.rows[0]) if twin.rows else 0):
            old, new, drawn = twin.column(component), after.column(component), other.column(component)
            if old == new:
                continue
            is_steady = not variation([epoch.column(component) for epoch in epochs])
            if is_steady and variation([epoch.column(component) for epoch in new_epochs]):
                return self._told(
                    Safety.CHANGES, f"component {component + 1} is the same every epoch before, and no longer after"
                )
            if old == drawn and is_steady:
                return self._told(Safety.CHANGES, f"component {component + 1} differs, although it is not random")
            if self._probes.is_complete and Counter(old) == Counter(drawn) != Counter(new) and old != drawn:
                return self._told(
                    Safety.CHANGES, f"component {component + 1} has other values; at random is only their order"
                )
            alike = likeness(twin, other, after, component)
            if alike is Likeness.OTHER:
                return self._told(Safety.CHANGES, f"component {component + 1} is distributed otherwise")
            if alike is Likeness.UNDECIDED:
                undecided = undecided or _too_few(component, len(after.rows))
        parted = _parted(twin, other, after, self._probes.is_complete)
        if parted:
            return self._told(Safety.CHANGES, parted)
        return self._told(Safety.RERANDOMIZED, "", undecided, _power(len(twin.rows), len(after.rows)))


def _common_elements(one: Stream, two: Stream, drawn: Stream) -> Likeness:
    """Whether two parts of an epoch are of the same elements in another order. `drawn`: a part of the original with other seeds.

    What comes first of one must come somewhere in the other. Where the order is random, parts of it share no more elements than
    two draws of the original do.
    """
    old, new = one.counted(), two.counted()
    if common_share(old, new) <= 0.5:
        return Likeness.OTHER
    halves = [stream.rows[: len(stream.rows) // 2] for stream in (one, two)]
    if not Counter(halves[0]) - new and not Counter(halves[1]) - old:
        return Likeness.LIKE if loss_is_visible(halves[0], old) else Likeness.UNDECIDED
    if one.rows == drawn.rows:
        return Likeness.UNDECIDED
    shared, usual = ((old & other.counted()).total() for other in (two, drawn))
    is_usual = probability_of_counts(shared, usual, 0.5) >= P_VALUE
    is_visible = smallest_visible_loss(usual, 0.5) <= _VISIBLE_CHANCE and loss_is_visible(one.rows, old)
    return Likeness.LIKE if is_usual and is_visible else Likeness.UNDECIDED


def _parted(one: Stream, two: Stream, new: Stream, is_complete: bool) -> str:
    """Which components belong together in the original (`one`, and `two` with other seeds) and no longer in `new`."""
    count = len(one.rows[0]) if one.rows else 0
    for first in range(min(count, _MAX_PAIRED)):
        for second in range(first + 1, min(count, _MAX_PAIRED)):
            sides = [Counter((row[first], row[second]) for row in stream.rows) for stream in (one, two, new)]
            if sides[0] == sides[2]:
                continue
            is_other = is_complete and sides[0] == sides[1]
            if is_other or pairing(one, two, new, first, second) is Likeness.OTHER:
                return f"components {first + 1} and {second + 1} no longer belong together as before"
    return ""


def _too_few(component: int, elements: int) -> str:
    return (
        f"Component {component + 1} is random, and from {units.format_many(elements, 'element')} its distribution could not be "
        "compared."
    )


def _power(before: int, after: int) -> str:
    """What the comparison by distribution could have shown at all."""
    share = smallest_visible_share(before, after)
    if share >= 1:
        return ""
    return (
        f"What is random was compared by its distribution in {after} elements, where a difference of {share:.0%} of the values "
        "would have shown."
    )


def _counted(cardinality: int) -> str:
    return "infinitely many" if cardinality == -1 else str(cardinality)
