"""Counts the steps of a running script once per second, without the profiler, for `advisor watch`.

In: the consumers (`Consumers`), whose steps the hooks record anyway.  Out: a `LiveSample` per interval, passed to a callback.

A sample reads what the steps since the previous one left behind, and asks tf.data's own model how full the buffers are and, where
Python does not see the wait, for the gap times. It takes well under a millisecond; its CPU time is part of every sample.
"""

from __future__ import annotations

import threading
import time
from array import array
from collections.abc import Callable
from typing import Any

from advisor.capture.instrument.consumers import Consumers, ConsumerSteps
from advisor.capture.instrument.iterator_model import Identity, last_buffer, model_nodes
from advisor.capture.window.gap_times import Gaps, LoopShare, LoopWait, gaps_of, latest_waits
from advisor.capture.window.process_memory import rss_bytes
from advisor.model.live import LiveConsumer, LiveSample

_LEAST_PAUSE_NS = 1_000_000
"""A shorter time between two steps is that of the hooks themselves."""


class LiveCounters:
    """A thread that samples the consumers until it is stopped."""

    def __init__(
        self,
        consumers: Consumers,
        leader: Callable[[], ConsumerSteps | None],
        has_profiled_since: Callable[[int], bool],
        send: Callable[[LiveSample], None],
        warn: Callable[[str], None],
        interval_s: float,
        running_since: Callable[[ConsumerSteps], int] = lambda consumer: 0,
    ) -> None:
        """Create the counters without starting them.

        Args:
            consumers: The consumers.
            leader: Returns the consumer that is most likely the training loop.
            has_profiled_since: Returns whether the profiler has been active since a Unix time in ns.
            send: Called with each sample, in the thread. An OSError, raised if the reader has ended, stops the sampling.
            warn: Called with a sentence if sampling fails, which ends it.
            interval_s: Seconds between two samples.
            running_since: Returns when a consumer's current call into TensorFlow began, Unix time in ns; 0 if none is running.
        """
        self._warn = warn
        self._consumers, self._leader, self._has_profiled_since = consumers, leader, has_profiled_since
        self._send, self._interval_s, self._running_since = send, interval_s, running_since
        self._seen: dict[str, int] = {}
        """Consumer id -> number of its steps that have been sampled."""
        self._passes_before = {consumer.id: consumer.iterators for consumer in consumers.all()}
        """Consumer id -> iterations before the counters were made, by an earlier watch of the same process."""
        self._loop_waits: dict[str, LoopWait] = {}
        self._total_in_model: dict[str, int] = {}
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._last_ns, self._last_cpu_ns, self._last_own_ns = time.time_ns(), time.process_time_ns(), 0
        self._thread = threading.Thread(target=self._run, name="advisor-live", daemon=True)

    def start(self) -> None:
        """Start sampling."""
        self._last_ns, self._last_cpu_ns = time.time_ns(), time.process_time_ns()
        self._thread.start()

    def stop(self) -> None:
        """Stop sampling, with a last sample of the steps since the previous one."""
        self._stop.set()
        try:
            self._send(self.sample())
        except OSError:
            return
        except Exception as error:
            self._warn(f"The last steps were not watched ({type(error).__name__}: {error}).")

    def switch_off(self) -> None:
        """Send nothing any more, as in a forked process."""
        self._stop.set()

    def sample(self) -> LiveSample:
        """Return what happened since the previous sample."""
        with self._lock:
            now, cpu_ns = time.time_ns(), time.process_time_ns()
            own_ns = time.thread_time_ns() if threading.current_thread() is self._thread else self._last_own_ns
            models = model_nodes(self._consumers)
            leader = self._leader()
            samples = [
                self._sample_of(consumer, models.get(consumer.id), consumer is leader, now)
                for consumer in self._consumers.all()
            ]
            elapsed_ns = max(1, now - self._last_ns)
            sample = LiveSample(
                now,
                elapsed_ns,
                (cpu_ns - self._last_cpu_ns) / elapsed_ns,
                rss_bytes(),
                max(0, own_ns - self._last_own_ns),
                self._has_profiled_since(self._last_ns),
                tuple(sample for sample in samples if sample is not None),
            )
            self._last_ns, self._last_cpu_ns, self._last_own_ns = now, cpu_ns, own_ns
            return sample

    def _run(self) -> None:
        while not self._stop.wait(self._interval_s):
            try:
                self._send(self.sample())
            except OSError:
                return
            except Exception as error:  # sampling must never disturb the script
                self._warn(f"The steps were no longer watched ({type(error).__name__}: {error}).")
                return

    def _sample_of(
        self, consumer: ConsumerSteps, model: tuple[Identity, Any] | None, is_main: bool, now_ns: int
    ) -> LiveConsumer | None:
        buffer = None if model is None else last_buffer(model[1])
        gaps = None if model is None else gaps_of(model[1])
        if consumer.is_loop or (consumer.is_traced and not consumer.count):
            share = self._elements(consumer, gaps, now_ns)
            new, step_ns, wait_ns = share.elements, share.length_ns, share.wait_ns
            total, pauses = self._total_in_model.get(consumer.id, 0), (0, 0)
        else:
            new, step_ns, wait_ns, pauses = self._steps(consumer, gaps)
            total = self._seen[consumer.id]
        if not new:
            return None
        return LiveConsumer(
            consumer.id,
            consumer.kind,
            consumer.where,
            is_main,
            total,
            max(1, consumer.iterators - self._passes_before.get(consumer.id, 0)),
            new,
            step_ns,
            wait_ns,
            None if buffer is None else buffer.elements,
            None if buffer is None else buffer.capacity,
            *pauses,
        )

    def _steps(
        self, consumer: ConsumerSteps, gaps: Gaps | None
    ) -> tuple[int, float | None, float | None, tuple[int, int]]:
        """Return (number, mean length, mean wait, pauses before them) of the steps since the previous sample.

        The training's thread appends to the three columns one after the other, so the shortest one tells how many are complete.
        """
        kept = min(len(consumer.starts), len(consumer.ends), len(consumer.waits))
        done = consumer.dropped + kept
        new = min(done - self._seen.get(consumer.id, 0), kept)
        self._seen[consumer.id] = done
        if new <= 0:
            return 0, None, None, (0, 0)
        part = slice(kept - new, kept)
        length_ns = (sum(consumer.ends[part]) - sum(consumer.starts[part])) / new
        wait_ns = sum(consumer.waits[part]) / new
        if length_ns <= 0:  # the oldest steps were removed in between
            return 0, None, None, (0, 0)
        first = max(1, kept - new)
        pauses = _pauses(consumer.ends[first - 1 : kept - 1], consumer.starts[first:kept])
        # no `next` takes no time: Keras fetches inside its step function, unseen
        return new, length_ns, wait_ns or _unseen_wait(consumer, kept, new, gaps), pauses

    def _elements(self, consumer: ConsumerSteps, gaps: Gaps | None, now_ns: int) -> LoopShare:
        """Return how many elements a loop inside a tf.function took, and how long they took, from the model of its iterator."""
        if gaps is None:
            return LoopShare(0)
        wait = self._loop_waits.setdefault(consumer.id, LoopWait())
        share = wait.look(now_ns, consumer.iterators, gaps, self._running_since(consumer))
        self._total_in_model[consumer.id] = self._total_in_model.get(consumer.id, 0) + share.elements
        return share


def _unseen_wait(consumer: ConsumerSteps, kept: int, new: int, gaps: Gaps | None) -> float | None:
    """Return the mean wait of the latest `new` steps from the gaps of the iterator; None if it is unknown.

    If there are more than 100 of them, it is the mean of the latest 100, which stands for all.
    """
    waits = latest_waits(consumer, gaps, kept, new) if gaps is not None else []
    return sum(wait.wait_ns for wait in waits) / len(waits) if waits else None


def _pauses(ends: array[int], starts: array[int]) -> tuple[int, int]:
    """Return (number, total length in ns) of the pauses between the ends of steps and the starts of those that follow them."""
    if (
        len(starts) != len(ends) or sum(starts) - sum(ends) < _LEAST_PAUSE_NS
    ):  # or the oldest steps were removed in between
        return 0, 0
    gaps = [start - end for start, end in zip(starts, ends, strict=True) if start - end >= _LEAST_PAUSE_NS]
    return len(gaps), sum(gaps)
