"""Matches the iterators of a profile with the calls of a script, in every way in which the two structures fit.

In: a `Pipeline` and the last call of a dataset.  Out: `Way`s: iterator id -> the calls it represents, source first.

An iterator represents no call (injected by TensorFlow), one call, or several fused calls. A call runs as no iterator
(`with_options`), one iterator, or several (a cache, a reader of several files).
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import permutations

from advisor.graph.source_calls import OPAQUE, SourceCall
from advisor.model.catalog import CACHES, READERS, base_type
from advisor.model.pipeline import Iterator, Pipeline

Way = dict[str, tuple[SourceCall, ...]]

MAX_WAYS = 32
"""Maximum number of ways kept per iterator; with more than a few, the iterator is ambiguous anyway."""
MAX_TRIES = 50_000
"""Maximum number of (iterator, call) pairs that are tried for one pipeline."""
NO_CALL = frozenset(
    {"Root", "Model", "Options", "MaxIntraOpParallelism", "PrivateThreadPool", "Prefetch", "Rebatch", "Shard", "Generator",
     "AssertCardinality", "MapOnGpu"}
)  # fmt: skip
"""Types that TensorFlow injects, or that old versions create for an option."""
NO_ITERATOR = frozenset({"with_options", "assert_cardinality", "apply"})
MAYBE_NO_ITERATOR = frozenset({"prefetch", "repeat", "take", "skip", "shard"})
"""Calls that TensorFlow omits if they have no effect (`repeat(1)`, `shard(1, 0)`)."""
TYPES: Mapping[str, frozenset[str]] = {
    "map": frozenset({"Map", "ParallelMap"}),
    "batch": frozenset({"Batch", "ParallelBatch"}),
    "padded_batch": frozenset({"PaddedBatch"}),
    "ragged_batch": frozenset({"Map", "ParallelMap", "Batch"}),
    "shuffle": frozenset({"Shuffle"}),
    "repeat": frozenset({"Repeat"}),
    "prefetch": frozenset({"Prefetch"}),
    "take": frozenset({"Take"}),
    "skip": frozenset({"Skip"}),
    "filter": frozenset({"Filter", "ParallelFilter"}),
    "interleave": frozenset({"Interleave", "ParallelInterleave", "LegacyParallelInterleave"}),
    "flat_map": frozenset({"FlatMap"}),
    "zip": frozenset({"Zip"}),
    "concatenate": frozenset({"Concatenate"}),
    "unbatch": frozenset({"Unbatch", "FlatMap"}),
    "window": frozenset({"Window"}),
    "shard": frozenset({"Shard"}),
    "scan": frozenset({"Scan"}),
    "take_while": frozenset({"TakeWhile"}),
    "unique": frozenset({"Unique"}),
    "rebatch": frozenset({"Rebatch"}),
    "ignore_errors": frozenset({"IgnoreErrors"}),
    "group_by_window": frozenset({"GroupByWindow"}),
    "bucket_by_sequence_length": frozenset({"GroupByWindow"}),
    "sample_from_datasets": frozenset({"DirectedInterleave"}),
    "choose_from_datasets": frozenset({"DirectedInterleave"}),
    "snapshot": frozenset({"Snapshot"}),
    "range": frozenset({"Range"}),
    "random": frozenset({"Random"}),
    "from_tensors": frozenset({"FromTensor", "Tensor"}),
    "from_tensor_slices": frozenset({"TensorSlice"}),
    "from_list": frozenset({"List"}),
    "load": frozenset({"Load", "Snapshot"}),
}
_READER_LEAVES = {
    "TFRecordDataset": "TFRecord",
    "TextLineDataset": "TextLine",
    "FixedLengthRecordDataset": "FixedLengthRecord",
}
_FILE_LISTS = frozenset({"TensorSlice", "FromTensor", "Tensor"})
_OPENERS = frozenset({"FlatMap", "Interleave", "ParallelInterleave", "LegacyParallelInterleave"})
_STATS = {"batch_size": "batch_size", "cycle_length": "cycle_length", "block_length": "block_length"}
"""Argument -> the iterator's parameter with the same value."""


