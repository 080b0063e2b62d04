"""Ends the script after its window: with an exception in one of its threads, and with its process if that does not help.

In: the decision that the script is to end, made at a step boundary or by the watchdog.  Out: `StopScript` in a thread of the
script; a deadline after which the watchdog ends the process.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import NoReturn

from advisor.capture.instrument.consumers import LongCall
from advisor.capture.stop_script import DID_NOT_END, StopScript
from advisor.capture.window.watchdog import Watchdog, raise_in_thread
from advisor.host.calibration.window import MAX_STOPS, STOP_GRACE_S


class ScriptEnd:
    """Stops the script, again if it catches the exception."""

    def __init__(self, on_stuck: Callable[[str], NoReturn]) -> None:
        """Create it before the script runs.

        Args:
            on_stuck: Called with the reason if the script does not stop; must end the process.
        """
        self.watchdog: Watchdog | None = None
        self.on_stop: Callable[[], None] = lambda: None
        """Called once at the step boundary at which the script is stopped, before it is. Meanwhile no steps are followed."""
        self.count = 0
        """How often the script has been stopped."""
        self._on_stuck = on_stuck

    def announce(self) -> None:
        """Call `on_stop` if the script is about to be stopped for the first time."""
        if not self.count:
            self.on_stop()

    def note(self) -> None:
        """Count a stop, and begin the time within which the script has to end."""
        self.count += 1
        if self.watchdog is not None:
            self.watchdog.end_within(STOP_GRACE_S.value, DID_NOT_END)

    def raise_here(self) -> NoReturn:
        """Stop the script in this thread.

        Raises:
            StopScript: Always, unless the process ends because the script has caught it too often.
        """
        if self.count > MAX_STOPS.value:
            self._on_stuck(
                f"The script caught the exception that stops it {MAX_STOPS.value} times, so its process was ended."
            )
        raise StopScript

    def raise_elsewhere(self, call: LongCall | None, grace_s: float) -> None:
        """Stop the script from the watchdog's thread.

        Args:
            call: The call into TensorFlow whose thread is stopped; None: the main thread is.
            grace_s: Seconds within which the call has to return.
        """
        if call is not None and self.watchdog is not None:
            self.watchdog.end_within(
                grace_s,
                "The loop inside a tf.function could not be interrupted, so the script's process was ended after the "
                "window without running its exit handlers.",
            )
        self.note()
        thread_id = call.thread_id if call is not None else threading.main_thread().ident
        if thread_id is not None:
            raise_in_thread(thread_id)
