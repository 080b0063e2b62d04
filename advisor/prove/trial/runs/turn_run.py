"""A timed run of the script that stops itself after its window, and goes on in turns with another process.

In: a `SessionRequest` with a pipe of requests; one `TurnRequest` per line from the parent (`turn_messages`).  Out: the run
folder of a capture; `Stopping` after the window, then one `TurnTaken` per turn.

The process stops itself, with SIGSTOP to its own process group: all its threads, those of tf.data too, so that no buffer is
filled in the other one's turn. Another process could only stop it within a step.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable

from advisor.capture.instrument.consumer_hooks import Consumption
from advisor.capture.instrument.consumers import ConsumerSteps, LongCall
from advisor.capture.instrument.iterator_model import buffer_now
from advisor.capture.instrument.keras_loops import KerasLoops
from advisor.capture.request import SessionRequest
from advisor.capture.session import Session, run_session
from advisor.capture.window.monitor import Monitor
from advisor.host.calibration.window import BUFFER_LOOK_NS
from advisor.model.codec import decode_message
from advisor.model.recording import ScriptExit
from advisor.prove.trial.runs.turn_clock import Level, TurnClock, UsualLevels
from advisor.prove.trial.runs.turn_messages import Stopping, TakeTurn, TurnReply, TurnRequest


class GoesOn(BaseException):
    """The script is not ended after its window. No `Exception`, which the monitor would take for an error of its own."""


class TurnFollower:
    """Follows the steps in place of the monitor from the end of its window on."""

    def __init__(
        self, monitor: Monitor, send: Callable[[TurnReply], None], receive: Callable[[], TurnRequest | None]
    ) -> None:
        """Create it; the monitor follows the steps until it stops the script.

        Args:
            monitor: The monitor of the run.
            send: Sends a message to the parent.
            receive: Waits for the next request; None: the parent has ended.
        """
        self._monitor, self._send, self._receive = monitor, send, receive
        self._leader: ConsumerSteps | None = None
        """The consumer whose steps are timed; None: no turn has begun."""
        self._clock: TurnClock | None = None
        self._usual = UsualLevels()
        self._next_look_ns = 0
        monitor.script_end.on_stop = self._stop_after_window

    # -- what the hooks call

    def call_began(self, call: LongCall) -> None:
        """See `Monitor`."""
        self._monitor.call_began(call)

    def call_ended(self, thread_id: int) -> None:
        """See `Monitor`."""
        self._monitor.call_ended(thread_id)

    def data_ended(self, consumer: ConsumerSteps) -> None:
        """See `Monitor`."""
        self._monitor.data_ended(consumer)

    def boundary(self, consumer: ConsumerSteps) -> int:
        """See `Monitor`. The process may be stopped meanwhile: no step contains that time.

        Raises:
            StopScript: There are no more turns.
        """
        if self._leader is None:
            with contextlib.suppress(GoesOn):
                return self._monitor.boundary(consumer)
        else:
            now = time.time_ns()
            consumer.thread_id = threading.get_ident()
            duration_ns = now - consumer.open_since_ns if consumer.open_since_ns else 0
            if duration_ns:
                consumer.end(now)
            if consumer is self._leader and duration_ns and not self._goes_on_after(consumer, duration_ns, now):
                self._leader = None
                self._monitor.stop_script()
        now = time.time_ns()
        consumer.begin(now)
        return now

    def switch_off(self) -> None:
        """Follow no more steps, in a forked process: the monitor is switched off there as well."""
        self._leader = None

    # -- turns

    def _goes_on_after(self, consumer: ConsumerSteps, duration_ns: int, now: int) -> bool:
        """Note a step, and take turns if the present one is over; return whether the script goes on."""
        try:
            clock, level = self._clock, None
            if now >= self._next_look_ns:
                self._next_look_ns = now + BUFFER_LOOK_NS.value
                level = level_of(consumer)
            if clock is None or not clock.is_over_after(duration_ns, consumer.waits[-1], now, level):
                return True
            level = level_of(consumer)
            taken, self._usual = clock.taken(level), clock.next_usual(level)
            return self._stop(taken, consumer)
        except Exception:  # an error here is none of the script; the parent sees that it ends
            return False

    def _stop_after_window(self) -> None:
        """Stop the process instead of ending the script.

        Raises:
            GoesOn: Another turn has begun.
        """
        consumer = self._monitor.leader
        self._monitor.script_end.on_stop = lambda: None
        if consumer is None:
            return
        readings = [count for levels in self._monitor.buffer_levels() for count in levels.elements]
        level = level_of(consumer)
        stopped = None if level is None else level.elements
        self._usual = UsualLevels(min(readings, default=None), max(readings, default=None), stopped)
        if self._stop(Stopping(why_not_stoppable()), consumer):
            self._leader = consumer
            raise GoesOn

    def _stop(self, message: TurnReply, consumer: ConsumerSteps) -> bool:
        """Send the message, stop the process, and begin the next turn when it goes on; return whether there is one."""
        try:
            self._send(message)
        except OSError:  # the parent has ended
            return False
        if not why_not_stoppable():
            os.killpg(0, signal.SIGSTOP)
        request = self._receive()
        if not isinstance(request, TakeTurn):
            return False
        self._clock = TurnClock(request, self._usual, time.time_ns(), level_of(consumer))
        return True


class TurnRun(Session):
    """A run to its window, and then in turns."""

    def __init__(self, message: SessionRequest) -> None:
        super().__init__(message)
        assert message.requests_fd is not None
        self._requests = os.fdopen(message.requests_fd, "rb")
        self._turns = TurnFollower(self._monitor, self._send, self._next_request)
        self._consumption = Consumption(self._recorder.finder, self._consumers, self._turns, self._warn)
        self._consumption.on_epoch = self._recorder.state.epoch
        self._keras = KerasLoops(self._consumption, self._turns, self._warn)
        self._is_written = False

    def run(self) -> int:
        """Run the script and return its exit code."""
        os.set_inheritable(self._requests.fileno(), False)
        return super().run()

    def _next_request(self) -> TurnRequest | None:
        line = self._requests.readline()
        if not line:
            return None
        request: TurnRequest = decode_message(line, TurnRequest)
        return request

    def _write(self, script_exit: ScriptExit, goes_on: bool = False) -> None:
        """Write the run folder once: the turns after the window are no part of the run."""
        if not self._is_written:
            super()._write(script_exit, goes_on)
        self._is_written = True

    def _forget_in_fork(self) -> None:
        super()._forget_in_fork()
        self._turns.switch_off()


def level_of(consumer: ConsumerSteps) -> Level | None:
    """Return how full the last buffer of a consumer's pipeline is; None if there is none, or tf.data does not tell."""
    try:
        buffer = buffer_now(consumer)
    except Exception:  # the model is private, and an error here must not stop the script
        return None
    return None if buffer is None else Level(buffer.elements, buffer.capacity)


def why_not_stoppable() -> str:
    """Return why this process may not stop its process group, as the end of a sentence; empty if it may.

    Its group must be its own: a signal to another one would stop the parent, or whoever started that.
    """
    if os.getpgrp() != os.getpid():
        return "its process is not the leader of a process group"
    return ""


def run_in_turns(message: str) -> int:
    """Run a script with its hooks and return its exit code.

    Args:
        message: A `SessionRequest` with a pipe of requests, encoded.
    """
    return run_session(message, TurnRun)


__all__ = ["TurnFollower", "TurnRun", "level_of", "run_in_turns", "why_not_stoppable"]
