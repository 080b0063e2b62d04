"""Counts the steps of a running script once per second, without the profiler, for `advisor watch`.

In: the consumers (`Tracks`), whose steps the hooks record anyway.  Out: a `LiveSample` per interval, passed to a callback.

A sample reads what the steps since the previous one left behind, and asks tf.data's own model how full the buffers are. It takes
well under a millisecond; its CPU time is part of every sample.
"""

from __future__ import annotations

import os
import threading
import time
from array import array
from collections.abc import Callable
from typing import Any

from advisor.capture.instrument.consumers import Track, Tracks
from advisor.capture.instrument.iterator_model import last_buffer, model_nodes
from advisor.model.live import LiveConsumer, LiveSample

_STATM = "/proc/self/statm"
_LEAST_PAUSE_NS = 1_000_000
"""A shorter time between two steps is that of the hooks themselves."""


class LiveCounters:
    """A thread that samples the consumers until it is stopped."""

    def __init__(
        self,
        tracks: Tracks,
        leader: Callable[[], Track | None],
        has_profiled_since: Callable[[int], bool],
        send: Callable[[LiveSample], None],
        warn: Callable[[str], None],
        interval_s: float,
    ) -> None:
        """Create the counters without starting them.

        Args:
            tracks: The consumers.
            leader: Returns the consumer that is most likely the training loop.
            has_profiled_since: Returns whether the profiler has been active since a Unix time in ns.
            send: Called with each sample, in the thread. An OSError, raised if the reader has ended, stops the sampling.
            warn: Called with a sentence if sampling fails, which ends it.
            interval_s: Seconds between two samples.
        """
        self._warn = warn
        self._tracks, self._leader, self._has_profiled_since = tracks, leader, has_profiled_since
        self._send, self._interval_s = send, interval_s
        self._seen: dict[str, int] = {}
        """Consumer id -> number of its steps that have been sampled."""
        self._passes_before = {track.id: track.iterators for track in tracks.all()}
        """Consumer id -> iterations before the counters were made, by an earlier watch of the same process."""
        self._seen_in_model: dict[str, tuple[int, int]] = {}
        """Consumer id -> (identity of its iterator, elements that it has produced)."""
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
            models = model_nodes(self._tracks)
            leader = self._leader()
            consumers = [self._consumer(track, models.get(track.id), track is leader) for track in self._tracks.all()]
            elapsed_ns = max(1, now - self._last_ns)
            sample = LiveSample(
                now,
                elapsed_ns,
                (cpu_ns - self._last_cpu_ns) / elapsed_ns,
                _rss_bytes(),
                max(0, own_ns - self._last_own_ns),
                self._has_profiled_since(self._last_ns),
                tuple(consumer for consumer in consumers if consumer is not None),
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

    def _consumer(self, track: Track, model: tuple[int, Any] | None, is_main: bool) -> LiveConsumer | None:
        buffer = None if model is None else last_buffer(model[1])
        if track.is_loop or (track.is_traced and not track.count):
            new, step_ns, wait_ns = self._elements(track, model), None, None
            total, pauses = self._total_in_model.get(track.id, 0), (0, 0)
        else:
            new, step_ns, wait_ns, pauses = self._steps(track)
            total = self._seen[track.id]
        if not new:
            return None
        return LiveConsumer(
            track.id,
            track.kind,
            track.where,
            is_main,
            total,
            max(1, track.iterators - self._passes_before.get(track.id, 0)),
            new,
            step_ns,
            wait_ns,
            None if buffer is None else buffer.elements,
            None if buffer is None else buffer.capacity,
            *pauses,
        )

    def _steps(self, track: Track) -> tuple[int, float | None, float | None, tuple[int, int]]:
        """Return (number, mean length, mean wait, pauses before them) of the steps since the previous sample.

        The training's thread appends to the three columns one after the other, so the shortest one tells how many are complete.
        """
        kept = min(len(track.starts), len(track.ends), len(track.waits))
        done = track.dropped + kept
        new = min(done - self._seen.get(track.id, 0), kept)
        self._seen[track.id] = done
        if new <= 0:
            return 0, None, None, (0, 0)
        part = slice(kept - new, kept)
        length_ns = (sum(track.ends[part]) - sum(track.starts[part])) / new
        wait_ns = sum(track.waits[part]) / new
        if length_ns <= 0:  # the oldest steps were removed in between
            return 0, None, None, (0, 0)
        first = max(1, kept - new)
        pauses = _pauses(track.ends[first - 1 : kept - 1], track.starts[first:kept])
        # no `next` takes no time: Keras fetches inside its step function, unseen
        return new, length_ns, wait_ns or None, pauses

    def _elements(self, track: Track, model: tuple[int, Any] | None) -> int:
        """Return how many elements a loop inside a tf.function took, from tf.data's model of its iterator."""
        if model is None:
            return 0
        identity, proto = model
        produced = int(proto.nodes[proto.output].num_elements)
        earlier = self._seen_in_model.get(track.id)
        self._seen_in_model[track.id] = identity, produced
        new = produced - earlier[1] if earlier is not None and earlier[0] == identity else produced
        self._total_in_model[track.id] = self._total_in_model.get(track.id, 0) + max(0, new)
        return max(0, new)


def _pauses(ends: array[int], starts: array[int]) -> tuple[int, int]:
    """Return (number, total length in ns) of the pauses between the ends of steps and the starts of those that follow them."""
    if (
        len(starts) != len(ends) or sum(starts) - sum(ends) < _LEAST_PAUSE_NS
    ):  # or the oldest steps were removed in between
        return 0, 0
    gaps = [start - end for start, end in zip(starts, ends, strict=True) if start - end >= _LEAST_PAUSE_NS]
    return len(gaps), sum(gaps)


def _rss_bytes() -> int | None:
    try:
        with open(_STATM, "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return None
