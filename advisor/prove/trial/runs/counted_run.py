"""A run of the script that counts its consumptions of datasets and keeps what is needed to make them again.

In: a `SessionRequest`.  Out: a call of `_on_consumption` for each consumption. The number of a consumption means the same in a
script and in its changed text, whose line numbers differ.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any

from advisor.capture.instrument.consumer_hooks import Consumption
from advisor.capture.instrument.dataset_ids import call_id_of, is_dataset
from advisor.capture.instrument.replay_log import ReplayLog
from advisor.capture.request import SessionRequest
from advisor.capture.session import Session
from advisor.capture.stop_script import StopScript
from advisor.model.calls import Call
from advisor.replay.seeding import global_seed_unset


class CountedRun(Session):
    """A recorded run whose consumptions are counted."""

    def __init__(self, message: SessionRequest) -> None:
        super().__init__(message)
        self._log = self._recorder.replay_log = ReplayLog(foreign_seed=message.capture.start_seed)
        self._consumption = Consumption(
            self._recorder.finder, self._consumers, self._monitor, self._warn, self._consumed
        )
        self._keras = self._keras_loops()
        self._consumptions = 0
        """Number of consumptions so far."""
        self._is_counting, self._is_over = True, False
        self._function_call: Callable[..., Any] | None = None

    def _on_tensorflow(self, tensorflow: ModuleType) -> None:
        super()._on_tensorflow(tensorflow)
        if (seed := self._request.start_seed) is not None:
            # functions traced under that seed would look as if the script had seeded them
            self._recorder.calling = functools.partial(global_seed_unset, seed)
        with contextlib.suppress(ImportError, AttributeError):
            from tensorflow.python.eager.polymorphic_function.polymorphic_function import Function

            self._function_call = Function.__call__
            Function.__call__ = self._function_hook(Function.__call__)

    def _function_hook(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Count a dataset before it is passed to a tf.function, in which it is another object."""

        @functools.wraps(original)
        def __call__(function: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
            if self._is_counting:
                for value in (*args, *kwargs.values()):
                    if hasattr(value, "_variant_tensor"):
                        self._consumed(value)
            return original(function, *args, **kwargs)

        return __call__

    def _consumed(self, dataset: Any) -> Any:  # noqa: ANN401
        """Count the consumption of a dataset, which is returned."""
        if self._is_over:
            raise StopScript  # again, because the script caught the first one
        if not self._is_counting or not is_dataset(dataset):
            return dataset
        call = self._recorder.call(call_id_of(dataset))
        if call is not None:
            self._consumptions += 1
            self._on_consumption(call)
        return dataset

    def _on_consumption(self, call: Call) -> None:
        """A dataset made by this call is about to be consumed, for the first element or anew."""

    def _stop_counting(self) -> None:
        """Count no more, and remove what counting costs in each call of a tf.function."""
        self._is_counting = False
        if self._function_call is not None:
            from tensorflow.python.eager.polymorphic_function.polymorphic_function import Function

            Function.__call__ = self._function_call
