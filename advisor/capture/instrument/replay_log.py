"""Keeps what is needed to replay recorded calls. It keeps objects of the script alive, so it is used only for proofs.

In: the start and the end of each recorded call.  Out: `ReplayLog`, from which `advisor.replay.replay` rebuilds a dataset.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from advisor.capture.instrument.code_identity import argument_identities

DATA_SOURCES = frozenset({"from_tensor_slices", "from_tensors", "from_sparse_tensor_slices", "from_list"})
"""Methods whose arguments are the data. The dataset has a copy, so the arguments are not kept and the dataset is reused."""


@dataclass(frozen=True, slots=True)
class Seeds:
    """TensorFlow's eager random state, from which unseeded `shuffle`s and random ops of traced functions get their seeds."""

    global_seed: Any
    """Seed set by `tf.random.set_seed`; None: not called, so random numbers differ in each run."""
    generator_state: Any
    """State of the generator of op seeds; None without a global seed, because the generator is not used then."""


NO_SEEDS = Seeds(None, None)


@dataclass(frozen=True, slots=True)
class LoggedCall:
    """A call that made a dataset, with its function and arguments."""

    id: str
    method: str
    original: Callable[..., Any]
    """The function without the recorder's wrapper."""
    args: tuple[Any, ...]
    """Positional arguments, with `self` first for methods and constructors; empty for DATA_SOURCES."""
    kwargs: dict[str, Any]
    is_constructor: bool
    dataset: Any
    """The dataset that the call made."""
    parent: str | None
    """Id of the enclosing call, whose implementation or user function (while it was traced) made this call."""
    seeds: Seeds
    """Random state at the start of the call."""


@dataclass(slots=True)
class ReplayLog:
    """All calls of a run, by id."""

    calls: dict[str, LoggedCall] = field(default_factory=dict)
    identities: dict[str, tuple[dict[str, str], tuple[str, ...]]] = field(default_factory=dict)
    """Call id -> `argument_identities` at the time of the call; missing if its arguments cannot be described."""
    inner: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    """Call id -> (id, method) of all calls made inside it, in order, including those that made no new dataset."""
    foreign_seed: int | None = None
    """A global seed that the advisor has set, and not the script: calls under it count as unseeded."""
    is_open: bool = True
    """False: later calls are not kept."""
    is_over: Callable[[], bool] = lambda: False
    """Whether a further call closes the log, so that it releases what it keeps."""
    _last: Seeds = NO_SEEDS

    def begin(self, call_id: str, method: str, parent: str | None) -> Seeds:
        """Record the start of a call and return the random state at that time.

        Args:
            call_id: The id that the recorder gave the call.
            method: Name of the tf.data method.
            parent: Id of the call inside which it is made; None if it is made by a line of the script.

        Returns:
            The state that a replay restores before the call; NO_SEEDS if the log is closed or the advisor set the seed.
        """
        if self.is_open and self.is_over():
            self.close()
        if not self.is_open:
            return NO_SEEDS
        if parent is not None:
            self.inner.setdefault(parent, []).append((call_id, method))
        seeds = current_seeds()
        if self.foreign_seed is not None and seeds.global_seed == self.foreign_seed:
            seeds = NO_SEEDS
        last = self._last  # calls with equal states share one object, because a state has 625 numbers
        if seeds == last:
            return last
        self._last = seeds
        return seeds  # not `_last`: another thread may have set it in the meantime

    def end(self, call: LoggedCall) -> None:
        """Record a call that made a new dataset."""
        if not self.is_open:
            return
        self.calls[call.id] = call
        if call.method not in DATA_SOURCES:
            with contextlib.suppress(Exception):  # objects of the script that cannot be inspected must not stop it
                self.identities[call.id] = argument_identities(call.original, call.args, call.kwargs)

    def has_changed_arguments(self) -> bool:
        """Whether a call made again now would be another one: its arguments, or a value that its function reads, have changed."""
        for call in self.calls.values():
            if call.method in DATA_SOURCES:
                continue
            try:
                now = argument_identities(call.original, call.args, call.kwargs)
            except Exception:  # objects of the script that cannot be inspected
                return True
            if now != self.identities.get(call.id):
                return True
        return False

    def close(self) -> None:
        """Release all objects of the script, and keep no others."""
        self.is_open = False
        for kept in (self.calls, self.identities, self.inner):
            kept.clear()


def current_seeds() -> Seeds:
    """Return TensorFlow's current random state, or NO_SEEDS if the private attributes that hold it do not exist."""
    try:
        context = sys.modules["tensorflow.python.eager.context"].context()
        if context._seed is None:
            return NO_SEEDS
        return Seeds(context._seed, context._rng.getstate())
    except (KeyError, AttributeError):
        return NO_SEEDS
