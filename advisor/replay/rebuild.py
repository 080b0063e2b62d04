"""A finished dataset object made again, call by call, under a recorder of our own: no import order is needed for that.

In: any `tf.data.Dataset`.  Out: an equal dataset whose calls are recorded and kept, so that it can be replayed with edits.

A dataset object knows its input, its function and its arguments (attributes of TensorFlow's own classes, the same from 2.16 to
2.21). Each is made again by the public call that makes its class. What has no plain public call, or hides an argument, becomes
the source of what stands behind it: it is used as it is, and nothing above it can be changed. `Rebuilt.opaque` names those.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from advisor.capture.instrument.call_sites import Place, SiteFinder
from advisor.capture.instrument.dataset_api import record_dataset_api
from advisor.capture.instrument.patches import PATCHING, Patches
from advisor.capture.instrument.recorder import ID_ATTRIBUTE, ID_PREFIX, Recorder, call_id_of
from advisor.capture.instrument.replay_log import KeptCalls
from advisor.model.recording import Call, Site
from advisor.replay.program_state import state_above

_SOURCES = {
    "_RangeDataset": "range",
    "_TensorSliceDataset": "from_tensor_slices",
    "_TensorDataset": "from_tensors",
    "_RandomDataset": "random",
    "TFRecordDatasetV2": "TFRecordDataset",
    "TextLineDatasetV2": "TextLineDataset",
    "FixedLengthRecordDatasetV2": "FixedLengthRecordDataset",
}
"""Classes of sources -> the call that makes them, so that rules know what they are."""
_DETERMINISM = {"default": None, "true": True, "false": False}
_DEFAULT_GRAPH_SEED = 87654321
"""What TensorFlow puts beside an op's own seed where no global seed is set (`random_seed.DEFAULT_GRAPH_SEED`)."""

Arguments = tuple[tuple[Any, ...], dict[str, Any]]


class _Hidden(Exception):
    """An argument of this object cannot be read off it."""


@dataclass(slots=True)
class Rebuilt:
    """The dataset made again, and what is known of how."""

    dataset: Any
    call_id: str | None
    """The call that makes it; None: nothing could be rebuilt."""
    recorder: Recorder
    opaque: list[str] = field(default_factory=list)
    """Classes of the objects that are used as they are, sources of data apart."""
    advanced: list[str] = field(default_factory=list)
    """States of datasets that change when those objects are read."""


def rebuild(
    dataset: Any,  # noqa: ANN401
    place: Site | None,
    known: Callable[[str], Call | None],
    warn: Callable[[str], None],
) -> Rebuilt:
    """Make `dataset` again. `known`: calls recorded earlier, by id, for their lines; `place`: the line of all others."""
    import tensorflow as tf

    finder = _Finder(place)
    recorder = Recorder(finder, warn)
    recorder.kept = KeptCalls()
    recorder.only_thread = threading.get_ident()
    result = Rebuilt(None, None, recorder)
    with _recorded_api(tf, recorder, warn):
        result.dataset = _Rebuilding(tf, finder, known, result).at(dataset)
    recorder.is_open = False
    result.call_id = call_id_of(result.dataset)
    return result


@contextmanager
def _recorded_api(tf: Any, recorder: Recorder, warn: Callable[[str], None]) -> Iterator[None]:  # noqa: ANN401
    """The public API recorded by `recorder` within the block, and afterwards as it was."""
    with PATCHING:
        patches = Patches()
        try:
            record_dataset_api(tf, recorder, warn, patches)
            yield
        finally:
            recorder.is_open = False
            patches.restore()


class _Finder(SiteFinder):
    """Says of the call that is being made again where it stood first; calls inside functions are found as ever."""

    def __init__(self, place: Site | None) -> None:
        super().__init__()
        self._fallback, self._count = place, 0
        self._next: Place | None = None

    def announce(self, known: Call | None, text: str) -> None:
        """The next call is this one."""
        site = known.site if known is not None else None
        if site is None and self._fallback is not None:
            # One line for all: the column tells them apart, for nothing is written there.
            self._count += 1
            line, column = self._fallback.line, self._fallback.column + self._count
            site = Site(self._fallback.file, line, column, line, column)
        self._next = Place(site, known.text if known is not None and known.text else text)

    def place(self, frame: FrameType | None, method: str = "") -> Place:
        found, self._next = self._next, None
        return found if found is not None else super().place(frame, method)


