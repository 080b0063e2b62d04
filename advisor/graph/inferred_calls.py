"""Infers the calls behind the iterators of a profile that has neither a recording nor a script.

In: an `Analysis` without calls.  Out: the same analysis with a `Call` per iterator: its method and inputs, no line, and only
those arguments that the profile shows. Rules can then report and predict, but their edits have no place in a file.

Nothing is assumed about the user's functions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from advisor.model.calls import Call, FunctionFacts, Scalar
from advisor.model.catalog import CACHES, base_type
from advisor.model.pipeline import Analysis, Iterator, Pipeline

HINT = "Calls are inferred from the iterators and have no lines; --source SCRIPT looks for them in the script."
_METHODS: Mapping[str, tuple[str, ...]] = {
    "Map": ("map",),
    "ParallelMap": ("map",),
    "MapAndBatch": ("map", "batch"),
    "Batch": ("batch",),
    "ParallelBatch": ("batch",),
    "PaddedBatch": ("padded_batch",),
    "Shuffle": ("shuffle",),
    "ShuffleAndRepeat": ("shuffle", "repeat"),
    "Repeat": ("repeat",),
    "Prefetch": ("prefetch",),
    "Take": ("take",),
    "Skip": ("skip",),
    "Filter": ("filter",),
    "ParallelFilter": ("filter",),
    "Interleave": ("interleave",),
    "ParallelInterleave": ("interleave",),
    "LegacyParallelInterleave": ("interleave",),
    "FlatMap": ("flat_map",),
    "Zip": ("zip",),
    "Concatenate": ("concatenate",),
    "Window": ("window",),
    "Unbatch": ("unbatch",),
    "Scan": ("scan",),
    "TakeWhile": ("take_while",),
    "GroupByWindow": ("group_by_window",),
    "DirectedInterleave": ("sample_from_datasets",),
    "Range": ("range",),
    "TensorSlice": ("from_tensor_slices",),
    "FromTensor": ("from_tensors",),
    "Tensor": ("from_tensors",),
    "Generator": ("from_generator",),
    "TFRecord": ("TFRecordDataset",),
    "TextLine": ("TextLineDataset",),
    "FixedLengthRecord": ("FixedLengthRecordDataset",),
    "Random": ("random",),
}
"""Base type -> calls that it represents, source first; several for fused iterators."""
_WITH_FUNCTION = frozenset({"map", "filter", "interleave", "flat_map", "scan", "take_while", "group_by_window"})
_OPENERS = frozenset({"interleave", "flat_map"})
_KNOWN_ARGUMENTS = ("batch_size", "drop_remainder", "cycle_length", "block_length")


def infer_calls(analysis: Analysis, has_source: bool = False) -> Analysis:
    """Add inferred calls to every pipeline without calls.

    Args:
        analysis: The analysis; returned unchanged if the run was recorded.
        has_source: Whether the calls were already looked up in a script (`--source`).
    """
    if analysis.recording is not None:
        return analysis
    calls: dict[str, Call] = {}
    pipelines = tuple(
        pipeline if any(it.calls for it in pipeline.iterators) else _with_calls(pipeline, calls)
        for pipeline in analysis.pipelines
    )
    is_hint_due = calls and not has_source and analysis.verdict.is_input_bound
    return replace(
        analysis,
        pipelines=pipelines,
        calls=(*analysis.calls, *calls.values()),
        warnings=(*analysis.warnings, HINT) if is_hint_due else analysis.warnings,
    )


def _with_calls(pipeline: Pipeline, calls: dict[str, Call]) -> Pipeline:
    calls_of: dict[str, tuple[Call, ...]] = {}
    for it in reversed(pipeline.iterators):  # inputs before those that consume them
        parent = pipeline.parent(it)
        base = base_type(it.name)
        if it.injected_by_tensorflow or (
            base == "Generator" and parent is not None and base_type(parent.name) == "Prefetch"
        ):
            continue
        methods = _METHODS.get(base, ("cache",) if base in CACHES else ())
        if parent is not None and base in CACHES and base_type(parent.name) in CACHES:
            continue  # a cache runs as several iterators
        below = _inputs(it, pipeline, calls_of)
        made: list[Call] = []
        for method in methods:
            inputs = (made[-1].id,) if made else tuple(below)
            made.append(_call(f"inferred_{len(calls) + 1}", method, it, inputs))
            calls[made[-1].id] = made[-1]
        calls_of[it.id] = tuple(made)
    iterators = tuple(replace(it, calls=calls_of.get(it.id, ())) for it in pipeline.iterators)
    return replace(pipeline, iterators=iterators)


def _inputs(it: Iterator, pipeline: Pipeline, calls_of: Mapping[str, tuple[Call, ...]]) -> list[str]:
    """The nearest calls upstream of an iterator, skipping iterators that TensorFlow injected."""
    ids: list[str] = []
    for below in pipeline.inputs(it):
        known = calls_of.get(below.id, ())
        ids += [known[-1].id] if known else _inputs(below, pipeline, calls_of)
    return ids


def _call(number: str, method: str, it: Iterator, inputs: tuple[str, ...]) -> Call:
    arguments: dict[str, Scalar] = {name: it.parameters[name] for name in _KNOWN_ARGUMENTS if name in it.parameters}
    function = FunctionFacts("function", None, is_stateful=True, is_traced=False) if method in _WITH_FUNCTION else None
    return Call(
        number,
        method,
        None,
        # the datasets that an interleave opens are not its inputs, but names alone do not distinguish the two
        inputs=inputs[:1] if method in _OPENERS else inputs,
        arguments=arguments if method != "map" else {},
        function=function,
    )
