"""The run that is analysed, held after its window: trials are made in its process, so that the script starts once less.

In: a `ProofRequest`; after the window, `Begin`, then one `Request` per line from the parent (`messages`).
Out: the run folder, as of any analysed run; `Measured`; then one `Reply` per line; then the script is stopped.

Only a script whose datasets were all made before its training is held: to make them again, all objects are kept that they were
made of, and a script that makes datasets on the way may mean to release some of them.
"""

from __future__ import annotations

import contextlib
import shutil
import threading
from typing import Any

from advisor.capture.instrument.consumers import ConsumerSteps
from advisor.capture.script_runner import exception_line
from advisor.model.calls import Call
from advisor.model.codec import decode_message
from advisor.model.recording import ScriptExit
from advisor.prove.trial.messages import Begin, Ended, Failed, Measured, ProofRequest, Request
from advisor.prove.trial.runs.held_run import HeldRun

_RESOURCE = "_iterator_resource"
"""The attribute of a tf.data iterator that holds the C++ iterator."""
_PEEKED_STEPS = 2
"""A loop over the dataset of so many steps or fewer only looks at it."""


class AnalysedRun(HeldRun):
    """A profiled run that is held at the step boundary at which it would have been stopped."""

    def __init__(self, message: ProofRequest) -> None:
        super().__init__(message)
        self._consumption.on_epoch = self._recorder.state.epoch
        self._monitor.script_end.on_stop = self._hold
        self._log.is_over = self._is_training
        self._first_consumption: dict[str, tuple[int, int]] = {}
        """Call id -> (number of the first consumption of its dataset, number of calls made until then)."""
        self._is_held = False

    def _on_consumption(self, call: Call) -> None:
        """Number the first consumption of each dataset."""
        if call.id not in self._first_consumption:
            self._first_consumption[call.id] = self._consumptions, len(self._recorder.calls())

    def _consumption_of(self, call_id: str) -> int:
        return self._first_consumption[call_id][0]

    def _calls_known_at(self, call_id: str) -> int | None:
        return self._first_consumption[call_id][1]

    def _is_training(self) -> bool:
        return any(consumer.count > _PEEKED_STEPS for consumer in self._consumers.all())

    def _hold(self) -> None:
        """Hold the script after its window, until the parent needs it no longer."""
        consumers = self._consumers.all()
        if not self._log.is_open or self._monitor.capture is None or not may_release(consumers):
            return
        # The recording was written before the idle steps, and will not be written again.
        if self._monitor.idle_steps.durations_ns:
            self._write(ScriptExit("stopped"))
        self._is_held = True
        self._stop_counting()
        self._recorder.is_open = self._recorder.state.is_open = False
        try:
            release_iterators(consumers)
            self._send(Measured())
            begin = self._first_request()
            if begin is None:
                return
            is_known = begin.consumer in self._first_consumption and begin.consumer in self._log.calls
            if is_known and not self._log.has_changed_arguments():
                self._serve(begin.consumer, begin.lost)
            else:
                self._send(Failed("The dataset of the training cannot be made again in the process of its analysis."))
        except KeyboardInterrupt:  # the parent is ending
            pass
        except Exception as error:  # the script is stopped as after any window, and the parent runs it once more
            with contextlib.suppress(OSError):
                self._send(Failed(f"The script's process could not be used for trials ({exception_line(error)})."))
        finally:
            shutil.rmtree(self._files, ignore_errors=True)  # the parent may have been killed

    def _first_request(self) -> Begin | None:
        """Wait until the run is analysed; None if the process is not needed for trials."""
        line = self._requests.readline()
        request: Request | None = decode_message(line, Request) if line else None
        return request if isinstance(request, Begin) else None

    def _write(self, script_exit: ScriptExit, goes_on: bool = False) -> None:
        """Write the run folder, but not again after the trials, which are no part of the run."""
        if not self._is_held:
            super()._write(script_exit, goes_on)

    def _finish(self, ended: ScriptExit) -> None:
        if not self._is_held:
            super()._finish(ended)
        with contextlib.suppress(OSError):
            self._send(Ended(ended))


def may_release(consumers: list[ConsumerSteps]) -> bool:
    """Whether the iterators of all consumers can be destroyed.

    Those of a distribution strategy cannot. One from which another thread takes elements may be part of a pipeline (a generator
    that reads another dataset), which would fail without it.
    """
    own = threading.get_ident()
    return all(
        _RESOURCE in iterator.__dict__ and consumer.thread_id in (0, own)
        for consumer, iterator in _iterators(consumers)
    )


def release_iterators(consumers: list[ConsumerSteps]) -> None:
    """Destroy the C++ iterators of the consumers, with their threads, buffers and caches: they are not used again."""
    for _, iterator in _iterators(consumers):
        setattr(iterator, _RESOURCE, None)


def _iterators(consumers: list[ConsumerSteps]) -> list[tuple[ConsumerSteps, Any]]:
    known = [(consumer, consumer.iterator()) for consumer in consumers if consumer.iterator is not None]
    return [(consumer, iterator) for consumer, iterator in known if iterator is not None]