class _Rebuilding:
    def __init__(self, tf: Any, finder: _Finder, known: Callable[[str], Call | None], result: Rebuilt) -> None:  # noqa: ANN401
        self._tf, self._finder, self._known, self._result = tf, finder, known, result
        self._done: dict[int, Any] = {}

    def at(self, node: Any) -> Any:  # noqa: ANN401
        """The dataset made again; each object once."""
        if id(node) not in self._done:
            self._done[id(node)] = self._make(node)
        return self._done[id(node)]

    def _make(self, node: Any) -> Any:  # noqa: ANN401
        kind = type(node).__name__
        maker = _MAKERS.get(kind)
        try:
            if kind == "_ZipDataset":
                structure = self._tf.nest.map_structure(self.at, node._datasets)
                return self._announced(node, "zip", lambda: self._tf.data.Dataset.zip(structure))
            if kind == "_ConcatenateDataset":
                first, second = self.at(node._input_dataset), self.at(node._dataset_to_concatenate)
                return self._announced(node, "concatenate", lambda: first.concatenate(second))
            if maker is not None:
                method, arguments = maker
                args, kwargs = arguments(node)
                if isinstance(getattr(node, "_name", None), str) and not node._name.startswith(ID_PREFIX):
                    kwargs["name"] = node._name
                source = self.at(node._input_dataset)
                return self._announced(node, method, lambda: getattr(source, method)(*args, **kwargs))
        except (_Hidden, AttributeError):
            pass
        return self._used_as_it_is(node, kind)

    def _announced(self, node: Any, method: str, make: Callable[[], Any]) -> Any:  # noqa: ANN401
        call_id = getattr(node, ID_ATTRIBUTE, None)
        self._finder.announce(self._known(call_id) if isinstance(call_id, str) else None, f".{method}(...)")
        return make()

    def _used_as_it_is(self, node: Any, kind: str) -> Any:  # noqa: ANN401
        """A source: a new object over the old one, so that the user's own is left as it is."""
        method = _SOURCES.get(kind)
        if method is None and _is_from_generator(node):
            method = "from_generator"
        if method is None:
            self._result.opaque.append(kind.lstrip("_"))
        self._result.advanced += [state for state in state_above(node) if state not in self._result.advanced]
        recorder = self._result.recorder
        with recorder.paused():
            source = node.with_options(self._tf.data.Options())

        def use_as_it_is(name: str | None = None) -> Any:  # noqa: ANN401
            return source

        return self._announced(
            node, method or kind.lstrip("_"), recorder.wrap(use_as_it_is, method or kind.lstrip("_"))
        )


def _is_from_generator(node: Any) -> bool:  # noqa: ANN401
    function = getattr(getattr(node, "_map_func", None), "_func", None)
    return type(node).__name__ == "_FlatMapDataset" and "from_generator" in getattr(function, "__qualname__", "")


def _function(node: Any, name: str = "_map_func") -> Callable[..., Any]:  # noqa: ANN401
    """The user's own function. Those that TensorFlow made for itself stand for a call of which nothing else is known."""
    function = getattr(node, name)._func
    if str(getattr(function, "__module__", "")).startswith("tensorflow."):
        raise _Hidden
    return function  # type: ignore[no-any-return]


def _number(value: Any) -> int:  # noqa: ANN401
    return int(value)


def _map(node: Any) -> Arguments:  # noqa: ANN401
    kwargs: dict[str, Any] = {}
    if getattr(node, "_force_synchronous", False):
        kwargs["synchronous"] = True
    return (_function(node),), kwargs


def _parallel_map(node: Any) -> Arguments:  # noqa: ANN401
    if getattr(node, "_use_unbounded_threadpool", False):
        raise _Hidden
    return (_function(node), _number(node._num_parallel_calls), _DETERMINISM[node._deterministic]), {}


def _batch(node: Any) -> Arguments:  # noqa: ANN401
    return (_number(node._batch_size), bool(node._drop_remainder)), {}


def _parallel_batch(node: Any) -> Arguments:  # noqa: ANN401
    more = {
        "num_parallel_calls": _number(node._num_parallel_calls),
        "deterministic": _DETERMINISM[node._deterministic],
    }
    return (_number(node._batch_size), bool(node._drop_remainder)), more


def _shuffle(node: Any) -> Arguments:  # noqa: ANN401
    """The same pair of seeds comes out of the public argument only if the global seed is what it was then."""
    from tensorflow.python.eager import context

    first, second = _number(node._seed), _number(node._seed2)
    now = context.global_seed()
    seed: int | None = None
    if (first, second) != (0, 0):
        if first != (_DEFAULT_GRAPH_SEED if now is None else now):
            raise _Hidden
        seed = second
    return (_number(node._buffer_size),), {"seed": seed, "reshuffle_each_iteration": node._reshuffle_each_iteration}


def _cache(node: Any) -> Arguments:  # noqa: ANN401
    filename = bytes(node._filename.numpy()).decode()
    if filename:
        raise _Hidden  # two datasets must not write one file
    return (), {}


def _interleave(node: Any) -> Arguments:  # noqa: ANN401
    return (_function(node),), {
        "cycle_length": _number(node._cycle_length),
        "block_length": _number(node._block_length),
    }


def _count(node: Any) -> Arguments:  # noqa: ANN401
    return (_number(node._count),), {}


_MAKERS: dict[str, tuple[str, Callable[[Any], Arguments]]] = {
    "_BatchDataset": ("batch", _batch),
    "_FilterDataset": ("filter", lambda node: ((_function(node, "_predicate"),), {})),
    "_FlatMapDataset": ("flat_map", lambda node: ((_function(node),), {})),
    "_IgnoreErrorsDataset": ("ignore_errors", lambda node: ((), {})),
    "_InterleaveDataset": ("interleave", _interleave),
    "_MapDataset": ("map", _map),
    "_OptionsDataset": ("with_options", lambda node: ((node.options(),), {})),
    "_ParallelBatchDataset": ("batch", _parallel_batch),
    "_ParallelMapDataset": ("map", _parallel_map),
    "_PrefetchDataset": ("prefetch", lambda node: ((_number(node._buffer_size),), {})),
    "_RepeatDataset": ("repeat", _count),
    "_ShardDataset": ("shard", lambda node: ((_number(node._num_shards), _number(node._index)), {})),
    "_ShuffleDataset": ("shuffle", _shuffle),
    "_SkipDataset": ("skip", _count),
    "_TakeDataset": ("take", _count),
    "_TakeWhileDataset": ("take_while", lambda node: ((_function(node, "_predicate"),), {})),
    "_UniqueDataset": ("unique", lambda node: ((), {})),
    "CacheDataset": ("cache", _cache),
}
"""Class -> the public method and its arguments. A parallel interleave does not keep whether it is deterministic, and padded
batches, scans and windows keep their arguments changed, so those are used as they are."""
