"""A timed run of the changed text that also writes the calls which the text makes before the training's first element.

In: a `SessionRequest` whose capture has `calls_at`.  Out: the run folder of a capture, with `CALLS_NAME` in it: a `CallGraph`. If
the consumption of that number is not reached, or the calls cannot be read, there is no such file.

The calls are read before the warm-up, and what was kept for that is released, so that the timed steps are those of any other run.
"""

from __future__ import annotations

from advisor.capture.request import SessionRequest
from advisor.capture.script_runner import exception_line
from advisor.capture.session import run_session
from advisor.model.call_graph import CALLS_NAME
from advisor.model.calls import Call
from advisor.model.codec import encode_message
from advisor.prove.trial.runs.counted_run import CountedRun
from advisor.prove.trial.runs.script_calls import recorded_graph


class CheckedRun(CountedRun):
    """A run to its window that writes its calls on the way."""

    def __init__(self, message: SessionRequest) -> None:
        super().__init__(message)
        self._consumption.on_epoch = self._recorder.state.epoch

    def _on_consumption(self, call: Call) -> None:
        if self._consumptions != self._request.calls_at:
            return
        self._stop_counting()
        import tensorflow as tf

        try:
            with tf.init_scope(), self._consumption.unwatched(), self._recorder.paused():
                graph = recorded_graph(self._recorder, call.id, self._consumptions)
            self._put(CALLS_NAME, encode_message(graph).encode())
        except Exception as error:  # the check is then made in a run of its own
            self._warn(f"The calls of the changed text could not be read ({exception_line(error)}).")
        finally:
            self._log.close()


def run_checked(message: str) -> int:
    """Run a script with its hooks and return its exit code.

    Args:
        message: A `SessionRequest`, encoded.
    """
    return run_session(message, CheckedRun)
