"""The steps of each place that takes elements out of datasets, as Python sees them.

In: instants from the hooks.  Out: `Consumer` and `StepSeries` of each place.
"""

from __future__ import annotations

import threading
import weakref
from array import array
from dataclasses import dataclass
from typing import Any

from advisor.model.recording import Consumer, Site, StepSeries

MAX_STEPS = 50_000
"""The last so many steps of a consumer are kept at least (1.2 MB), twice as many at most."""
MAX_RELEASES = 1000
"""So many ends of iterators are kept, the first ones."""

TRAINING_KINDS = frozenset({"keras.fit"})
SIDE_KINDS = frozenset({"keras.evaluate", "keras.predict"})


class Track:
    """One consumer: a kind and a place."""

    __slots__ = (
        "batch_end_ns",
        "call_id",
        "count",
        "dropped",
        "ends",
        "epoch_count",
        "epochs",
        "fetch_ns",
        "first_ns",
        "id",
        "is_loop",
        "is_traced",
        "iterator",
        "iterators",
        "kind",
        "library",
        "open_since_ns",
        "released_at",
        "releases",
        "saw_tape",
        "site",
        "starts",
        "takes_all",
        "waits",
    )

    def __init__(self, consumer_id: str, kind: str, site: Site | None, library: str | None) -> None:
        self.id = consumer_id
        self.kind = kind
        self.site = site
        self.library = library
        self.call_id: str | None = None
        self.iterators = 0
        self.iterator: weakref.ref[Any] | None = None
        self.starts, self.ends, self.waits = array("q"), array("q"), array("q")
        self.releases: list[tuple[int, int]] = []
        """(when TensorFlow had let go of an iterator, how long that took)."""
        self.released_at = 0
        """`count` at the last of them."""
        self.count = 0
        """Steps ended."""
        self.epochs = 0
        """Epochs over the whole dataset that ended (Keras)."""
        self.epoch_count = 0
        """`count` at the end of the last of them."""
        self.dropped = 0
        """Oldest steps that are no longer kept."""
        self.open_since_ns = 0
        """Beginning of the step under way; 0: none."""
        self.first_ns = 0
        self.fetch_ns = 0
        """Time inside `next` of the step under way."""
        self.batch_end_ns = 0
        """When the batch of the step under way was over (Keras), for the last step of an epoch."""
        self.takes_all = False
        """Its epochs end with the dataset, not after a number of steps (Keras)."""
        self.saw_tape = False
        """A gradient tape was opened during its steps: this loop trains."""
        self.is_traced = False
        """Its elements are taken inside a tf.function: Python does not see the wait."""
        self.is_loop = False
        """The whole loop runs inside a tf.function (or `reduce`): Python does not see the steps."""

    def restart(self) -> None:
        """Forget all steps: another watch of the same process begins."""
        self.starts, self.ends, self.waits = array("q"), array("q"), array("q")
        self.count = self.dropped = self.first_ns = self.open_since_ns = self.fetch_ns = self.batch_end_ns = 0
        self.epochs = self.epoch_count = self.released_at = 0
        self.releases = []
        self.is_loop = False

    def begin(self, now_ns: int) -> None:
        """A step begins (and ends the one before)."""
        if self.open_since_ns:
            self.end(now_ns)
        if not self.first_ns:
            self.first_ns = now_ns
        self.open_since_ns = now_ns
        self.batch_end_ns = 0
        self.fetch_ns = 0

    def end(self, now_ns: int) -> None:
        """The step under way ends."""
        start = self.open_since_ns
        if not start:
            return
        self.open_since_ns = 0
        self.count += 1
        self.starts.append(start)
        self.ends.append(now_ns)
        self.waits.append(self.fetch_ns)
        if len(self.starts) >= 2 * MAX_STEPS:
            for column in (self.starts, self.ends, self.waits):
                del column[:MAX_STEPS]
            self.dropped += MAX_STEPS

    def end_epoch(self, is_whole: bool = False) -> None:
        """Keras: no further batch follows now; the last step ended with its batch. `is_whole`: the dataset has no more."""
        if self.batch_end_ns:
            self.end(self.batch_end_ns)
        self.forget()
        if is_whole and self.count > self.epoch_count:
            self.epochs += 1
            self.epoch_count = self.count

    def released(self, now_ns: int, took_ns: int) -> None:
        """TensorFlow has let go of one of its iterators. (Keras makes two for an epoch: together they are one pause.)"""
        if self.releases and self.released_at == self.count:
            self.releases[-1] = (now_ns, self.releases[-1][1] + took_ns)
        elif len(self.releases) < MAX_RELEASES:
            self.releases.append((now_ns, took_ns))
            self.released_at = self.count

    def forget(self) -> None:
        """The step under way was none: the dataset had no more elements."""
        self.open_since_ns = 0

    def durations(self, first: int) -> list[int]:
        """Times of the steps from that one on, as far as they are kept, ns."""
        index = max(0, first - self.dropped)
        return [end - start for start, end in zip(self.starts[index:], self.ends[index:], strict=True)]

    @property
    def total_ns(self) -> int:
        """Time of all steps kept."""
        return sum(self.ends) - sum(self.starts)

    @property
    def is_training(self) -> bool:
        """It surely trains: Keras' `fit`, or a loop that opens gradient tapes."""
        return self.kind in TRAINING_KINDS or self.saw_tape

    @property
    def rank(self) -> int:
        """How likely this is the training loop; the window follows the highest."""
        if self.is_training:
            return 3
        if self.kind in SIDE_KINDS or self.library is not None:
            return 1
        return 2

    @property
    def has_work(self) -> bool:
        """The loop's body costs something beside waiting: it is no mere counting of elements."""
        if self.is_traced or self.kind.startswith("keras."):
            return True
        total = sum(self.ends[-200:]) - sum(self.starts[-200:])
        return total > 0 and 1 - sum(self.waits[-200:]) / total > 0.05

    def consumer(self, is_main: bool) -> Consumer:
        """As recorded."""
        return Consumer(
            self.id,
            self.call_id,
            self.kind,
            self.site,
            self.iterators,
            finished_epochs=self.epochs,
            finished_steps=self.epoch_count,
            is_main=is_main,
            releases=tuple(self.releases),
        )

    def series(self) -> StepSeries:
        """As recorded."""
        if self.is_loop:
            return StepSeries(self.id)
        has_waits = any(self.waits)
        waits = tuple(self.waits) if has_waits else ()
        return StepSeries(self.id, tuple(self.starts), waits, tuple(self.ends), self.dropped)


