"""What watching adds to a run: counters all the time, and windows after the run's own one.

In: the consumers, the monitor and requests for windows.  Out: `LiveSample`s and `LiveWindow`s; a run folder per window, with its
profile and a recording of its steps alone.

The same for a script in a child process (`session`) and for a program that watches itself (`in_process`).
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from functools import cached_property
from pathlib import Path

from advisor.capture.instrument.consumers import Consumers, ConsumerSteps
from advisor.capture.instrument.keras_loops import KerasLoops
from advisor.capture.instrument.recorder import Recorder
from advisor.capture.window.later_windows import LaterWindows
from advisor.capture.window.live_counters import LiveCounters
from advisor.capture.window.measurement import Capture
from advisor.capture.window.monitor import Monitor
from advisor.capture.window.python_sampler import sampler_for
from advisor.host.machine import describe_host
from advisor.model.codec import encode
from advisor.model.live import LiveSample, LiveWindow
from advisor.model.recording import Host, Recording, ScriptExit
from advisor.model.run_folder import RECORDING_NAME

_STEPS_BEFORE = 1_000
"""Steps before a window that its recording keeps; the analysis needs those of the window."""


class LiveSession:
    """The live part of one run."""

    def __init__(
        self,
        recorder: Recorder,
        consumers: Consumers,
        keras: KerasLoops,
        monitor: Monitor,
        send: Callable[[LiveSample | LiveWindow], None],
        warn: Callable[[str], None],
        interval_s: float,
        argv: tuple[str, ...],
        has_windows: bool,
    ) -> None:
        """Create the live part without starting it.

        Args:
            recorder: The calls that make datasets.
            consumers: The consumers.
            keras: What is known of Keras.
            monitor: Opens the run's own window, and then the later ones.
            send: Called with each sample and window, in a thread of its own. An OSError means that the reader is gone.
            warn: Called with a sentence for each problem.
            interval_s: Seconds between two samples.
            argv: The script and its arguments.
            has_windows: Whether later windows may be asked for.
        """
        self._recorder, self._consumers, self._keras, self._monitor = recorder, consumers, keras, monitor
        self._send, self._warn, self._argv = send, warn, argv
        self._written: deque[LiveWindow] = deque()
        """Windows to send with the next sample, so that the training never waits for who reads them."""
        self._counters = LiveCounters(
            consumers,
            lambda: monitor.leader,
            monitor.has_profiled_since,
            self._send_all,
            warn,
            interval_s,
            monitor.running_since,
        )
        if has_windows:
            monitor.later = LaterWindows(
                consumers,
                lambda: monitor.profiler,
                lambda: sampler_for(recorder.calls(), recorder.finder),
                self._write_window,
            )

    def start(self) -> None:
        """Start sampling."""
        self._counters.start()

    def stop(self) -> None:
        """Stop sampling, with a last sample."""
        self._counters.stop()

    def switch_off(self) -> None:
        """Send nothing any more, as in a forked process."""
        self._counters.switch_off()

    def ask(self, folder: Path) -> None:
        """Ask for a window; see `LaterWindows.ask`."""
        if self._monitor.later is not None:
            self._monitor.later.ask(folder)

    def listen(self, descriptor: int) -> None:
        """Read requests for windows from a pipe, in a thread: each line is the path of a folder."""
        os.set_inheritable(descriptor, False)

        def read() -> None:
            rest = b""
            with contextlib.suppress(OSError):
                while data := os.read(descriptor, 4096):
                    *lines, rest = (rest + data).split(b"\n")
                    for line in lines:
                        self.ask(Path(os.fsdecode(line)))

        threading.Thread(target=read, name="advisor-requests", daemon=True).start()

    def own_window_written(self, folder: Path, capture: Capture | None) -> None:
        """Send the run's own window, which has been written as a whole run folder.

        Args:
            folder: The run folder.
            capture: The window; nothing is sent if it holds no profile.
        """
        if capture is not None and capture.profile_bytes:
            self._note_window(folder, capture, "", is_first=True)

    def _send_all(self, sample: LiveSample) -> None:
        while self._written:
            self._send(self._written.popleft())
        self._send(sample)

    def _write_window(self, capture: Capture, problem: str) -> None:
        if not problem:
            try:
                (capture.folder / RECORDING_NAME).write_bytes(encode(self._recording(capture)))
            except OSError as error:
                problem = f"The window could not be written to {capture.folder}: {error.strerror or error}."
        self._note_window(capture.folder, capture, problem, is_first=False)

    def _note_window(self, folder: Path, capture: Capture, problem: str, is_first: bool) -> None:
        consumer, window = capture.consumer, capture.window
        self._written.append(
            LiveWindow(
                folder=str(folder),
                consumer_id="" if consumer is None else consumer.id,
                where="" if consumer is None else consumer.where,
                kind="" if consumer is None else consumer.kind,
                first_step=window.warmup_steps,
                last_step=window.warmup_steps + window.plain_steps + window.steps,
                start_ns=window.plain_end_ns or window.start_ns,
                end_ns=window.end_ns,
                written_ns=time.time_ns(),
                is_first=is_first,
                problem=problem,
            )
        )

    def _recording(self, capture: Capture) -> Recording:
        """Return the recording of one window: what the analysis needs to find its bottleneck."""
        main, window = capture.consumer, capture.window

        def first_step(consumer: ConsumerSteps) -> int:
            steps = window.plain_steps + window.steps if consumer is main else 0
            return max(0, consumer.count - steps - _STEPS_BEFORE)

        consumers = self._consumers.all()
        return Recording(
            target=" ".join(self._argv),
            host=self._host,
            script_exit=ScriptExit("stopped"),
            argv=self._argv,
            cwd=str(Path.cwd()),
            calls=self._recorder.calls(),
            consumers=tuple(consumer.recorded(consumer is main) for consumer in consumers),
            steps=tuple(consumer.series(first_step(consumer)) for consumer in consumers if consumer.count),
            window=window,
            usage=capture.usage,
            models=capture.models,
            plain_models=capture.unprofiled_models,
            gap_waits=capture.gap_waits,
            keras=self._keras.facts,
            python_samples=capture.python_samples,
            goes_on=True,
        )

    @cached_property
    def _host(self) -> Host:
        return describe_host()
