"""The places to which the samples of a watched run are passed on.

In: `LiveSample`s, slow periods and bottlenecks.  Out: what the `Sink`s make of them: files (`file_sinks`), metrics
(`metric_sinks`), runs of experiment trackers (`tracker_sinks`).

A sink that fails while the script runs is closed with one warning; the script goes on.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Protocol, runtime_checkable

from advisor.live.watched_run import Change
from advisor.model.live import LiveSample
from advisor.model.text import reason_of

MAX_WAITING = 120
"""Samples that wait for a slow sink; further ones are left out."""
_CLOSE_S = 60.0
"""Longest wait for a slow sink at the end."""


@runtime_checkable
class Sink(Protocol):
    """Receives every sample."""

    name: str
    """Option or text that asked for it, for warnings."""

    def write(self, sample: LiveSample, changes: Sequence[Change]) -> None:
        """Pass a sample on.

        Args:
            sample: The sample.
            changes: What was noticed with it: slow periods that begin or end, and new bottlenecks.

        Raises:
            Exception: It cannot be passed on; the sink is closed then.
        """
        ...

    def close(self) -> None:
        """Finish what was written."""
        ...


class Sinks:
    """All sinks of one run. Leaving the context closes them."""

    def __init__(self, sinks: list[Sink]) -> None:
        self._sinks = sinks
        self.warnings: list[str] = []
        """One sentence for each sink that failed."""

    def __enter__(self) -> Sinks:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for sink in self._sinks:
            self._closed(sink)

    def write(self, sample: LiveSample, changes: Sequence[Change]) -> None:
        """Pass a sample on to all of them; those that fail are closed."""
        for sink in list(self._sinks):
            try:
                sink.write(sample, changes)
            except Exception as error:  # of a library, too: the script must go on
                self._sinks.remove(sink)
                self.warnings.append(f"{sink.name} was given up: {reason_of(error)}.")
                self._closed(sink)

    def _closed(self, sink: Sink) -> None:
        try:
            sink.close()
        except Exception as error:
            self.warnings.append(f"{sink.name} was not closed properly: {reason_of(error)}.")


class Background:
    """Passes samples on in a thread of its own, so that a slow server holds up neither the others nor the script.

    What the sink raises is raised by the next `write`. Samples that do not fit into the queue are left out, which `close` says.
    """

    def __init__(self, sink: Sink) -> None:
        """Start the thread.

        Args:
            sink: The slow sink. It is used in the thread alone, from the first sample to its end.
        """
        self.name = sink.name
        self._sink = sink
        self._waiting: queue.Queue[Callable[[], None]] = queue.Queue(MAX_WAITING)
        self._error: Exception | None = None
        self._is_told = False
        self._left_out = 0
        self._is_over = False
        self._thread = threading.Thread(target=self._run, name="advisor-sink", daemon=True)
        self._thread.start()

    def write(self, sample: LiveSample, changes: Sequence[Change]) -> None:
        """See `Sink`."""
        if self._error is not None:
            self._is_told = True
            raise self._error
        try:
            self._waiting.put_nowait(lambda: self._sink.write(sample, changes))
        except queue.Full:
            self._left_out += 1

    def close(self) -> None:
        """See `Sink`."""
        if self._error is None:
            self._finish()
        if not self._is_over:  # the thread ended early, with an error
            self._sink.close()
        if self._error is not None and not self._is_told:
            raise self._error
        if self._left_out:
            raise RuntimeError(f"it was too slow for {self._left_out} samples, which were left out")

    def _finish(self) -> None:
        """Let the thread pass on what is waiting, and close the sink."""
        end_at = time.monotonic() + _CLOSE_S
        with contextlib.suppress(queue.Full):
            self._waiting.put(self._end, timeout=_CLOSE_S)
            self._thread.join(max(0.0, end_at - time.monotonic()))
        if self._thread.is_alive():
            raise RuntimeError(f"it did not answer for {_CLOSE_S:g} s")

    def _end(self) -> None:
        self._is_over = True
        self._sink.close()

    def _run(self) -> None:
        while not self._is_over:
            work = self._waiting.get()
            try:
                work()
            except Exception as error:
                self._error = error
                with contextlib.suppress(queue.Empty):
                    while True:  # so that no thread waits for a place in the queue
                        self._waiting.get_nowait()
                return


__all__ = ["Background", "Sink", "Sinks"]
