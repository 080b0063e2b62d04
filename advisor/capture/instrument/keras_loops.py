"""Hooks the training, evaluation and prediction loops of Keras. A step is one call of the train, test or predict function.

In: the imported `keras` or `tf_keras` module.  Out: step boundaries for the `Monitor`; facts about the model.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import math
import sys
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

from advisor.capture.instrument.consumer_hooks import Consumption
from advisor.capture.instrument.consumers import ConsumerSteps
from advisor.capture.instrument.function_steps import StepFollower
from advisor.capture.instrument.keras_models import KerasModels
from advisor.capture.instrument.patches import Patches
from advisor.model.calls import Scalar

_LOOPS = {"fit": "train", "evaluate": "test", "predict": "predict"}


_OBSERVING = frozenset({
    "AdvisorCallback", "BackupAndRestore", "CSVLogger", "History", "LearningRateScheduler", "ModelCheckpoint", "ProgbarLogger",
    "ReduceLROnPlateau", "TensorBoard", "WandbMetricsLogger",
})  # fmt: skip
"""Callbacks that do not end `fit` early; all others may."""


class KerasLoops:
    """Hooks on `Model.fit`, `evaluate` and `predict` and on the `CallbackList`, which all of them call."""

    def __init__(self, consumption: Consumption, monitor: StepFollower, warn: Callable[[str], None]) -> None:
        self.facts: dict[str, Scalar] = {}
        self.models = KerasModels(consumption.finder)
        self.repeat: Callable[[Any, ConsumerSteps], None] = lambda model, consumer: None
        """Called with the model and the consumer, if it is to get the same batch again from this step on."""
        self._consumption, self._monitor, self._warn = consumption, monitor, warn

    def install(self, keras: ModuleType, patches: Patches | None = None) -> None:
        """Install the hooks. Methods that this version of Keras does not have are skipped.

        Args:
            keras: The imported `keras` or `tf_keras` module.
            patches: Records the replaced attributes, so that they can be restored.
        """
        patches = Patches() if patches is None else patches
        try:
            model, callbacks = keras.Model, keras.callbacks.CallbackList
        except AttributeError as error:
            self._warn(f"Steps of {keras.__name__} cannot be recorded ({error}).")
            return
        self.models.install(model, patches)
        for name in ("on_epoch_end", "on_train_end", "on_test_end", "on_predict_end"):
            if name in callbacks.__dict__:
                patches.set(callbacks, name, self._epoch_hook(getattr(callbacks, name)))
        for name, word in _LOOPS.items():
            owner = next((cls for cls in model.__mro__ if name in cls.__dict__), None)
            if owner is not None:
                patches.set(owner, name, self._loop_hook(getattr(owner, name), f"keras.{name}"))
            end_hook = self._train_end_hook if word == "train" else self._end_hook
            for method, hook in ((f"on_{word}_batch_begin", self._begin_hook), (f"on_{word}_batch_end", end_hook)):
                if method in callbacks.__dict__:
                    patches.set(callbacks, method, hook(getattr(callbacks, method)))

    def _loop_hook(self, original: Callable[..., Any], kind: str) -> Callable[..., Any]:
        steps_parameter = "steps_per_epoch" if kind == "keras.fit" else "steps"

        @functools.wraps(original)
        def loop(model: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
            self._end_epoch()  # `fit` calls `evaluate` for validation before it calls `on_epoch_end`
            self._consumption.enter(kind, sys._getframe(1))
            try:
                self._note_first_step()
                self._note_length(steps_parameter, original, model, args, kwargs)
                self._note(model, kind, args, kwargs)
                self._note_passes(kind, original, model, args, kwargs)
                if kind == "keras.fit":
                    self.models.note_fit()
                return original(model, *args, **kwargs)
            finally:
                self._end_epoch()
                self._consumption.leave()

        return loop

    def _epoch_hook(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def on_end(callbacks: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
            self._finish_epoch(callbacks)
            return original(callbacks, *args, **kwargs)

        return on_end

    # The hooks of a batch run once per step: they call as few functions as they can.

    def _begin_hook(self, original: Callable[..., Any]) -> Callable[..., Any]:
        current_consumer, monitor = self._consumption.current_consumer, self._monitor

        @functools.wraps(original)
        def on_batch_begin(callbacks: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
            consumer = current_consumer()
            if consumer is not None:
                monitor.boundary(consumer)
                if consumer.repeated is not None:
                    self.repeat(_model_of(callbacks), consumer)
            return original(callbacks, *args, **kwargs)

        return on_batch_begin

    def _end_hook(self, original: Callable[..., Any]) -> Callable[..., Any]:
        current_consumer, now = self._consumption.current_consumer, time.time_ns

        @functools.wraps(original)
        def on_batch_end(callbacks: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
            consumer = current_consumer()
            if consumer is not None:
                consumer.batch_end_ns = now()
            return original(callbacks, *args, **kwargs)

        return on_batch_end

    def _train_end_hook(self, original: Callable[..., Any]) -> Callable[..., Any]:
        current_consumer, models, now = self._consumption.current_consumer, self.models, time.time_ns

        @functools.wraps(original)
        def on_train_batch_end(callbacks: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
            consumer = current_consumer()
            if consumer is not None:
                consumer.batch_end_ns = now()
            if models.is_noting_batches:
                self._note_batch(callbacks, kwargs.get("logs", args[1] if len(args) > 1 else None))
            return original(callbacks, *args, **kwargs)

        return on_train_batch_end

    def _note_batch(self, callbacks: Any, logs: Any) -> None:  # noqa: ANN401
        per_call = self.facts.get("steps_per_execution")
        self.models.note_batch(_model_of(callbacks), logs, per_call if isinstance(per_call, int) else None)

    def _end_epoch(self) -> None:
        consumer = self._consumption.current_consumer()
        if consumer is not None:
            consumer.end_epoch()

    def _finish_epoch(self, callbacks: Any) -> None:  # noqa: ANN401
        """Handle Keras' `on_epoch_end`. A callback may have stopped the epoch early."""
        self.models.end_epoch()
        consumer = self._consumption.current_consumer()
        if consumer is not None:
            was_stopped = bool(getattr(getattr(callbacks, "model", None), "stop_training", False))
            consumer.end_epoch(is_whole=consumer.takes_all and not was_stopped)

    def _note_first_step(self) -> None:
        consumer = self._consumption.current_consumer()
        if consumer is not None:
            consumer.call_firsts.append(consumer.count)

    def _note_length(
        self,
        parameter: str,
        loop: Callable[..., Any],
        model: Any,  # noqa: ANN401
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> None:
        """Determine whether an epoch ends with the dataset or after a number of steps given by the script."""
        consumer = self._consumption.current_consumer()
        with contextlib.suppress(TypeError, ValueError):  # wrong arguments in the script: Keras raises the error
            bound = inspect.signature(loop).bind(model, *args, **kwargs).arguments
            if consumer is not None:
                consumer.takes_all = bound.get(parameter) is None

    def _note_passes(
        self,
        kind: str,
        fit: Callable[..., Any],
        model: Any,  # noqa: ANN401
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> None:
        """Record what determines how often `fit` passes over the data."""
        if kind != "keras.fit":
            return
        fits = self.facts.get("fits")
        self.facts["fits"] = (fits if isinstance(fits, int) else 0) + 1
        with contextlib.suppress(TypeError, ValueError):
            call = inspect.signature(fit).bind(model, *args, **kwargs)
            call.apply_defaults()
            arguments = call.arguments
            for name in ("initial_epoch", "steps_per_epoch"):
                value = arguments.get(name)
                self.facts[name] = value if type(value) is int else None
            epochs, initial = arguments.get("epochs"), arguments.get("initial_epoch")
            consumer = self._consumption.current_consumer()
            if consumer is not None:
                is_known = isinstance(epochs, int) and isinstance(initial, int)
                consumer.passes_per_call = int(epochs) - int(initial) if is_known else None  # type: ignore[arg-type]
            callbacks = arguments.get("callbacks") or ()
            some = list(callbacks) if isinstance(callbacks, (list, tuple)) else [callbacks]
            self.facts["may_stop"] = any(not _is_observing(callback) for callback in some)

    def _note(self, model: Any, kind: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:  # noqa: ANN401
        if kind != "keras.fit" and self.facts:
            return
        try:
            policy = getattr(model, "dtype_policy", None)
            self.facts |= {
                "loop": kind,
                "dtype_policy": str(getattr(policy, "name", policy)),
                "steps_per_execution": _integer(getattr(model, "steps_per_execution", 1)),
                "jit_compile": bool(getattr(model, "jit_compile", False)),
                "run_eagerly": bool(getattr(model, "run_eagerly", False)),
                "batch_size": kwargs.get("batch_size", args[2] if len(args) > 2 else None),
                "epochs": kwargs.get("epochs", args[3] if len(args) > 3 and kind == "keras.fit" else None),
                "optimizer": type(getattr(model, "optimizer", None)).__name__,
                "learning_rate": _learning_rate(model),
            }
        except Exception as error:  # the facts are optional
            self._warn(f"The Keras model could not be described ({type(error).__name__}: {error}).")


def _model_of(callbacks: Any) -> Any:  # noqa: ANN401
    """The model of a `CallbackList`; None if it has none."""
    return getattr(callbacks, "model", None) or getattr(callbacks, "_model", None)


def _learning_rate(model: Any) -> float | None:  # noqa: ANN401
    """The learning rate of the optimizer as training begins; None if it is unknown."""
    with contextlib.suppress(Exception):
        rate = float(model.optimizer.learning_rate)
        return rate if math.isfinite(rate) else None
    return None


def _integer(value: Any) -> int | None:  # noqa: ANN401
    """The value of a number or of a variable, which under a distribution strategy cannot be converted itself; None if unknown."""
    if value is None:
        return 1
    reads: tuple[Callable[[], Any], ...] = (lambda: value, lambda: value.read_value(), lambda: value.values[0])
    for read in reads:
        with contextlib.suppress(Exception):
            return int(read()) or 1
    return None


def _is_observing(callback: object) -> bool:
    """Whether the callback is known not to end `fit` before its last epoch."""
    return type(callback).__name__ in _OBSERVING
