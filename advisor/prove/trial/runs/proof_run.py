"""The child process's half of a proof session: holds the script when it requests its first element, and serves requests there.

In: a `ProofRequest`, then one `Request` per line from the parent (`messages`).
Out: one `Reply` per line; then the script is stopped as at the end of a window.
"""

from __future__ import annotations

import contextlib
import shutil
import sys

from advisor.capture.instrument.call_sites import LOOP_OPCODES
from advisor.capture.instrument.consumers import SIDE_KINDS
from advisor.capture.instrument.peeks import peek_at
from advisor.capture.stop_script import StopScript
from advisor.model.calls import Call
from advisor.model.codec import decode_message
from advisor.model.recording import ScriptExit
from advisor.prove.trial.messages import Ended, ProofRequest
from advisor.prove.trial.runs.analysed_run import AnalysedRun
from advisor.prove.trial.runs.held_run import HeldRun


class ProofRun(HeldRun):
    """A run of the script that is recorded, without a profile, until the script is held."""

    def __init__(self, message: ProofRequest) -> None:
        super().__init__(message)
        self._is_profiled = False  # the window's rules still stop a script that never reaches the consumer
        self._hold_at, self._lost = message.hold_at, message.lost
        self._looks: set[tuple[str, int]] = set()
        """Places at which the script has looked at the first element of a dataset."""

    # -- holding

    def _on_consumption(self, call: Call) -> None:
        """Hold the script here if this is what it is to be held at."""
        if not self._is_wanted(call):
            return
        consumer = self._consumption.current_consumer()
        self._consumed_at = (
            consumer.site if consumer is not None else self._recorder.finder.place(sys._getframe(2)).site
        )
        self._recorder.is_open = False
        self._monitor.switch_off()
        self._is_counting = False
        try:
            self._serve(call.id, self._lost)
        except (BrokenPipeError, KeyboardInterrupt):  # the parent has ended or is ending; not an error of the script
            pass
        finally:
            shutil.rmtree(self._files, ignore_errors=True)  # the parent may have been killed
        self._is_counting = self._is_over = True
        raise StopScript

    def _is_wanted(self, call: Call) -> bool:
        """Whether to hold the script here. In patched text the line numbers differ, so consumptions are counted there."""
        if self._hold_at is not None:
            return self._consumptions == self._hold_at
        return self._matching.is_consumer(call) and not self._is_side_loop() and not self._is_look()

    def _is_side_loop(self) -> bool:
        """If the consumer is unknown: whether a library reads the dataset here (`adapt`), or Keras evaluates with it.

        A library that is only around the dataset of a loop (`for x in tqdm(dataset)`) passes the elements on.
        """
        if self._matching.is_consumer_known:
            return False
        consumer = self._consumption.current_consumer()
        if consumer is not None:
            return consumer.kind in SIDE_KINDS
        place = self._recorder.finder.place(sys._getframe(4))
        return place.library is not None and place.opcode not in LOOP_OPCODES

    def _is_look(self) -> bool:
        """If the consumer is unknown: whether the script only looks at the first element here. The second time, it is a loop."""
        if self._matching.is_consumer_known or self._consumption.current_consumer() is not None:
            return False
        look = peek_at(sys._getframe(1), self._recorder.finder.owner_of)
        if look is None or look in self._looks:
            return False
        self._looks.add(look)
        return True

    # -- messages

    def _report(self, phase: str, done: int, total: int | None) -> None:
        with contextlib.suppress(OSError):
            self._progress("starting", 0, None)

    def _finish(self, ended: ScriptExit) -> None:
        with contextlib.suppress(OSError):
            self._send(Ended(ended))

    def _write(self, script_exit: ScriptExit, goes_on: bool = False) -> None:
        """Write nothing: a proof has no recording."""


def run_proof(message: str) -> int:
    """Run the child's half of a proof and return the script's exit code.

    Args:
        message: A `ProofRequest`, encoded.
    """
    request = decode_message(message, ProofRequest)
    return (AnalysedRun if request.is_analysed else ProofRun)(request).run()
