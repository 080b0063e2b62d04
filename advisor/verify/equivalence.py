"""What edits did to the data, seen on real elements.

In: the recorded calls and the edits.  Out: a `Judgement`: the safety level seen, on how many elements.

Every dataset is probed as `dataset.take(k).repeat(n)`: the first `k` elements, several times over in one iterator; where there
are no more than `k`, each pass goes to the end, as a script's does. A cache in the wrong place shows in the second epoch only;
and only within one iterator do random ops with a seed go on instead of starting again.

1. Before and after, seeded as the script is. Equal, and every epoch the same: `exact`.
2. A random pipeline: twins of both, which draw the same numbers (`advisor.fixes.replay`). Twins equal: `exact`, if the epochs
   also differ from each other in the same way (a component that is drawn anew each epoch before must be so after) and what the
   script itself reproduces, because it fixes a seed, comes again bit for bit.
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
from advisor.fixes.replay import AS_RECORDED, OTHER, TWIN, Built, Replay
from advisor.model.finding import Edit, Safety
from advisor.verify.elements import Bounds, Row, Stream, collect

_LEVELS = tuple(Safety)
_WANTED = 64
"""Elements wanted of all epochs together: two epochs of one element that is flipped at random are equal half of the time."""
_MAX_EPOCHS = 32
_P_VALUE = 1e-6
"""Figures of one distribution are taken for two once in a million; some ten comparisons are made per trial."""
_BATCHING = frozenset({"batch", "padded_batch", "ragged_batch", "sparse_batch", "rebatch", "bucket_by_sequence_length"})
_DEVIATIONS = 6
"""A count that is random (at most as widely as Poisson's) comes so many standard deviations off less than once in a million."""
_PYTHON_SEED, _OTHER_PYTHON_SEED = 1, 2


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


class OriginalFails(Exception):
    """The script's own pipeline raises; the text is its error."""


class Equivalence:
    """Compares edits of one recorded dataset with the original."""

    def __init__(self, recorder: Recorder, call_id: str, bounds: Bounds, files: Path) -> None:
        """`bounds` hold for one pass over the dataset; about six passes are made."""
        self._recorder, self._call_id, self._bounds, self._files = recorder, call_id, bounds, files
        self._length: int | None = None
        self._originals: dict[tuple[str, int], tuple[Stream, list[Built]]] = {}
        self._is_complete = False
        self._element_bytes = 0.0
        self._number = 0

    def judge(self, edits: tuple[Edit, ...]) -> Judgement:
        """Compare. Raises CannotReplay, and OriginalFails where the script's own pipeline raises."""
        before, after_dataset, after_built = self._start(edits)
        static = self._static_difference(after_dataset)
        if static:
            return self._told(Safety.CHANGES, static)
        frozen = self._frozen(after_built)
        if frozen:
            return self._told(Safety.CHANGES, frozen)
        after = self._collect(self._probe(after_dataset, AS_RECORDED), AS_RECORDED)
        if after.error:
            return self._told(Safety.CHANGES, f"it fails where the original does not: {after.error}")
        if after.rows == before.rows and self._is_steady(before):
            return self._told(Safety.EXACT, "")
        return self._judge_random(edits, before, after)

    def _start(self, edits: tuple[Edit, ...]) -> tuple[Stream, Any, list[Built]]:
        if self._length is None:
            first = collect(self._replayed((), AS_RECORDED)[0], self._bounds, _PYTHON_SEED)
            if first.error:
                raise OriginalFails(first.error)
            self._length, self._is_complete = max(1, len(first.rows)), first.is_complete
            self._element_bytes = first.size_bytes / self._length
        before = self._original(AS_RECORDED)
        dataset, built = self._replayed(edits, AS_RECORDED)
        return before, dataset, built

    def _judge_random(self, edits: tuple[Edit, ...], before: Stream, after: Stream) -> Judgement:
        """Steps 2 to 4 of the module's text."""
        if len(after.rows) != len(before.rows):
            return self._counts(before, after)
        held = self._held_still(before, after)
        if held:
            return self._told(Safety.CHANGES, held)
        twin = self._comparable(self._original(TWIN))
        after_twin = self._comparable(self._collect(self._probe(self._replayed(edits, TWIN)[0], TWIN), TWIN))
        if twin.rows == after_twin.rows and self._is_reproduced(before, after):
            return self._told(Safety.EXACT, "")
        other = self._comparable(self._original(OTHER))
        order = self._order(edits, before, twin, after_twin, other)
        if order is not None:
            return order
        judgement = self._components(before, after, twin, after_twin, other)
        has_thawed = self._is_steady(before) and not self._is_steady(after)
        if judgement.seen is Safety.CHANGES and not has_thawed and self._is_batched() and self._are_rows_alike(edits):
            return self._told(Safety.REORDERED, "")  # batches of other rows, which are random themselves
        return judgement

    # -- streams

    def _replayed(self, edits: tuple[Edit, ...], seeding: str) -> tuple[Any, list[Built]]:
        self._number += 1
        files = self._files / f"compare{self._number}"
        files.mkdir(parents=True, exist_ok=True)
        work = Replay(self._recorder, edits, seeding, files)
        return work.dataset(self._call_id), work.built

    def _original(self, seeding: str, run: int = 0) -> Stream:
        """The original's stream, collected once per seeding and run."""
        if (seeding, run) not in self._originals:
            dataset, built = self._replayed((), seeding)
            stream = self._collect(self._probe(dataset, seeding), seeding)
            if stream.error:
                raise OriginalFails(stream.error)
            self._originals[seeding, run] = stream, built
        return self._originals[seeding, run][0]

    @property
    def _epochs(self) -> int:
        return max(2, min(_MAX_EPOCHS, math.ceil(_WANTED / (self._length or 1))))

    def _probe(self, dataset: Any, seeding: str) -> Any:  # noqa: ANN401
        """Several passes over the dataset in one.

        A pass over a complete one asks for one element more than there are, and so sees the end: only then does a `repeat` in
        it make, for nothing, one more iterator of its input, which draws a seed (`shuffle`). Whoever reads ahead sees the end
        in any case. Twins are kept from being fused to ShuffleAndRepeat, which draws no such seed, so that it does not matter
        whether an edit parts a shuffle from its repeat.
        """
        probe = dataset.take((self._length or 1) + self._is_complete).repeat(self._epochs)
        if seeding == AS_RECORDED:
            return probe
        import tensorflow as tf

        unfused = tf.data.Options()
        unfused.experimental_optimization.shuffle_and_repeat_fusion = False
        return probe.with_options(unfused)

    def _collect(self, probe: Any, seeding: str) -> Stream:  # noqa: ANN401
        bounds = Bounds(
            (self._length or 1) * self._epochs + 1,
            self._bounds.seconds * 4 * self._epochs,
            self._bounds.bytes * self._epochs * 2,
        )
        return collect(probe, bounds, _OTHER_PYTHON_SEED if seeding == OTHER else _PYTHON_SEED)

    def _comparable(self, stream: Stream) -> Stream:
        """What of a twin's stream must be equal. Where passes are cut short, a prefetch has read on beyond the cut, and so has
        drawn numbers that the next pass then lacks: only the first pass counts.
        """
        return stream if self._is_complete else stream.epoch(0, self._length or 1)

    def _epoch_streams(self, stream: Stream) -> list[Stream]:
        length = len(stream.rows) // self._epochs
        return [stream.epoch(number, length) for number in range(self._epochs)] if length else []

    # -- single tests

    def _told(self, seen: Safety | None, note: str) -> Judgement:
        if not note and not self._is_complete:
            note = f"Only the first {self._length} elements were compared."
        return Judgement(seen, self._length or 0, self._is_complete, note, self._element_bytes)

    def _static_difference(self, after: Any) -> str:  # noqa: ANN401
        before = self._originals[AS_RECORDED, 0][1][-1].dataset
        if after.element_spec != before.element_spec:
            return f"the element spec is {after.element_spec} instead of {before.element_spec}"
        old, new = int(before.cardinality()), int(after.cardinality())
        if old != new and old != -2 and new != -2:
            return f"an epoch has {_counted(new)} elements instead of {_counted(old)}"
        return ""

    def _frozen(self, built: Sequence[Built]) -> str:
        """What a cache of the edited pipeline would freeze that is not frozen in the original."""
        original = {each.id: each for each in self._originals[AS_RECORDED, 0][1]}
        for cache in built:
            if cache.method != "cache" or cache.input is None or not cache.is_new or cache.is_inside:
                continue
            known = original.get(cache.id)
            if known is not None and known.input is not None and not self._repeats(known.input):
                continue  # the script itself freezes it there
            if not self._repeats(cache.input):
                return "a cache would freeze what differs from epoch to epoch before it"
        return ""

    def _repeats(self, dataset: Any) -> bool:  # noqa: ANN401
        """Whether the dataset gives the same elements in the same order again."""
        seconds = self._bounds.seconds
        length = max(1, len(collect(dataset, Bounds(self._bounds.elements, seconds, self._bounds.bytes)).rows))
        epochs = max(2, min(_MAX_EPOCHS, math.ceil(_WANTED / length)))
        stream = collect(dataset.take(length).repeat(epochs), Bounds(length * epochs, 4 * seconds * epochs))
        first = stream.rows[:length]
        return all(
            stream.rows[start : start + length] == first[: len(stream.rows) - start]
            for start in range(0, len(stream.rows), length)
        )

    def _is_reproduced(self, before: Stream, after: Stream) -> bool:
        """Whether each component that is the same in any two runs of the script is so with the edits too."""
        runs = [self._comparable(stream) for stream in (before, self._original(AS_RECORDED, run=1), after)]
        if len(runs[0].rows) != len(runs[1].rows):
            return True  # a random number of elements: no two runs are the same
        for component in range(len(before.rows[0]) if before.rows else 0):
            one, two, edited = (stream.column(component) for stream in runs)
            if one == two != edited:
                return False
        return True

    def _is_steady(self, stream: Stream) -> bool:
        """Whether all epochs of a stream are the same."""
        epochs = self._epoch_streams(stream)
        return all(epoch.rows == epochs[0].rows for epoch in epochs)

    def _held_still(self, before: Stream, after: Stream) -> str:
        """What differs from epoch to epoch before and does not (or less) after."""
        old, new = self._epoch_streams(before), self._epoch_streams(after)
        for component in range(len(before.rows[0]) if before.rows else 0):
            was, now = (_variation([epoch.column(component) for epoch in epochs]) for epochs in (old, new))
            if now < was:
                what = "is drawn anew" if was == 2 else "comes in another order"
                return f"component {component + 1} {what} every epoch before, and no longer after"
        return ""

    # -- order

    def _order(
        self, edits: tuple[Edit, ...], before: Stream, twin: Stream, after: Stream, other: Stream
    ) -> Judgement | None:
        """The judgement if the elements are the same but for their order; None if they are others."""
        if self._same_elements(twin, after):
            is_random = not self._is_steady(before) or (self._same_elements(twin, other) and twin.rows != other.rows)
            return self._told_order(is_random)
        if not self._is_batched():
            return None
        rows = [self._rows_of_batches(dataset, seeding) for dataset, seeding in self._sides(edits)]
        if any(stream is None for stream in rows):
            return None
        old, new, drawn = (stream for stream in rows if stream is not None)
        if len(old.rows) == len(drawn.rows) != len(new.rows):
            return self._told(Safety.CHANGES, f"the batches hold {len(new.rows)} rows instead of {len(old.rows)}")
        if old.counted() != new.counted():
            if self._is_complete and old.counted() == drawn.counted():
                return self._told(Safety.CHANGES, "the batches hold other rows, although rows are not random")
            return None
        return self._told_order(is_random=old.counted() == drawn.counted() and old.rows != drawn.rows)

    def _sides(self, edits: tuple[Edit, ...]) -> list[tuple[Any, str]]:
        return [
            (self._replayed((), TWIN)[0], TWIN),
            (self._replayed(edits, TWIN)[0], TWIN),
            (self._replayed((), OTHER)[0], OTHER),
        ]

    def _told_order(self, is_random: bool) -> Judgement:
        if not self._is_complete and not is_random:
            return self._told(Safety.REORDERED, "")
        return self._told(Safety.RERANDOMIZED if is_random else Safety.REORDERED, "")

    def _same_elements(self, one: Stream, two: Stream) -> bool:
        """Epoch by epoch the same elements in any order; of a part of an epoch only that both hold mostly the same."""
        if not self._is_complete:
            return _share(one.counted(), two.counted()) > 0.5
        pairs = zip(self._epoch_streams(one), self._epoch_streams(two), strict=True)
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

    def _rows_of_batches(self, dataset: Any, seeding: str) -> Stream | None:  # noqa: ANN401
        """The rows of the batches of all epochs, if all of them were reached."""
        try:
            rows = self._probe(dataset, seeding).unbatch()
        except (TypeError, ValueError):
            return None
        bounds = Bounds(10_000_000, self._bounds.seconds * 4 * self._epochs, self._bounds.bytes * 2)
        stream = collect(rows, bounds, _OTHER_PYTHON_SEED if seeding == OTHER else _PYTHON_SEED)
        return stream if stream.is_complete else None

    def _are_rows_alike(self, edits: tuple[Edit, ...]) -> bool:
        """Whether batches hold the same rows as before, composed otherwise, but for what is random in a row."""
        rows = [self._rows_of_batches(dataset, seeding) for dataset, seeding in self._sides(edits)]
        if any(stream is None or not stream.rows for stream in rows):
            return False
        old, new, drawn = (stream for stream in rows if stream is not None)
        if len(old.rows) != len(new.rows) or len(old.rows) < _WANTED:
            return False
        for component in range(len(old.rows[0])):
            was, now, other = (Counter(stream.column(component)) for stream in (old, new, drawn))
            if was != now and (was == other or not _same_distribution(old, drawn, new, component)):
                return False
        return True

    # -- random numbers of elements, random components

    def _counts(self, before: Stream, after: Stream) -> Judgement:
        """Other numbers of elements: a change, unless a random filter lets another number pass every time."""
        other = self._original(OTHER)
        epochs = [self._original(TWIN), before, other]
        if len({len(stream.rows) for stream in epochs}) == 1:
            return self._told(
                Safety.CHANGES, f"{len(after.rows)} elements come where {len(before.rows)} came (in all epochs probed)"
            )
        usual = sum(len(stream.rows) for stream in epochs) / len(epochs)
        if abs(len(after.rows) - usual) > _DEVIATIONS * math.sqrt(usual):
            return self._told(Safety.CHANGES, f"{len(after.rows)} elements come where about {usual:.0f} came")
        for component in range(len(before.rows[0]) if before.rows else 0):
            if not _same_distribution(before, other, after, component):
                return self._told(Safety.CHANGES, f"component {component + 1} is distributed otherwise")
        return self._told(
            Safety.RERANDOMIZED, "How many elements come is itself random: only figures could be compared."
        )

    def _components(self, before: Stream, now: Stream, twin: Stream, after: Stream, other: Stream) -> Judgement:
        """`before` and `now` are seeded as the script is."""
        epochs, new_epochs = self._epoch_streams(before), self._epoch_streams(now)
        for component in range(len(twin.rows[0]) if twin.rows else 0):
            old, new, drawn = twin.column(component), after.column(component), other.column(component)
            if old == new:
                continue
            is_steady = not _variation([epoch.column(component) for epoch in epochs])
            if is_steady and _variation([epoch.column(component) for epoch in new_epochs]):
                return self._told(
                    Safety.CHANGES, f"component {component + 1} is the same every epoch before, and no longer after"
                )
            if old == drawn and is_steady:
                return self._told(Safety.CHANGES, f"component {component + 1} differs, although it is not random")
            if self._is_complete and Counter(old) == Counter(drawn) != Counter(new) and old != drawn:
                return self._told(
                    Safety.CHANGES, f"component {component + 1} has other values; at random is only their order"
                )
            if not _same_distribution(twin, other, after, component):
                return self._told(Safety.CHANGES, f"component {component + 1} is distributed otherwise")
        return self._told(Safety.RERANDOMIZED, "")


def _variation(epochs: Sequence[list[bytes]]) -> int:
    """0: all epochs are equal; 1: equal but for their order; 2: they hold other values."""
    if all(epoch == epochs[0] for epoch in epochs):
        return 0
    first = Counter(epochs[0])
    return 1 if all(Counter(epoch) == first for epoch in epochs) else 2


def _share(one: Counter[Row], two: Counter[Row]) -> float:
    """Share of elements that both hold."""
    return (one & two).total() / max(1, one.total())


def _same_distribution(twin: Stream, other: Stream, after: Stream, component: int) -> bool:
    """Two-sample Kolmogorov-Smirnov tests on each figure of a component: the edited one's against the original's.

    The original is two samples of different seeds. To be like one of them, or like both together, is enough: where an order
    is drawn once and then stays (`sample_from_datasets`), the batches of one seed are not those of another.
    """
    one, two, new = ([f[component] for f in stream.figures if f[component]] for stream in (twin, other, after))
    if not one or not new:
        return bool(one) == bool(new)
    return all(
        any(
            kolmogorov_smirnov([f[k] for f in old], [f[k] for f in new]) >= _P_VALUE
            for old in (one, two, [*one, *two])
            if old
        )
        for k in range(len(new[0]))
    )


def kolmogorov_smirnov(one: Sequence[float], two: Sequence[float]) -> float:
    """Probability of two samples at least as different as these if both were of one distribution.

    Bounded from above by Massart's inequality for each sample, so small samples are never called different too easily.
    """
    import numpy as np

    a, b = np.sort(np.asarray(one, float)), np.sort(np.asarray(two, float))
    points = np.concatenate([a, b])
    distance = float(
        np.max(np.abs(np.searchsorted(a, points, "right") / len(a) - np.searchsorted(b, points, "right") / len(b)))
    )
    return min(1.0, 2.0 * math.exp(-2.0 * distance**2 * len(a) * len(b) / (len(a) + len(b))))


def _counted(cardinality: int) -> str:
    return "infinitely many" if cardinality == -1 else str(cardinality)
