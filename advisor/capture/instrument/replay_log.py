"""What it takes to make a recorded call again: kept only where a proof is wanted, for it holds on to the script's objects.

In: each call of the recorder, as it begins and as it ends.  Out: `KeptCalls`, from which `advisor.replay.replay` rebuilds a
dataset. An ordinary run keeps nothing.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from advisor.capture.instrument.code_identity import argument_identities

DATA_SOURCES = frozenset({"from_tensor_slices", "from_tensors", "from_sparse_tensor_slices", "from_list"})
"""Their arguments are the data: the dataset already holds a copy, so theirs are not kept and the dataset itself is used."""


@dataclass(frozen=True, slots=True)
class Seeds:
    """TensorFlow's eager random state: what an unseeded `shuffle` or a function traced at that moment is seeded from."""

    global_seed: Any
    """`tf.random.set_seed`; None: never called, every run draws other numbers."""
    generator_state: Any
    """State of the generator that hands out op seeds; None without a global seed, when it is not asked."""


NO_SEEDS = Seeds(None, None)


@dataclass(frozen=True, slots=True)
class KeptCall:
    """One call that made a dataset, as it was made."""

    id: str
    method: str
    original: Callable[..., Any]
    """The function beneath the recorder's wrapper."""
    args: tuple[Any, ...]
    """With `self` first for methods and constructors; empty for DATA_SOURCES."""
    kwargs: dict[str, Any]
    is_constructor: bool
    dataset: Any
    """What it made."""
    parent: str | None
    """The call inside which it was made: by that call itself, or by its function while it was traced."""
    seeds: Seeds


@dataclass(slots=True)
class KeptCalls:
    """All calls of a run, by id."""

    calls: dict[str, KeptCall] = field(default_factory=dict)
    identities: dict[str, tuple[dict[str, str], tuple[str, ...]]] = field(default_factory=dict)
    """Call id -> `argument_identities`, as they were when the call was made; absent: its arguments cannot be described."""
    inner: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    """Call id -> (id, method) of every call begun inside it, in order, those included that made nothing new."""
    _last: Seeds = NO_SEEDS

    def begin(self, call_id: str, method: str, parent: str | None) -> Seeds:
        """A call begins; returns the seeds it begins with."""
        if parent is not None:
            self.inner.setdefault(parent, []).append((call_id, method))
        seeds = current_seeds()
        last = self._last  # one object for all calls between two draws: a state is 625 numbers
        if seeds == last:
            return last
        self._last = seeds
        return seeds  # not `_last`: another thread may have set it since

    def end(self, call: KeptCall) -> None:
        """The call made a dataset of its own."""
        self.calls[call.id] = call
        if call.method not in DATA_SOURCES:
            with contextlib.suppress(Exception):  # the script goes on whatever its objects do when they are looked at
                self.identities[call.id] = argument_identities(call.original, call.args, call.kwargs)


def current_seeds() -> Seeds:
    """TensorFlow's, now (private attributes; without them every call counts as unseeded)."""
    try:
        context = sys.modules["tensorflow.python.eager.context"].context()
        if context._seed is None:
            return NO_SEEDS
        return Seeds(context._seed, context._rng.getstate())
    except (KeyError, AttributeError):
        return NO_SEEDS
