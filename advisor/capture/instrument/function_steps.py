"""Hooks the tf.functions and gradients of a training loop.

In: calls of tf.functions and of `GradientTape`.  Out: loops and steps inside tf.functions as steps of their consumers, the
function that computes a step, the losses of a loop outside Keras.

What a thread is doing lies in a `threading.local` shared with the hooks on iterators: `last`, the consumer whose step runs;
`function` and `arguments` of the outermost tf.function; `contexts`, the library calls it is in; `depth`, inside an iterator's own
functions.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType
from typing import Any, Protocol

from advisor.capture.instrument.call_sites import SiteFinder
from advisor.capture.instrument.consumers import ConsumerSteps, LongCall
from advisor.capture.instrument.dataset_ids import call_id_of
from advisor.capture.instrument.loop_losses import GRADIENT, RETURNED, LoopLosses
from advisor.model.calls import CodeLine

CONSUMER = "_tfadv_consumer"
"""Attribute of iterators and of tf.functions that take elements: their consumer."""
_DIFFERENTIATES = "_tfadv_differentiates"
"""Mark of a tf.function that takes a gradient."""
_MAX_FUNCTIONS = 32
"""Number of tf.functions in a loop that are looked at. A loop that makes a new one in each step has no step to change."""


class StepFollower(Protocol):
    """Receiver of step boundaries: the `Monitor`, or a forwarder that outlives it in `in_process`."""

    def call_began(self, call: LongCall) -> None:
        """Note that a thread has entered a call into TensorFlow that may take long."""

    def call_ended(self, thread_id: int) -> None:
        """Note that the thread has returned from TensorFlow."""

    def boundary(self, consumer: ConsumerSteps) -> int:
        """Note that a step of `consumer` has ended and another one begins; return the start of the new step in ns."""

    def data_ended(self, consumer: ConsumerSteps) -> None:
        """Note that an iterator of `consumer` has delivered its last element."""


class FunctionSteps:
    """The hooks on tf.functions and gradients."""

    def __init__(
        self,
        local: threading.local,
        finder: SiteFinder,
        monitor: StepFollower,
        is_eager: Callable[[], bool],
        on_epoch: Callable[[str | None], None],
    ) -> None:
        """Create the hooks without installing them.

        Args:
            local: What each thread is doing, shared with the hooks on iterators.
            finder: Tells the script's files from those of libraries.
            monitor: Receives the step boundaries.
            is_eager: Tells whether TensorFlow executes eagerly in this thread, as opposed to tracing.
            on_epoch: Called with the id of the call that made the dataset whenever a loop over it begins.
        """
        self.losses = LoopLosses()
        """Of the first loop outside Keras that trains."""
        self._local, self._finder, self._monitor = local, finder, monitor
        self._is_eager, self._on_epoch = is_eager, on_epoch

    def tape_hook(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Return `GradientTape.__enter__` with a note that the step computes a gradient."""
        local = self._local

        @functools.wraps(original)
        def __enter__(tape: Any) -> Any:  # noqa: ANN401
            consumer = local.__dict__.get("last")
            if consumer is not None and consumer.open_since_ns:
                consumer.saw_tape = True
                if consumer.eager_step is None and self._is_eager():
                    self._note_eager_step(consumer, sys._getframe(1).f_code)
            return original(tape)

        return __enter__

    def gradient_hook(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Return `GradientTape.gradient` with a note of the loss, or in a tf.function that this one takes a gradient."""
        local, is_eager = self._local, self._is_eager

        @functools.wraps(original)
        def gradient(tape: Any, target: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
            function = local.__dict__.get("function")
            if not is_eager():
                if function is not None:
                    function.__dict__[_DIFFERENTIATES] = True
            elif function is None and not local.__dict__.get("contexts"):
                self.losses.note(local.__dict__.get("last"), target, GRADIENT)
            return original(tape, target, *args, **kwargs)

        return gradient

    def _note_eager_step(self, consumer: ConsumerSteps, code: CodeType) -> None:
        """Note the function that opens a tape, unless it is the loop itself or belongs to a library."""
        if code.co_name.isidentifier() and self._finder.is_user_file(code.co_filename):
            consumer.eager_step = CodeLine(str(Path(code.co_filename).absolute()), code.co_firstlineno, code.co_name)

    def _note_graph_step(self, consumer: ConsumerSteps, function: Any) -> None:  # noqa: ANN401
        """Note the script's function of a tf.function that ran in a step of a loop, if it takes a gradient and no elements."""
        if not consumer.open_since_ns or len(consumer.graph_step_ids) >= _MAX_FUNCTIONS:
            return
        consumer.graph_step_ids.add(id(function))
        if not function.__dict__.get(_DIFFERENTIATES) or CONSUMER in function.__dict__:
            return
        with contextlib.suppress(Exception):  # `python_function` may be any callable
            code = inspect.unwrap(function.python_function).__code__
            if code.co_name.isidentifier() and self._finder.is_user_file(code.co_filename):
                step = CodeLine(str(Path(code.co_filename).absolute()), code.co_firstlineno, code.co_name)
                consumer.graph_steps += [step] if step not in consumer.graph_steps else []

    def function_hook(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Return `Function.__call__` with step boundaries, if the function takes elements, and a note of its loss."""
        local, losses = self._local, self.losses

        @functools.wraps(original)
        def __call__(function: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
            mine = local.__dict__
            if mine.get("function") is not None or mine.get("contexts"):
                return original(function, *args, **kwargs)
            consumer = function.__dict__.get(CONSUMER)
            if consumer is not None:
                self._monitor.boundary(consumer)
                mine["last"] = consumer
                if consumer.is_loop:
                    self._on_epoch(consumer.call_id)
            mine["function"], mine["arguments"] = function, (args, kwargs)
            try:
                if consumer is None:
                    result = original(function, *args, **kwargs)
                    last = mine.get("last")
                    if last is not None and id(function) not in last.graph_step_ids:
                        self._note_graph_step(last, function)
                else:
                    with self.inside(consumer):
                        result = original(function, *args, **kwargs)
                if not losses.is_over and function.__dict__.get(_DIFFERENTIATES):
                    losses.note(mine.get("last"), result, RETURNED)
                return result
            except Exception as error:
                if consumer is not None and type(error).__name__ == "OutOfRangeError":
                    consumer.forget()
                raise
            finally:
                mine["function"] = mine["arguments"] = None
                if consumer is None and CONSUMER in function.__dict__:  # `traced` has registered this call
                    self._monitor.call_ended(threading.get_ident())

        return __call__

    def argument_call_id(self, traced: Any) -> str | None:  # noqa: ANN401
        """Return the id of the call that made a dataset which was passed to a tf.function.

        Inside the function it is a different object, so it is matched to the arguments by its element spec.
        """
        while traced._inputs():  # AutoGraph adds a scan
            traced = traced._inputs()[0]
        arguments = self._local.__dict__.get("arguments")
        for value in _flat(arguments) if arguments else []:
            if hasattr(value, "_variant_tensor") and value.element_spec == traced.element_spec:
                return call_id_of(value)
        return None

    @contextlib.contextmanager
    def inside(self, consumer: ConsumerSteps) -> Iterator[None]:
        """Register a call into TensorFlow that may take long, for the watchdog."""
        self._monitor.call_began(LongCall(consumer, threading.get_ident(), time.time_ns()))
        try:
            yield
        finally:
            self._monitor.call_ended(threading.get_ident())

    def traced(self, consumer: ConsumerSteps | None) -> None:
        """Mark the function that is being traced as one that takes elements: each call of it is a step."""
        function = self._local.__dict__.get("function")
        if function is None or self._local.__dict__.get("contexts") or function.__dict__.get(CONSUMER) is not None:
            return
        if consumer is None:
            consumer = next((t for t in map(_consumer_of, _flat(self._local.arguments)) if t is not None), None)
        if consumer is None:
            return
        consumer.kind, consumer.is_traced = "tf.function", True
        function.__dict__[CONSUMER] = consumer
        consumer.begin(time.time_ns())
        self._local.last = consumer
        self._monitor.call_began(LongCall(consumer, threading.get_ident(), time.time_ns()))


def _consumer_of(value: Any) -> ConsumerSteps | None:  # noqa: ANN401
    consumer = getattr(value, "__dict__", {}).get(CONSUMER)
    return consumer if isinstance(consumer, ConsumerSteps) else None


def _flat(arguments: tuple[tuple[Any, ...], dict[str, Any]]) -> list[Any]:
    values: list[Any] = []
    for value in (*arguments[0], *arguments[1].values()):
        values += value if isinstance(value, (list, tuple)) else [value]
    return values
