"""Decides when a window on a loop inside a tf.function closes, whose steps Python does not see.

In: time, and tf.data's own model of the loop's iterator where Python holds one.  Out: whether enough elements were taken; whether
a profile that was written shows enough requests for elements.
"""

from __future__ import annotations

import math
import mmap
from collections import Counter
from pathlib import Path
from typing import Any

from advisor.capture.instrument.consumers import ConsumerSteps
from advisor.capture.instrument.iterator_model import elements_produced
from advisor.capture.window.profiler import profile_bytes
from advisor.capture.window.time_left import seconds_left
from advisor.host.calibration.window import (
    BYTES_PER_EVENT,
    LEAST_LOOP_REQUESTS,
    LOOP_ELEMENTS,
    LOOP_LOOK_S,
    LOOP_SECONDS,
    MAX_EVENTS,
    MAX_LOOP_SECONDS,
    REOPENED_LOOP_FACTOR,
    SLOW_LOOP_ELEMENTS,
    SLOW_LOOP_SECONDS,
)

_EVENT = b"Iterator::"
"""Part of the name of each event of a tf.data iterator (`tensorflow/core/data/name_utils.h`)."""


class LoopWindow:
    """The end of one window.

    Args:
        consumer: The consumer whose loop it is.
        seconds: The user's limit in seconds; None: none.
        least_s: Seconds that the window lasts at least without such a limit.
        age_s: Seconds of the run before the window that count for the time until the first verdict.
        writing_s: How long the latest profile was written.
    """

    def __init__(
        self,
        consumer: ConsumerSteps,
        seconds: float | None,
        least_s: float = LOOP_SECONDS.value,
        age_s: float = -math.inf,
        writing_s: float = 0.0,
    ) -> None:
        self._consumer, self._seconds = consumer, seconds
        self._slow_s = min(SLOW_LOOP_SECONDS.value, seconds_left(age_s, 0.0, writing_s))
        """After this time, slow steps need fewer elements. If there are fewer still, twelve steps take longer than a minute."""
        self.least_s = min(least_s, MAX_LOOP_SECONDS.value)
        self._first = elements_produced(consumer)
        self._next_look_s = self.least_s
        self._is_longest = self.least_s >= MAX_LOOP_SECONDS.value

    @property
    def expected_s(self) -> float:
        """The length of the window in seconds, as far as it is known."""
        return self._seconds or self.least_s

    def is_over(self, elapsed_s: float) -> bool:
        """Return whether to close the window.

        Args:
            elapsed_s: Seconds since it was opened.
        """
        if self._seconds is not None:
            return elapsed_s >= self._seconds
        if elapsed_s < self._next_look_s:
            return False
        self._next_look_s = elapsed_s + LOOP_LOOK_S.value
        self._is_longest = elapsed_s >= MAX_LOOP_SECONDS.value
        return self._is_longest or self._has_enough(elapsed_s)

    def _has_enough(self, elapsed_s: float) -> bool:
        """Whether enough elements were taken; True if that is unknown."""
        now = elements_produced(self._consumer)
        if now is None:
            return True
        is_same = self._first is not None and self._first[0] == now[0]
        taken = now[1] - self._first[1] if is_same and self._first is not None else now[1]
        is_slow = elapsed_s >= self._slow_s
        return taken >= (SLOW_LOOP_ELEMENTS.value if is_slow else LOOP_ELEMENTS.value)

    def longer(self, folder: Path, age_s: float = -math.inf, writing_s: float = 0.0) -> LoopWindow | None:
        """Return a longer window if this one shows too few whole steps, and there is time for it.

        Args:
            folder: Where the profile of this window was written.
            age_s: Seconds of the run until now that count for the time until the first verdict.
            writing_s: How long the profile was written.
        """
        if self._seconds is not None or self._is_longest:
            return None
        most = MAX_EVENTS.value * BYTES_PER_EVENT.value / max(1, profile_bytes(folder))
        if most <= 1:  # reading it would take much of the script's memory, too
            return None
        requests = requests_in(folder, SLOW_LOOP_ELEMENTS.value)
        if requests is None or requests >= SLOW_LOOP_ELEMENTS.value:
            return None
        wanted = (SLOW_LOOP_ELEMENTS.value + 1) / max(1, requests)  # one more, because the first may come late
        least_s = min(REOPENED_LOOP_FACTOR.value, wanted, most) * self.least_s
        left_s = seconds_left(age_s, self.least_s / (requests + 1), writing_s)
        if left_s < least_s and requests >= LEAST_LOOP_REQUESTS.value:
            if left_s <= self.least_s:
                return None  # few steps, but a verdict
            least_s = left_s
        return LoopWindow(self._consumer, None, least_s, age_s, writing_s)


def requests_in(folder: Path, enough: int) -> int | None:
    """Return the number of requests for elements in a profile: of the pipeline with the most of them.

    Args:
        folder: Where the profile was written.
        enough: Counting ends at this number.

    Returns:
        The number, at most `enough`; None if there is no profile or it cannot be read.
    """
    most = None
    for path in folder.glob("plugins/profile/*/*.xplane.pb"):
        try:
            with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
                requests = (_count(bytes(content), enough) or None) if content.find(_EVENT) >= 0 else 0
        except Exception:  # an empty file cannot be mapped; TensorFlow's description of profiles is private
            return None
        if requests is None:
            return None
        most = max(most or 0, requests)
    return most


def _count(content: bytes, enough: int) -> int:
    """Count the calls of each root in an encoded profile, and return the largest number."""
    from tensorflow.tsl.profiler.protobuf import xplane_pb2

    calls: Counter[tuple[str, int]] = Counter()
    for plane in xplane_pb2.XSpace.FromString(content).planes:
        depths = {key: data.name.count("::") for key, data in plane.event_metadata.items() if "Iterator::" in data.name}
        least = min(depths.values(), default=0)  # `Iterator::Root`, or `Iterator::TakeWhile` of AutoGraph's loops
        roots = {key for key, depth in depths.items() if depth == least}
        ids = {key for key, metadata in plane.stat_metadata.items() if metadata.name == "id"}
        for event in (event for line in plane.lines for event in line.events if roots):
            if event.metadata_id in roots:
                root = plane.name, _id_of(event, ids)
                calls[root] += 1
                if calls[root] >= enough:
                    return enough
    return max(calls.values(), default=0)


def _id_of(event: Any, ids: set[int]) -> int:  # noqa: ANN401
    """The iterator's id; 0 if there is none."""
    return next((stat.uint64_value or stat.int64_value for stat in event.stats if stat.metadata_id in ids), 0)