class Match:
    """Matches one pipeline with the calls of one script."""

    def __init__(self, pipeline: Pipeline, arguments: Callable[[SourceCall], Mapping[str, object]]) -> None:
        """Prepare matching a pipeline. `arguments` returns the arguments of a call that are constants in the source."""
        self._inputs: dict[str, list[Iterator]] = {it.id: [] for it in pipeline.iterators}
        for it in pipeline.iterators:
            if it.parent_id is not None:
                self._inputs[it.parent_id].append(it)
        self._arguments = arguments
        self._known: dict[tuple[str, int], list[Way]] = {}
        self._root = pipeline.root

    def ways(self, call: SourceCall) -> list[Way]:
        """Return every way in which the pipeline can be the dataset that `call` creates; empty if it cannot."""
        ways = self._match(self._root, call)
        # prefer the ways in which an optional call has its iterator
        return [way for way in ways if not any(_contains(other, way) for other in ways)]

    def _match(self, it: Iterator, call: SourceCall) -> list[Way]:
        key = (it.id, id(call))
        if key not in self._known:
            if len(self._known) >= MAX_TRIES:
                return []
            self._known[key] = []  # a cycle does not match
            self._known[key] = _distinct(self._tried(it, call))
        return self._known[key]

    def _tried(self, it: Iterator, call: SourceCall) -> Iterable[Way]:
        base, inputs = base_type(it.name), self._inputs[it.id]
        if call.method == OPAQUE:
            yield {}
            return
        if it.injected_by_tensorflow or base in NO_CALL:
            if len(inputs) == 1:
                yield from self._match(inputs[0], call)
            elif it.is_upstream_unseen:
                yield {}
            if it.injected_by_tensorflow:
                return
        if call.inputs and call.method in NO_ITERATOR | MAYBE_NO_ITERATOR:
            yield from self._match(it, call.inputs[0])
        if base in TYPES.get(call.method, ()) and self._fits(it, call):
            yield from _with(it, (call,), self._below(inputs, call))
        yield from self._fused(it, base, call)
        yield from self._special(it, base, call)

    def _fused(self, it: Iterator, base: str, call: SourceCall) -> Iterable[Way]:
        """Two calls in one iterator: `map` and `batch`, `shuffle` and `repeat`."""
        pair = {"MapAndBatch": ("map", "batch"), "ShuffleAndRepeat": ("shuffle", "repeat")}.get(base)
        if pair is not None and call.method == pair[1] and self._fits(it, call):
            first = call.inputs[0]
            while first.method in NO_ITERATOR and first.inputs:
                first = first.inputs[0]
            if first.method == pair[0]:
                yield from _with(it, (first, call), self._below(self._inputs[it.id], first))

    def _special(self, it: Iterator, base: str, call: SourceCall) -> Iterable[Way]:
        """Calls that run as several iterators."""
        inputs = self._inputs[it.id]
        if call.method == "cache" and base in CACHES:
            chain = [it]
            while len(below := self._inputs[chain[-1].id]) == 1 and base_type(below[0].name) in CACHES:
                chain.append(below[0])
            for way in self._below(self._inputs[chain[-1].id], call):
                yield {**way, **{cache.id: (call,) for cache in chain}}
        elif call.method == "enumerate" and base == "Zip":
            counters = [branch for branch in inputs if base_type(branch.name) == "Range"]
            for counter in counters:
                rest = [branch for branch in inputs if branch is not counter]
                for way in self._below(rest, call):
                    yield {**way, it.id: (call,), counter.id: (call,)}
        elif call.method in READERS:
            yield from self._reader(it, base, call)
        elif call.method == "from_generator":
            types = {base_type(source.name) for source in inputs}
            if (base == "Generator" and not inputs) or (base == "FlatMap" and types <= {"Generator", *_FILE_LISTS}):
                yield {part.id: (call,) for part in (it, *inputs)}
        elif call.method == "list_files":
            if base in _FILE_LISTS:
                yield {it.id: (call,)}
            elif base == "Shuffle" and all(base_type(source.name) in _FILE_LISTS for source in inputs):
                yield {part.id: (call,) for part in (it, *inputs)}

    def _reader(self, it: Iterator, base: str, call: SourceCall) -> Iterable[Way]:
        """`TFRecordDataset(files)`: the reader itself, or an iterator that opens the files in sequence or in parallel."""
        leaf = _READER_LEAVES[call.method]
        if base == leaf:
            yield {it.id: (call,)}
        elif base in _OPENERS:
            readers = [source for source in self._inputs[it.id] if base_type(source.name) == leaf]
            names = [source for source in self._inputs[it.id] if source not in readers]
            if not readers or len(names) > 1:
                return
            listed = all(base_type(source.name) in _FILE_LISTS for source in names)
            for way in self._match(names[0], call.inputs[0]) if call.inputs and names else [{}]:
                extended = {**way, **{part.id: (call,) for part in (it, *readers)}}
                if listed and not call.inputs:
                    extended.update({source.id: (call,) for source in names})
                if listed or call.inputs:
                    yield extended

    def _below(self, iterators: Sequence[Iterator], call: SourceCall) -> list[Way]:
        """Match the inputs of an iterator with the inputs of its call and with the datasets that its function creates."""
        if not iterators:  # a source, or the inputs did not run in the window
            return [{}]
        if call.nested or call.method in ("interleave", "flat_map"):
            return self._opened(iterators, call)
        if len(iterators) > len(call.inputs):
            return []
        if call.method == "zip" and len(iterators) == len(call.inputs):  # the profile says which branch is which
            return self._all(list(zip(iterators, call.inputs, strict=True)))
        ways: list[Way] = []
        for chosen in permutations(call.inputs, len(iterators)):
            ways += self._all(list(zip(iterators, chosen, strict=True)))
        return _distinct(ways)

    def _opened(self, iterators: Sequence[Iterator], call: SourceCall) -> list[Way]:
        """Match the inputs of an interleave: its input dataset and the datasets that it opens."""
        if len(iterators) > 2:
            return []
        ways: list[Way] = []
        for outer, inner in ((0, 1), (1, 0)):
            pairs = [(iterators[outer], call.inputs[0])] if outer < len(iterators) else []
            if inner >= len(iterators) or not call.nested:
                ways += self._all(pairs)
            for nested in call.nested if inner < len(iterators) else ():
                ways += self._all([*pairs, (iterators[inner], nested)])
        return _distinct(ways)

    def _all(self, pairs: Sequence[tuple[Iterator, SourceCall]]) -> list[Way]:
        """Every combination of the ways of each pair."""
        ways: list[Way] = [{}]
        for it, call in pairs:
            matches = self._match(it, call)
            ways = [{**before, **way} for before in ways for way in matches][:MAX_WAYS]
        return ways

    def _fits(self, it: Iterator, call: SourceCall) -> bool:
        """Whether the constant arguments of the call agree with the iterator's parameters."""
        given = self._arguments(call)
        for argument, parameter in _STATS.items():
            value, seen = given.get(argument), it.parameters.get(parameter)
            if isinstance(value, int) and value > 0 and isinstance(seen, int) and value != seen:
                return False
        if call.method == "shuffle" and isinstance(given.get("buffer_size"), int):
            seen = it.parameters.get("buffer_size")
            return not isinstance(seen, int) or seen == given["buffer_size"]
        # a map with num_parallel_calls never runs as a serial Map
        return not (call.method == "map" and base_type(it.name) == "Map" and "num_parallel_calls" in given)


def constant(node: ast.expr, names: Mapping[str, ast.expr]) -> object:
    """Return the value of a constant expression or of a name of one (`AUTOTUNE` is -1); None for anything else."""
    if isinstance(node, ast.Name) and node.id in names:
        node = names[node.id]
    if isinstance(node, ast.Attribute | ast.Name):
        name = node.attr if isinstance(node, ast.Attribute) else node.id
        return -1 if name == "AUTOTUNE" else None
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
    return value if isinstance(value, bool | int | float | str) else None


def _contains(larger: Way, smaller: Way) -> bool:
    return len(larger) > len(smaller) and all(larger.get(it) == calls for it, calls in smaller.items())


def _with(it: Iterator, calls: tuple[SourceCall, ...], ways: Iterable[Way]) -> Iterable[Way]:
    return ({**way, it.id: calls} for way in ways)


def _distinct(ways: Iterable[Way]) -> list[Way]:
    seen: dict[tuple[tuple[str, tuple[int, ...]], ...], Way] = {}
    for way in ways:
        key = tuple(sorted((it, tuple(id(call.node) for call in calls)) for it, calls in way.items()))
        seen.setdefault(key, way)
        if len(seen) >= MAX_WAYS:
            break
    return list(seen.values())
