"""Rebuilds an existing dataset object call by call under a recorder, even if the hooks were not installed when it was made.

In: any `tf.data.Dataset`.  Out: an equal dataset whose calls are recorded and kept, so that it can be replayed with edits.

A dataset object has its input, its function and its arguments as attributes (of TensorFlow's own classes, unchanged from 2.16 to
2.21). It is rebuilt with the public method that makes its class. A dataset without such a method, or with an argument that cannot
be read, is used as it is: it becomes the source of the rebuilt dataset, and its upstream datasets cannot be edited.
`Rebuilt.opaque` lists these datasets.
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
from advisor.capture.instrument.dataset_ids import ID_ATTRIBUTE, ID_PREFIX, call_id_of
from advisor.capture.instrument.patches import PATCHING, Patches
from advisor.capture.instrument.recorder import Recorder
from advisor.capture.instrument.replay_log import ReplayLog
from advisor.model.calls import Call, Site
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
"""Classes of sources -> the call that makes them, by which rules recognize them."""
_DETERMINISM = {"default": None, "true": True, "false": False}
_DEFAULT_GRAPH_SEED = 87654321
"""First of an op's two seeds if no global seed is set. Source: `random_seed.DEFAULT_GRAPH_SEED`."""

Arguments = tuple[tuple[Any, ...], dict[str, Any]]


class _Hidden(Exception):
    """An argument of a dataset cannot be determined from its attributes."""


@dataclass(slots=True)
class Rebuilt:
    """A rebuilt dataset."""

    dataset: Any
    call_id: str | None
    """Id of the call that makes the dataset; None: nothing could be rebuilt."""
    recorder: Recorder
    """The recorder of the calls, closed."""
    opaque: list[str] = field(default_factory=list)
    """Classes of the datasets that are used as they are, except sources."""
    advanced: list[str] = field(default_factory=list)
    """Descriptions of the state that changes when these datasets are read."""


def rebuild(
    dataset: Any,  # noqa: ANN401
    place: Site | None,
    known: Callable[[str], Call | None],
    warn: Callable[[str], None],
) -> Rebuilt:
    """Rebuild a dataset.

    Args:
        dataset: The dataset.
        place: Source location of the calls that were not recorded earlier.
        known: Returns the call with an id if it was recorded earlier; its source location is used.
        warn: Called with the text of each warning.
    """
    import tensorflow as tf

    finder = _Finder(place)
    recorder = Recorder(finder, warn)
    recorder.replay_log = ReplayLog()
    recorder.only_thread = threading.get_ident()
    result = Rebuilt(None, None, recorder)
    with _recorded_api(tf, recorder, warn):
        result.dataset = _Rebuilding(tf, finder, known, result).at(dataset)
    recorder.is_open = False
    result.call_id = call_id_of(result.dataset)
    return result


@contextmanager
def _recorded_api(tf: Any, recorder: Recorder, warn: Callable[[str], None]) -> Iterator[None]:  # noqa: ANN401
    """Record the calls of the public API within the block, and restore the original functions afterwards."""
    with PATCHING:
        patches = Patches()
        try:
            record_dataset_api(tf, recorder, warn, patches)
            yield
        finally:
            recorder.is_open = False
            patches.restore()


class _Finder(SiteFinder):
    """Returns the original source location of the call that is being rebuilt. Calls inside functions are located as usual."""

    def __init__(self, place: Site | None) -> None:
        super().__init__()
        self._fallback, self._count = place, 0
        self._next: Place | None = None

    def announce(self, known: Call | None, text: str) -> None:
        """Set the source location and text of the next call."""
        site = known.site if known is not None else None
        if site is None and self._fallback is not None:
            # All these calls have the same line, so the column makes them distinct. The file is never edited there.
            self._count += 1
            line, column = self._fallback.line, self._fallback.column + self._count
            site = Site(self._fallback.file, line, column, line, column)
        self._next = Place(site, known.text if known is not None and known.text else text)

    def place(self, frame: FrameType | None, method: str = "") -> Place:
        place, self._next = self._next, None
        return place if place is not None else super().place(frame, method)


class _Rebuilding:
    def __init__(self, tf: Any, finder: _Finder, known: Callable[[str], Call | None], result: Rebuilt) -> None:  # noqa: ANN401
        self._tf, self._finder, self._known, self._result = tf, finder, known, result
        self._done: dict[int, Any] = {}

    def at(self, node: Any) -> Any:  # noqa: ANN401
        """Return the rebuilt dataset; each object is rebuilt only once."""
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
        """Use a dataset as a source. It is wrapped in a new object, so that the user's object is not modified."""
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
    """Return the user's function. Functions defined in TensorFlow belong to calls whose arguments are unknown."""
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
    """Return the arguments of a shuffle. They give the same pair of seeds only if the global seed has not changed."""
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
        raise _Hidden  # two datasets must not write the same file
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
"""Class -> (public method, function that returns its arguments). Parallel interleaves do not keep the `deterministic` argument,
and padded batches, scans and windows keep modified arguments, so they are used as they are."""