class Tracks:
    """All consumers of a run."""

    def __init__(self) -> None:
        self._tracks: list[Track] = []
        self._at: dict[tuple[str, Site | None, str | None], list[tuple[threading.Thread, Track]]] = {}
        """Place -> (the thread that reads there, its consumer)."""
        self._lock = threading.Lock()

    def at(self, kind: str, site: Site | None, library: str | None) -> Track:
        """The consumer of that kind at that place, new or known.

        Threads that read at one place at the same time are consumers of their own, for a step of one does not end where another
        begins. The consumer of a thread that has ended goes to the next one at its place: a thread per epoch is one consumer.
        """
        key, thread = (kind, site, library), threading.current_thread()
        with self._lock:
            known = self._at.setdefault(key, [])
            for owner, track in known:
                if owner is thread:
                    return track
            for number, (owner, track) in enumerate(known):
                if not owner.is_alive():
                    known[number] = (thread, track)
                    return track
            track = Track(f"c{len(self._tracks)}", kind, site, library)
            known.append((thread, track))
            self._tracks.append(track)
            return track

    def after_fork(self) -> None:
        """In a forked child: another thread may have held the lock while the process forked."""
        self._lock = threading.Lock()

    def all(self) -> list[Track]:
        """In the order in which they first appeared."""
        with self._lock:
            return list(self._tracks)


@dataclass(slots=True)
class LongCall:
    """A thread's call of a tf.function (or `reduce`) that takes elements."""

    track: Track
    thread_id: int
    start_ns: int
