"""The Keras callback: `model.fit(..., callbacks=[advisor.AdvisorCallback()])`.

In: the calls that Keras makes to a callback.  Out: a watch from the beginning to the end of `fit`; see `watch`.
"""

from __future__ import annotations

import atexit
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from advisor.capture.in_process import hooks
from advisor.workflows.watch import Watch

if TYPE_CHECKING:
    from advisor.live.sinks import Sink
    from advisor.live.watched_run import WatchedRun
    from advisor.model.outcome import Report


class AdvisorCallback:
    """Watches `fit` as `advisor analyze` watches a script, and prints a report at its end.

    Implements Keras' callback protocol without deriving from its class. It therefore works with `keras` and `tf_keras`, and
    importing it imports neither.

    Args:
        logdir: A folder in which a new run folder is made. Default: the user's state folder.
        warmup: Number of steps before the measurement starts. Default: until the step time is steady.
        steps: Number of steps to profile. Default: until the figures are stable.
        quiet: Print nothing.
        sinks: Where samples of the steps go, once per second; see `advisor.watch`.
        profile: Profile a window and report on it. Default: yes, unless `sinks` or `windows_every` are given without a logdir.
        windows_every: Time between short profiled windows during the whole `fit`; see `advisor.watch`. Default: none.

    Raises:
        AdvisorError: The logdir cannot be written, or an argument is out of range, or does not apply.

    Example:
        >>> import advisor
        >>> import keras
        >>> import tensorflow as tf
        >>> dataset = tf.data.Dataset.from_tensors((tf.ones([8, 2]), tf.ones([8, 1]))).repeat(200)
        >>> model = keras.Sequential([keras.layers.Dense(1)])
        >>> model.compile("sgd", "mse")
        >>> callback = advisor.AdvisorCallback("logs", warmup=10, steps=20, quiet=True)
        >>> history = model.fit(dataset, verbose=0, callbacks=[callback])
        >>> callback.report.analysis.main.steps.count
        20
    """

    async_safe = True
    """Keras 3: this callback does not depend on the order of batch ends, so Keras need not synchronise for it."""
    params: Any = None
    model: Any = None
    _open: ClassVar[AdvisorCallback | None] = None
    """The callback whose `fit` is watched. Keras does not call back when `fit` fails, so that `fit` may be over."""

    def __init__(
        self,
        logdir: str | Path | None = None,
        *,
        warmup: int | None = None,
        steps: int | None = None,
        quiet: bool = False,
        sinks: Sequence[str | Sink] = (),
        profile: bool | None = None,
        windows_every: str | float | None = None,
    ) -> None:
        """Create the callback; the arguments are those of `advisor.watch`."""
        self._watch = Watch(
            logdir,
            warmup=warmup,
            steps=steps,
            quiet=quiet,
            sinks=sinks,
            profile=profile,
            windows_every=windows_every,
        )
        self._has_entered = False

    @property
    def report(self) -> Report | None:
        """The report on the last `fit`; None before its end, or if there was nothing to report."""
        return self._watch.report

    @property
    def folder(self) -> Path | None:
        """The run folder of the last `fit`."""
        return self._watch.folder

    @property
    def live(self) -> WatchedRun | None:
        """Steps and slow periods of the last `fit` so far; None if the steps are not counted all the time."""
        return self._watch.live

    @property
    def problem(self) -> str:
        """Why there is no report, in one sentence."""
        return self._watch.problem

    def on_train_begin(self, logs: object = None) -> None:
        """Start watching."""
        if AdvisorCallback._open is not None:
            AdvisorCallback._open._close()
        self._watch.start()
        if not self._watch.is_running:
            return
        AdvisorCallback._open = self
        consumption = hooks().consumption
        if consumption.current_consumer() is None:  # `model.fit` was looked up before the hooks were installed
            consumption.enter("keras.fit", sys._getframe(1))
            self._has_entered = True
        atexit.register(self._close_at_exit)

    def on_train_end(self, logs: object = None) -> None:
        """Stop watching and print the report."""
        self._close()

    def _close_at_exit(self) -> None:
        self._close(getattr(sys, "last_value", None))

    def _close(self, error: BaseException | None = None) -> None:
        if AdvisorCallback._open is not self:
            return
        AdvisorCallback._open = None
        atexit.unregister(self._close_at_exit)
        if self._has_entered:
            self._has_entered = False
            hooks().consumption.leave()
        self._watch.finish(error)

    def set_model(self, model: object) -> None:
        """Store the model, as Keras' protocol requires."""
        self.model = model

    def set_params(self, params: object) -> None:
        """Store the parameters, as Keras' protocol requires."""
        self.params = params

    def _nothing(self, *args: object, **kwargs: object) -> None:
        """Do nothing: steps are recorded by hooks on Keras' callback list."""

    on_epoch_begin = on_epoch_end = _nothing
    on_batch_begin = on_batch_end = on_train_batch_begin = on_train_batch_end = _nothing
    on_test_begin = on_test_end = on_test_batch_begin = on_test_batch_end = _nothing
    on_predict_begin = on_predict_end = on_predict_batch_begin = on_predict_batch_end = _nothing

    def _has_batch_hooks(self) -> bool:
        return False

    _implements_train_batch_hooks = _has_batch_hooks  # called by tf_keras
    _implements_test_batch_hooks = _implements_predict_batch_hooks = _has_batch_hooks
