"""One instrumented run in the child process: installs the hooks, runs the script and writes the run folder.

In: the request message of the parent.  Out: `recording.json`, `host.json`, the profile; the script's exit code.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import random
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

from advisor.capture.ceiling import Ceiling
from advisor.capture.instrument.call_sites import SiteFinder
from advisor.capture.instrument.consumer_hooks import Consumption
from advisor.capture.instrument.consumers import Consumers
from advisor.capture.instrument.dataset_api import record_dataset_api
from advisor.capture.instrument.import_hooks import AfterImport
from advisor.capture.instrument.iterator_teardown import IteratorRelease
from advisor.capture.instrument.keras_loops import KerasLoops
from advisor.capture.instrument.queued_steps import queueing_library
from advisor.capture.instrument.recorder import MAX_CALLS, Recorder
from advisor.capture.instrument.state_hooks import watch_tensorflow
from advisor.capture.instrument.state_hooks import watch_writes as watch_written_state
from advisor.capture.live_session import LiveSession
from advisor.capture.request import CANNOT_WRITE, Progress, SessionRequest
from advisor.capture.script_runner import prepare, run
from advisor.capture.source_overlay import Overlay
from advisor.capture.stop_script import StopScript, end_at_the_latest
from advisor.capture.window.alone_reading import read_alone
from advisor.capture.window.fit_idle_steps import FitIdleSteps
from advisor.capture.window.monitor import Monitor
from advisor.capture.window.profiler import Profiler
from advisor.capture.window.python_sampler import calls_python, sampler_for
from advisor.capture.window.schedule import Limits
from advisor.capture.window.watchdog import Watchdog
from advisor.host.calibration.window import PYTHON_RELEASE_S, RELEASE_S
from advisor.host.disk_speed import disk_read_bytes_per_s
from advisor.host.machine import describe_host
from advisor.host.other_runs import other_runs
from advisor.model.atomic_file import replacing
from advisor.model.codec import decode_message, encode, encode_message
from advisor.model.recording import Recording, ScriptExit
from advisor.model.window_readings import AloneReading
from advisor.sandbox.redirect import install_in_h5py, install_in_tensorflow, redirect_if_told
from advisor.sandbox.written import watch_writes

_REPORT_NS = 100_000_000
"""Minimum time between two progress messages of the same phase."""


class Session:
    """One instrumented run of a script.

    Args:
        message: The message of the parent (`launch.session_request`).
    """

    def __init__(self, message: SessionRequest) -> None:
        request = self._request = message.capture
        self._out = request.out
        self._pipe: int | None = message.progress_fd
        self._sending = threading.Lock()
        self._warnings: dict[str, None] = {}
        self._redirection, self._write_log = redirect_if_told(), watch_writes()
        self._last_report_ns, self._last_phase = 0, ""
        self._cwd = str(Path.cwd())
        self._pid = os.getpid()
        self._was_stopped = False
        self._release: IteratorRelease | None = None
        self._is_profiled = request.is_profiled and request.ceiling_for is None
        self._consumers = Consumers()
        self._recorder = Recorder(SiteFinder(), self._warn)
        self._monitor = Monitor(
            self._out,
            Limits(request.warmup, request.steps, request.seconds, request.max_events, request.epoch_steps),
            self._consumers,
            is_to_end=request.to_end,
            is_profiling=self._is_profiled,
            report=self._report,
            warn=self._warn,
            on_measured=self._on_measured,
            on_stuck=self._end_process,
            sampler=lambda: sampler_for(self._recorder.calls(), self._recorder.finder),
        )
        self._disk: tuple[float | None] | None = None
        """Read throughput of the disk in bytes/s (None inside if unknown), once it was measured."""
        self._others = 0
        """Number of other runs of the script, counted when the disk is measured."""
        self._ceiling = None if request.ceiling_for is None else Ceiling(request.ceiling_for, self._recorder)
        self._consumption = Consumption(
            self._recorder.finder,
            self._consumers,
            self._monitor,
            self._warn,
            None if self._ceiling is None else self._ceiling.substitute,
        )
        self._consumption.on_epoch = self._recorder.state.epoch
        self._alone: AloneReading | None = None
        if request.reads_alone and request.ceiling_for is None:
            self._monitor.script_end.on_stop = self._read_alone
            self._monitor.idle_steps.is_wanted = self._is_profiled
            self._monitor.idle_steps.may_go_on = self._redirection is None  # some writes of redirected runs are kept
        self._keras = self._keras_loops()
        self._live = self._live_session(message.requests_fd)

    def _keras_loops(self) -> KerasLoops:
        """Return the hooks on Keras, which follow the session's consumers."""
        keras = KerasLoops(self._consumption, self._monitor, self._warn)
        idle_steps = FitIdleSteps(self._monitor.idle_steps, self._quietly, self._monitor.stop_script)
        keras.repeat = idle_steps.begin
        return keras

    @contextlib.contextmanager
    def _quietly(self) -> Iterator[None]:
        """Record nothing of what this thread does inside the block, because the advisor does it and not the script."""
        with self._recorder.paused(), self._consumption.unwatched():
            yield

    def _live_session(self, requests_fd: int | None) -> LiveSession | None:
        interval_s = self._request.live_s
        if interval_s is None:
            return None
        live = LiveSession(
            self._recorder,
            self._consumers,
            self._keras,
            self._monitor,
            self._send,
            self._warn,
            interval_s,
            self._request.argv,
            has_windows=requests_fd is not None,
        )
        if requests_fd is not None:
            live.listen(requests_fd)
        return live

    def run(self) -> int:
        """Run the script with the hooks installed and return its exit code."""
        if self._pipe is not None:
            os.set_inheritable(self._pipe, False)
        if self._request.start_seed is not None:
            import numpy as np

            random.seed(self._request.start_seed)
            np.random.seed(self._request.start_seed)
        os.register_at_fork(after_in_child=self._forget_in_fork)
        hook = AfterImport(
            {"tensorflow": self._on_tensorflow, "keras": self._keras.install, "tf_keras": self._keras.install}
        )
        hook.install()
        watch_written_state(self._recorder.state, self._recorder.finder)
        if (redirection := self._redirection) is not None:
            AfterImport({"h5py": lambda module: install_in_h5py(module, redirection)}).install()
        request = self._request
        Overlay({str(path): text.read_bytes() for path, text in request.overlay}).install()
        target = prepare(request.script, request.module, request.args)
        atexit.register(self._release_iterators)  # the first to be registered is the last to be called
        script_exit, exit_code = run(target)
        hook.remove()
        if self._write_log is not None:
            self._write_log.note_open_files()
        if os.getpid() != self._pid:
            return exit_code  # a process forked by the script returned from it; only the original one writes the files
        self._finish(script_exit)
        self._was_stopped = script_exit.kind == "stopped"
        return exit_code

    def _release_iterators(self) -> None:
        """Called at exit, after the exit handlers of the script. The watchdog is a Python thread, which no longer runs then."""
        if self._was_stopped and os.getpid() == self._pid:
            end_at_the_latest()
            here = threading.get_ident()
            iterators = (consumer.iterator for consumer in self._consumers.all() if consumer.thread_id == here)
            patience_s = PYTHON_RELEASE_S.value if calls_python(self._recorder.calls()) else RELEASE_S.value
            if self._release is not None:
                self._release.release(iterators, patience_s)

    def _on_tensorflow(self, tensorflow: ModuleType) -> None:
        if self._redirection is not None:
            install_in_tensorflow(self._redirection)
        if self._request.start_seed is not None:
            tensorflow.random.set_seed(self._request.start_seed)
        try:
            record_dataset_api(tensorflow, self._recorder, self._warn)
            self._consumption.install(tensorflow)
            watch_tensorflow(tensorflow, self._recorder.state, self._recorder.finder, self._warn)
            if self._is_profiled:
                self._monitor.profiler = Profiler(tensorflow)
                self._monitor.profiler.yield_to_script(self._monitor.script_profiles)
            watchdog = self._monitor.script_end.watchdog = Watchdog(self._monitor.poll, self._end_process)
            watchdog.start()
            self._release = IteratorRelease()
            if self._live is not None:
                self._live.start()
        except Exception as error:
            self._warn(
                f"TensorFlow {getattr(tensorflow, '__version__', '(unknown version)')} could not be instrumented "
                f"completely ({type(error).__name__}: {error})."
            )

    def _read_alone(self) -> None:
        """Read the pipeline without training. The script is stopped right after it, in this thread."""
        capture = self._monitor.capture
        consumer = capture.consumer if capture is not None else None
        if consumer is None or consumer.thread_id != threading.get_ident():
            return
        self._report("reading", consumer.count, None)
        try:
            self._alone = read_alone(
                consumer, self._recorder.calls(), self._monitor.buffer_levels(), self._consumption.unwatched
            )
        except Exception as error:  # the script must be stopped all the same
            self._warn(f"The pipeline could not be read without training ({type(error).__name__}: {error}).")

    def _on_measured(self) -> None:
        self._write(ScriptExit("stopped"), goes_on=self._live is not None)
        if self._live is not None:
            self._live.own_window_written(self._out, self._monitor.capture)

    def _end_process(self, why: str) -> NoReturn:
        """Write the run folder and ends the process, because the script does not end by itself."""
        self._warn(why)
        self._write(ScriptExit("stopped"))
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(0)

    def _forget_in_fork(self) -> None:
        """Turn the hooks off in a process forked by the script, which is not recorded."""
        self._recorder.is_open = self._recorder.state.is_open = False
        self._monitor.switch_off()
        if self._live is not None:
            self._live.switch_off()
        self._sending = threading.Lock()  # another thread may have held it during the fork
        if self._pipe is not None:
            with contextlib.suppress(OSError):
                os.close(self._pipe)
            self._pipe = None

    def _warn(self, text: str) -> None:
        self._warnings.setdefault(text)

    def _report(self, phase: str, done: int, total: int | None) -> None:
        now = time.time_ns()
        if self._pipe is None or (phase == self._last_phase and now - self._last_report_ns < _REPORT_NS):
            return
        self._last_report_ns, self._last_phase = now, phase
        with contextlib.suppress(OSError):
            self._send(Progress(phase, done, total))

    def _send(self, message: object) -> None:
        """Send a message to the parent.

        Raises:
            OSError: The parent has ended.
        """
        data = (encode_message(message) + "\n").encode()
        with self._sending:  # samples come from a thread of their own
            while data and self._pipe is not None:
                data = data[os.write(self._pipe, data) :]

    def _finish(self, script_exit: ScriptExit) -> None:
        self._report("finishing", 0, None)
        if script_exit.is_failure and self._monitor.idle_steps.has_begun:
            script_exit = ScriptExit("stopped")  # an element that it was given again may be why it failed
        if self._live is not None:
            self._live.stop()
        self._monitor.script_ended(script_exit.kind)
        self._recorder.is_open = False
        if self._monitor.capture is None and (script_exit.is_failure or script_exit.kind == "interrupted"):
            self._put("failure.json", encode_message(script_exit).encode())
            return
        self._write(script_exit)

    def _write(self, script_exit: ScriptExit, goes_on: bool = False) -> None:
        """Write the run folder. Called after the window, and again when the script has ended."""
        self._monitor.settle()
        if self._disk is None:
            self._disk = (disk_read_bytes_per_s(self._recorder.data_files.paths),)
            script = self._request.script
            self._others = other_runs(None if script is None else Path(self._cwd, script), self._request.module)
        host = replace(describe_host(), disk_read_bytes_per_s=self._disk[0])
        self._put("host.json", encode(host))
        self._put("recording.json", encode(replace(self._recording(script_exit, host), goes_on=goes_on)))

    def _put(self, name: str, data: bytes) -> None:
        """Write a file of the run folder. An error, such as a full disk, is sent to the parent: it must not fail the script."""
        try:
            with replacing(self._out / name) as file:
                file.write(data)
        except OSError as error:
            text = f"{self._out / name} cannot be written: {error.strerror or error}"
            with contextlib.suppress(OSError):
                self._send(Progress(CANNOT_WRITE, text=text))

    def _recording(self, script_exit: ScriptExit, host: Any) -> Recording:  # noqa: ANN401
        argv, capture = self._request.argv, self._monitor.capture
        main = capture.consumer if capture is not None else self._monitor.leader
        warnings = list(self._warnings)
        if self._recorder.dropped:
            warnings.append(
                f"Only the first {MAX_CALLS} dataset calls were recorded; {self._recorder.dropped} more were made."
            )
        if script_exit.is_failure:
            how = (
                f"failed ({script_exit.exception})"
                if script_exit.exception
                else f"ended with exit code {script_exit.code}"
            )
            warnings.append(
                f"The script {how} after the measured steps: if these are not its training, correct it and analyse it again."
            )
        keras_losses, losses = tuple(self._keras.models.losses), self._consumption.losses
        return Recording(
            target=" ".join(argv),
            host=host,
            script_exit=script_exit,
            argv=argv,
            cwd=self._cwd,
            calls=self._recorder.calls(),
            consumers=tuple(consumer.recorded(consumer is main) for consumer in self._consumers.all()),
            steps=tuple(consumer.series() for consumer in self._consumers.all() if consumer.count),
            window=None if capture is None else capture.window,
            usage=None if capture is None else capture.usage,
            models=() if capture is None else capture.models,
            plain_models=() if capture is None else capture.unprofiled_models,
            buffers=self._monitor.buffer_levels(),
            gap_waits=() if capture is None else capture.gap_waits,
            keras=self._keras.facts,
            compiles=tuple(self._keras.models.compiles),
            losses=keras_losses or losses.read(),
            loss_source="keras" if keras_losses or not losses.source else losses.source,
            product=self._keras.models.product,
            python_samples=None if capture is None else capture.python_samples,
            ceiling_step_ns=self._ceiling_steps(),
            idle_step_ns=tuple(self._monitor.idle_steps.durations_ns),
            read_alone=self._alone,
            unprofiled=self._monitor.unprofiled,
            is_seeded=is_seeded(self._request.start_seed),
            steps_queued_by=queueing_library(),
            other_runs=self._others,
            state=self._recorder.state.observed(),
            generators=self._recorder.generators.observed(),
            python_calls=self._recorder.python_calls.observed(),
            warnings=tuple(warnings),
        )

    def _ceiling_steps(self) -> tuple[int, ...]:
        """Step times of the ceiling run, ns: those of the window or, if it never opened, all but the first."""
        consumer, capture = self._monitor.leader, self._monitor.capture
        if self._ceiling is None or consumer is None or not self._ceiling.replaced:
            return ()
        if capture is None:
            return tuple(consumer.durations(1))
        first = capture.window.warmup_steps
        return tuple(consumer.durations(first)[: capture.window.steps])


def is_seeded(start_seed: int | None = None) -> bool | None:
    """Return whether TensorFlow's global seed is set; None if the private attributes that hold it do not exist.

    Args:
        start_seed: As in `CaptureRequest`: this seed was not set by the script.
    """
    try:
        return sys.modules["tensorflow.python.eager.context"].context()._seed not in (None, start_seed)
    except (KeyError, AttributeError):
        return None


def run_session(message: str, kind: type[Session] = Session) -> int:
    """Run one session in the child process and return the script's exit code.

    Args:
        message: A `SessionRequest`, encoded.
        kind: The class of the session.
    """
    _ignore_stop_in_threads()
    return kind(decode_message(message, SessionRequest)).run()


def _ignore_stop_in_threads() -> None:
    """Suppress the traceback when StopScript ends a thread of the script."""
    original = threading.excepthook

    def excepthook(args: threading.ExceptHookArgs) -> None:
        if args.exc_type is not StopScript:
            original(args)

    threading.excepthook = excepthook
