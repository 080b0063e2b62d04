"""Records the steps of each consumer, i.e. of each place in the code that takes elements from datasets.

In: timestamps from the hooks.  Out: a `Consumer` and a `StepSeries` for each consumer.
"""

from __future__ import annotations

import threading
import weakref
from array import array
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from advisor.host.calibration.capture import LATEST_STEPS, WORK_SHARE
from advisor.model.calls import CodeLine, Site
from advisor.model.recording import Consumer, Loop, StepSeries, steps_of_epochs

MAX_STEPS = 50_000
"""At least this many of a consumer's latest steps are kept (1.2 MB), at most twice as many."""
MAX_RELEASES = 1000
"""Maximum number of recorded iterator destructions per consumer; later ones are dropped."""

MAX_EPOCHS = 1000
"""Number of the latest epochs of a consumer whose first steps are known."""

MAX_CALLS = 32
"""Number of the latest library calls (`fit`) of a consumer whose first steps are known."""

MAX_CALLBACKS = 32
"""Number of the latest batches of Keras whose callbacks are timed."""

TRAINING_KINDS = frozenset({"keras.fit"})
SIDE_KINDS = frozenset({"keras.evaluate", "keras.predict"})


class ConsumerSteps:
    """The steps of one consumer, identified by its kind, its source location and its thread."""

    __slots__ = (
        "batch_end_ns",
        "call_firsts",
        "call_id",
        "callbacks_ns",
        "count",
        "datasets",
        "dropped",
        "eager_step",
        "ended_model",
        "ended_model_ns",
        "ends",
        "epoch_count",
        "epoch_firsts",
        "epochs",
        "fetch_ns",
        "first_ns",
        "graph_step_ids",
        "graph_steps",
        "id",
        "is_loop",
        "is_traced",
        "iterator",
        "iterator_first",
        "iterators",
        "kind",
        "library",
        "loops",
        "open_since_ns",
        "passes_per_call",
        "released_at",
        "releases",
        "repeated",
        "saw_tape",
        "site",
        "starts",
        "takes_all",
        "thread_id",
        "waits",
    )

    def __init__(self, consumer_id: str, kind: str, site: Site | None, library: str | None) -> None:
        self.id = consumer_id
        self.kind = kind
        self.site = site
        self.library = library
        self.call_id: str | None = None
        self.iterators = 0
        self.datasets = 0
        """Number of datasets that it has read one after the other."""
        self.loops: tuple[Loop, ...] | None = None
        """The loops of the script around the first iteration; None if they are not known."""
        self.iterator: weakref.ref[Any] | None = None
        self.ended_model: Any = None
        """tf.data's model (a proto) of an iterator that had delivered its last element; None if none was read."""
        self.ended_model_ns = 0
        """Time at which it was read."""
        self.repeated: list[Any] | None = None
        """The element that it gets again and again once there is one; None: it gets those of its iterator."""
        self.iterator_first = 0
        """Number of the first step that reads the latest iterator."""
        self.epoch_firsts: deque[int] = deque(maxlen=MAX_EPOCHS)
        """Numbers of the first steps of the latest epochs, which are the passes over a dataset, or Keras' epochs."""
        self.call_firsts: deque[int] = deque(maxlen=MAX_CALLS)
        """Numbers of the first steps of the latest library calls (`fit`), which may trace functions before they fetch."""
        self.thread_id = 0
        """The thread that took its latest element; 0: none has."""
        self.starts, self.ends, self.waits = array("q"), array("q"), array("q")
        self.releases: list[tuple[int, int]] = []
        """(time at which TensorFlow had destroyed an iterator, how long that took), ns."""
        self.released_at = 0
        """`count` at the last destruction of an iterator."""
        self.count = 0
        """Number of completed steps."""
        self.epochs = 0
        """Number of completed epochs over the whole dataset (Keras)."""
        self.epoch_count = 0
        """`count` at the end of the last completed epoch."""
        self.dropped = 0
        """Number of oldest steps that are no longer kept."""
        self.open_since_ns = 0
        """Start of the current step; 0: there is none."""
        self.first_ns = 0
        """Start of the first step."""
        self.fetch_ns = 0
        """Time spent inside `next` in the current step."""
        self.batch_end_ns = 0
        """End of the current step's batch (Keras), used for the last step of an epoch."""
        self.callbacks_ns: deque[int] = deque(maxlen=MAX_CALLBACKS)
        """Times from the ends of the latest batches to the ends of their steps, in which callbacks run (Keras)."""
        self.passes_per_call: int | None = None if kind.startswith("keras.") else 1
        """Epochs of each library call (`fit`), as far as its arguments tell; 1 for a loop of the script."""
        self.takes_all = False
        """Whether its epochs end with the dataset and not after a given number of steps (Keras)."""
        self.saw_tape = False
        """Whether a gradient tape was opened during its steps, i.e. this loop trains."""
        self.eager_step: CodeLine | None = None
        """The script's function that opened such a tape outside a tf.function, and the line in which it begins."""
        self.graph_steps: list[CodeLine] = []
        """The script's functions that ran as a tf.function in its steps and take a gradient."""
        self.graph_step_ids: set[int] = set()
        """The `id` of each tf.function that was looked at."""
        self.is_traced = False
        """Whether its elements are taken inside a tf.function, so that the wait is not visible in Python."""
        self.is_loop = False
        """Whether the whole loop runs inside a tf.function (or `reduce`), so that the steps are not visible in Python."""

    def reads(self, call_id: str | None) -> None:
        """Record that it begins to read a dataset.

        Args:
            call_id: The call that made the dataset; None if no call is known.
        """
        self.iterators += 1
        self.iterator_first = self.count + bool(self.open_since_ns)
        self._begin_epoch(self.iterator_first)
        if call_id is not None and call_id != self.call_id:
            self.call_id = call_id
            self.datasets += 1

    def restart(self) -> None:
        """Remove all steps, for another watch of the same process."""
        self.starts, self.ends, self.waits = array("q"), array("q"), array("q")
        self.count = self.dropped = self.first_ns = self.open_since_ns = self.fetch_ns = self.batch_end_ns = 0
        self.epochs = self.epoch_count = self.released_at = self.iterator_first = 0
        self.call_firsts.clear()
        self.epoch_firsts.clear()
        self.callbacks_ns.clear()
        self.releases = []
        self.is_loop = False

    def begin(self, now_ns: int) -> None:
        """Begin a step, and end the current one if there is one."""
        if self.open_since_ns:
            self.end(now_ns)
        if not self.first_ns:
            self.first_ns = now_ns
        self.open_since_ns = now_ns
        if self.batch_end_ns:
            self.callbacks_ns.append(now_ns - self.batch_end_ns)
            self.batch_end_ns = 0
        self.fetch_ns = 0

    def end(self, now_ns: int) -> None:
        """End the current step."""
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
        """End an epoch (Keras): the last step ends with its batch.

        Args:
            is_whole: The epoch ended because the dataset has no more elements.
        """
        if self.batch_end_ns:
            self.end(self.batch_end_ns)
            self.batch_end_ns = 0
        self.forget()
        self._begin_epoch(self.count)
        if is_whole and self.count > self.epoch_count:
            self.epochs += 1
            self.epoch_count = self.count

    @property
    def epoch_steps(self) -> int | None:
        """Number of steps of an epoch; None if none was complete yet, or if the latest ones differ."""
        return steps_of_epochs(self.epoch_firsts)

    @property
    def last_step(self) -> int | None:
        """Number of its steps when it ends, if this is its last pass; None if it is not, or if that is not known.

        The loops of the script and the arguments of `fit` tell the number of passes; the passes so far, their length.
        """
        steps = self.epoch_steps
        if steps is None or self.loops is None or self.passes_per_call is None:
            return None
        passes = self.passes_per_call
        for loop in self.loops:
            if loop.count is None:
                return None
            passes *= loop.count
        return self.epoch_firsts[-1] + steps if passes == len(self.epoch_firsts) < MAX_EPOCHS else None

    def _begin_epoch(self, first: int) -> None:
        if not self.epoch_firsts or self.epoch_firsts[-1] != first:
            self.epoch_firsts.append(first)

    @property
    def has_iterator(self) -> bool:
        """Whether the iterator from which it took its latest element exists; True if that is not known."""
        return self.iterator is None or self.iterator() is not None

    def released(self, now_ns: int, took_ns: int) -> None:
        """Record that TensorFlow has destroyed an iterator.

        Iterators destroyed during the same step are added up: Keras makes two per epoch, which cause one pause.

        Args:
            now_ns: Time of the end of the destruction.
            took_ns: Its duration.
        """
        if self.releases and self.released_at == self.count:
            self.releases[-1] = (now_ns, self.releases[-1][1] + took_ns)
        elif len(self.releases) < MAX_RELEASES:
            self.releases.append((now_ns, took_ns))
            self.released_at = self.count

    def forget(self) -> None:
        """Discard the current step, because the dataset had no more elements."""
        self.open_since_ns = 0

    def durations(self, first: int) -> list[int]:
        """Return the durations in ns of the kept steps from index `first` on."""
        index = max(0, first - self.dropped)
        return [end - start for start, end in zip(self.starts[index:], self.ends[index:], strict=True)]

    @property
    def first_s(self) -> float:
        """How long the first element took, in seconds; the first step, if the wait for it is not visible; 0 if unknown."""
        if not self.count or self.dropped:
            return 0.0
        return (self.waits[0] or self.ends[0] - self.starts[0]) / 1e9

    @property
    def where(self) -> str:
        """File name and line, such as `train.py:31`; empty if unknown."""
        return "" if self.site is None else f"{Path(self.site.file).name}:{self.site.line}"

    @property
    def total_ns(self) -> int:
        """Total duration of the kept steps."""
        return sum(self.ends) - sum(self.starts)

    @property
    def is_training(self) -> bool:
        """Whether the consumer is known to train: Keras' `fit`, or a loop that opens gradient tapes."""
        return self.kind in TRAINING_KINDS or self.saw_tape

    @property
    def rank(self) -> int:
        """How likely this is the training loop, 1 to 3. The window follows the consumer with the highest rank."""
        if self.is_training:
            return 3
        if self.kind in SIDE_KINDS or self.library is not None:
            return 1
        return 2

    @property
    def has_work(self) -> bool:
        """Whether the loop body does more than take elements: more than `WORK_SHARE` of the time is spent outside `next`."""
        if self.is_traced or self.kind.startswith("keras."):
            return True
        latest = LATEST_STEPS.value
        total = sum(self.ends[-latest:]) - sum(self.starts[-latest:])
        return total > 0 and 1 - sum(self.waits[-latest:]) / total > WORK_SHARE.value

    def recorded(self, is_main: bool) -> Consumer:
        """Return the consumer in the form that is written to the recording.

        Args:
            is_main: The window followed this consumer.
        """
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
            datasets=self.datasets,
            loops=self.loops,
            eager_step=self.eager_step,
            graph_steps=tuple(self.graph_steps),
        )

    def series(self, first: int = 0) -> StepSeries:
        """Return the steps in the form that is written to the recording.

        Args:
            first: Number of the first step to return.
        """
        if self.is_loop:
            return StepSeries(self.id)
        index = max(0, first - self.dropped)
        starts, ends, waits = self.starts[index:], self.ends[index:], self.waits[index:]
        begin = self.dropped + index
        firsts = tuple(number for number in self.epoch_firsts if number >= begin)
        return StepSeries(self.id, tuple(starts), tuple(waits) if any(waits) else (), tuple(ends), begin, firsts)


