"""What edits did to the data, seen on real elements.

In: the recorded calls and the edits.  Out: a `Judgement`: the safety level seen, on how many elements.

Each side is probed over several epochs (`advisor.verify.probes`).

1. Before and after, seeded as the script is. Equal, and every epoch the same: `exact`.
2. A random pipeline: twins of both, which draw the same numbers (`advisor.fixes.replay`). Twins equal: `exact`, if the epochs
   also differ from each other in the same way (a component that is drawn anew each epoch before must be so after) and what the
   script itself reproduces, because it fixes a seed, comes again bit for bit. Where the script's own twin does not come
   again, because parallel calls draw in no fixed order, a difference like its own, of the same distribution, is no
   difference: `exact`, and the note says so.
3. Else the same elements in another order are `reordered`, or `rerandomized` where the order is itself random: it differs when
   the original is made with other seeds. If batches were composed of other elements, their rows are compared.
4. Else a component may differ only if it is random (it differs from epoch to epoch, or when the original is made with other
   seeds), and then its figures must be of the same distribution: `rerandomized`. All else is `changes`.

A new cache must stand behind something that repeats itself; that is tested where it stands, for the root may be too far away to
see a second epoch.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from advisor.capture.recorder import Recorder
from advisor.fixes.replay import AS_RECORDED, OTHER, TWIN, Built
from advisor.model.finding import Edit, Safety
from advisor.verify.elements import Bounds, Stream
from advisor.verify.likeness import common_share, has_moved, is_same_distribution, variation
from advisor.verify.probes import WANTED, Probes

_LEVELS = tuple(Safety)
_BATCHING = frozenset({"batch", "padded_batch", "ragged_batch", "sparse_batch", "rebatch", "bucket_by_sequence_length"})
OWN_NOISE = (
    "Parallel calls of the script itself draw their random numbers in no fixed order, so what is random was compared by its "
    "distribution."
)
_DEVIATIONS = 6
"""A count that is random (at most as widely as Poisson's) comes so many standard deviations off less than once in a million."""


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
        frozen = self._frozen(after_built)
        if frozen:
            return self._told(Safety.CHANGES, frozen)
        after = probes.collect(after_dataset, AS_RECORDED)
        if after.error:
            return self._told(Safety.CHANGES, f"it fails where the original does not: {after.error}")
        if after.rows == before.rows and probes.is_steady(before):
            return self._told(Safety.EXACT, "")
        return self._judge_random(edits, before, after)

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
            return self._told(Safety.EXACT, "")
        if is_counted_otherwise:
            return self._counts(before, after)
        other = probes.comparable(probes.original(OTHER))
        order = self._order(edits, before, twin, after_twin, other)
        if order is not None:
            return order
        judgement = self._components(before, after, twin, after_twin, other)
        has_thawed = probes.is_steady(before) and not probes.is_steady(after)
        if judgement.seen is Safety.CHANGES and not has_thawed and self._is_batched() and self._are_rows_alike(edits):
            return self._told(Safety.REORDERED, "")  # batches of other rows, which are random themselves
        if judgement.seen is Safety.RERANDOMIZED and self._is_own_noise(twin, after_twin):
            return self._told(Safety.EXACT, OWN_NOISE)
        return judgement

    # -- single tests

    def _told(self, seen: Safety | None, note: str) -> Judgement:
        probes = self._probes
        if not note and not probes.is_complete:
            note = f"Only the first {probes.length} elements were compared."
        return Judgement(seen, probes.length, probes.is_complete, note, probes.element_bytes)

    def _static_difference(self, after: Any) -> str:  # noqa: ANN401
        before = self._probes.original_built()[-1].dataset
        if after.element_spec != before.element_spec:
            return f"the element spec is {after.element_spec} instead of {before.element_spec}"
        old, new = int(before.cardinality()), int(after.cardinality())
        if old != new and old != -2 and new != -2:
            return f"an epoch has {_counted(new)} elements instead of {_counted(old)}"
        return ""

    def _frozen(self, built: Sequence[Built]) -> str:
        """What a cache of the edited pipeline would freeze that is not frozen in the original."""
        original = {each.id: each for each in self._probes.original_built()}
        for cache in built:
            if cache.method != "cache" or cache.input is None or not cache.is_new or cache.is_inside:
                continue
            known = original.get(cache.id)
            if known is not None and known.input is not None and not self._probes.repeats(known.input):
                continue  # the script itself freezes it there
            if not self._probes.repeats(cache.input):
                return "a cache would freeze what differs from epoch to epoch before it"
        return ""

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
        if self._same_elements(twin, after):
            is_random = not self._probes.is_steady(before) or (
                self._same_elements(twin, other) and twin.rows != other.rows
            )
            return self._told_order(is_random)
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
        if old.counted() != new.counted():
            if self._probes.is_complete and old.counted() == drawn.counted():
                return self._told(Safety.CHANGES, "the batches hold other rows, although rows are not random")
            if self._probes.is_complete or common_share(old.counted(), new.counted()) <= 0.5:
                return None  # of an endless one the last epoch is cut, and in another order it holds other rows until there
        return self._told_order(is_random=old.counted() == drawn.counted() and old.rows != drawn.rows)

    def _sides(self, edits: tuple[Edit, ...]) -> list[tuple[Any, str]]:
        return [
            (self._probes.dataset((), TWIN)[0], TWIN),
            (self._probes.dataset(edits, TWIN)[0], TWIN),
            (self._probes.dataset((), OTHER)[0], OTHER),
        ]

    def _told_order(self, is_random: bool) -> Judgement:
        return self._told(Safety.RERANDOMIZED if is_random else Safety.REORDERED, "")

    def _same_elements(self, one: Stream, two: Stream) -> bool:
        """Epoch by epoch the same elements in any order; of a part of an epoch only that both hold mostly the same."""
        if not self._probes.is_complete:
            return common_share(one.counted(), two.counted()) > 0.5
        pairs = zip(self._probes.epochs_of(one), self._probes.epochs_of(two), strict=True)
        return all(a.counted() == b.counted() for a, b in pairs)

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

    def _are_rows_alike(self, edits: tuple[Edit, ...]) -> bool:
        """Whether batches hold the same rows as before, composed otherwise, but for what is random in a row."""
        rows = [self._probes.rows_of_batches(dataset, seeding) for dataset, seeding in self._sides(edits)]
        if any(stream is None or not stream.rows for stream in rows):
            return False
        old, new, drawn = (stream for stream in rows if stream is not None)
        if len(old.rows) != len(new.rows) or len(old.rows) < WANTED:
            return False
        for component in range(len(old.rows[0])):
            was, now, other = (Counter(stream.column(component)) for stream in (old, new, drawn))
            if was != now and (was == other or not is_same_distribution(old, drawn, new, component)):
                return False
        return True

    # -- random numbers of elements, random components

    def _counts(self, before: Stream, after: Stream) -> Judgement:
        """Other numbers of elements: a change, unless a random filter lets another number pass every time."""
        other = self._probes.original(OTHER)
        epochs = [self._probes.original(TWIN), before, other]
        if len({len(stream.rows) for stream in epochs}) == 1:
            return self._told(
                Safety.CHANGES, f"{len(after.rows)} elements come where {len(before.rows)} came (in all epochs probed)"
            )
        usual = sum(len(stream.rows) for stream in epochs) / len(epochs)
        if abs(len(after.rows) - usual) > _DEVIATIONS * math.sqrt(usual):
            return self._told(Safety.CHANGES, f"{len(after.rows)} elements come where about {usual:.0f} came")
        for component in range(len(before.rows[0]) if before.rows else 0):
            if not is_same_distribution(before, other, after, component):
                return self._told(Safety.CHANGES, f"component {component + 1} is distributed otherwise")
        return self._told(
            Safety.RERANDOMIZED, "How many elements come is itself random: only figures could be compared."
        )

    def _components(self, before: Stream, now: Stream, twin: Stream, after: Stream, other: Stream) -> Judgement:
        """`before` and `now` are seeded as the script is."""
        epochs, new_epochs = self._probes.epochs_of(before), self._probes.epochs_of(now)
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
            if not is_same_distribution(twin, other, after, component):
                return self._told(Safety.CHANGES, f"component {component + 1} is distributed otherwise")
        return self._told(Safety.RERANDOMIZED, "")


def _counted(cardinality: int) -> str:
    return "infinitely many" if cardinality == -1 else str(cardinality)