class Consumers:
    """All consumers of a run."""

    def __init__(self) -> None:
        self._consumers: list[ConsumerSteps] = []
        self._at: dict[tuple[str, Site | None, str | None], list[tuple[threading.Thread, ConsumerSteps]]] = {}
        """Kind, source location and library -> (thread that takes elements there, its consumer)."""
        self._lock = threading.Lock()

    def at(self, kind: str, site: Site | None, library: str | None) -> ConsumerSteps:
        """Return the consumer of this kind at this place in the current thread; create it if necessary.

        Threads that run at one place concurrently are separate consumers, because their steps overlap. When a thread has ended,
        the next thread at its place continues its consumer, so that a loop with one thread per epoch is a single consumer.

        Args:
            kind: Kind of the consumer, e.g. `for`, `next` or `keras.fit`.
            site: Source location; None if unknown.
            library: Package through which the user's code consumes the dataset, if any.
        """
        key, thread = (kind, site, library), threading.current_thread()
        with self._lock:
            owned_consumers = self._at.setdefault(key, [])
            for owner, consumer in owned_consumers:
                if owner is thread:
                    return consumer
            for number, (owner, consumer) in enumerate(owned_consumers):
                if not owner.is_alive():
                    owned_consumers[number] = (thread, consumer)
                    return consumer
            consumer = ConsumerSteps(f"c{len(self._consumers)}", kind, site, library)
            owned_consumers.append((thread, consumer))
            self._consumers.append(consumer)
            return consumer

    def after_fork(self) -> None:
        """Replace the lock in a forked process: another thread may have held it during the fork."""
        self._lock = threading.Lock()

    def all(self) -> list[ConsumerSteps]:
        """Return all consumers in the order in which they first appeared."""
        with self._lock:
            return list(self._consumers)


@dataclass(slots=True)
class LongCall:
    """A call of a tf.function (or of `reduce`) that takes elements and may run for long."""

    consumer: ConsumerSteps
    thread_id: int
    start_ns: int
