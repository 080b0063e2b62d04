"""Assigns the calls in a script to the iterators of a profile without a recording, by structure, without running the script.

In: an `Analysis` without calls, and the script.  Out: the same analysis with calls on every iterator whose calls are the same
in all possible matches; a sentence for ambiguous iterators.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import networkx as nx

from advisor.graph.node_calls import already_done
from advisor.graph.source_calls import OPAQUE, SourceCall
from advisor.graph.source_match import MAX_WAYS, Match, Way, constant
from advisor.graph.source_script import Script, read_script
from advisor.model.calls import Call, FunctionFacts, Scalar

if TYPE_CHECKING:
    from advisor.model.pipeline import Analysis, Pipeline

MAX_TEXT = 200
_PARAMETERS: Mapping[str, tuple[str, ...]] = {
    "map": ("map_func", "num_parallel_calls", "deterministic"),
    "batch": ("batch_size", "drop_remainder", "num_parallel_calls", "deterministic"),
    "padded_batch": ("batch_size", "padded_shapes", "padding_values", "drop_remainder"),
    "interleave": ("map_func", "cycle_length", "block_length", "num_parallel_calls", "deterministic"),
    "flat_map": ("map_func",),
    "filter": ("predicate",),
    "shuffle": ("buffer_size", "seed", "reshuffle_each_iteration"),
    "prefetch": ("buffer_size",),
    "repeat": ("count",),
    "take": ("count",),
    "skip": ("count",),
    "shard": ("num_shards", "index"),
    "cache": ("filename",),
    "from_generator": ("generator", "output_types", "output_shapes", "args", "output_signature"),
    "list_files": ("file_pattern", "shuffle", "seed"),
    "TFRecordDataset": ("filenames", "compression_type", "buffer_size", "num_parallel_reads"),
    "TextLineDataset": ("filenames", "compression_type", "buffer_size", "num_parallel_reads"),
}
"""Parameters in positional order. Source: the signatures of TensorFlow 2.3 to 2.21, as far as they agree."""


def align_source(analysis: Analysis, path: Path) -> Analysis:
    """Assign the calls of a script to the iterators. A recorded run keeps its own calls.

    Args:
        analysis: An analysis without calls.
        path: The script.

    Raises:
        AdvisorError: The script cannot be read.
    """
    script = read_script(path)
    if analysis.recording is not None:
        return replace(
            analysis, warnings=(*analysis.warnings, "--source is ignored: the run was recorded with its calls.")
        )
    calls = _Calls(script)
    pipelines, sentences = [], []
    for pipeline in analysis.pipelines:
        aligned, sentence = _align(pipeline, script, calls)
        pipelines.append(aligned)
        sentences.append(sentence)
    return replace(
        analysis,
        pipelines=tuple(pipelines),
        calls=calls.used(),
        warnings=(*analysis.warnings, *dict.fromkeys(filter(None, sentences))),
    )


def _align(pipeline: Pipeline, script: Script, calls: _Calls) -> tuple[Pipeline, str]:
    ways = _ways(pipeline, script, calls)
    if not ways:
        return (
            pipeline,
            f"No dataset in {script.path.name} has the structure of {pipeline.root.long_name}: no calls are shown.",
        )
    agreed = {
        it.id: ways[0].get(it.id, ())
        for it in pipeline.iterators
        if len({tuple(id(call.node) for call in way.get(it.id, ())) for way in ways}) == 1
    }
    iterators = tuple(
        replace(it, calls=tuple(calls.call(source, ways[0], it.name) for source in agreed.get(it.id, ())))
        for it in pipeline.iterators
    )
    ambiguous = [it.name for it in pipeline.iterators if it.id not in agreed]
    if ambiguous and len(ways) > 1:
        sentence = f"Several calls in {script.path.name} match {', '.join(ambiguous)}: these are shown without a line."
    else:
        sentence = f"Lines in {script.path.name} were matched by the structure of the script alone; it was not run."
    return replace(pipeline, iterators=iterators, already_done=already_done(iterators)), sentence


def _ways(pipeline: Pipeline, script: Script, calls: _Calls) -> list[Way]:
    """All matches over all datasets of the script: datasets that no other call consumes are preferred."""
    match = Match(pipeline, calls.arguments)
    consumed = {id(source) for call in script.calls for source in (*call.inputs, *call.nested)}
    known = [call for call in script.calls if call.method != OPAQUE]
    for group in (
        [call for call in known if id(call) not in consumed],
        [call for call in known if id(call) in consumed],
    ):
        ways = [way for call in group for way in match.ways(call) if way]
        if ways:
            return ways[: MAX_WAYS * 4]
    return []


class _Calls:
    """Creates the model's `Call`s of a script on demand; one per call in the source."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._numbers: dict[int, int] = {}
        self._made: dict[int, Call] = {}
        self._constants = _constants(ast.parse(script.text))
        self._arguments: dict[int, dict[str, Scalar]] = {}
        self._outer: dict[int, SourceCall] = {}
        dataflow: nx.DiGraph[SourceCall] = nx.DiGraph()
        dataflow.add_nodes_from(nested for call in script.calls for nested in call.nested)
        dataflow.add_edges_from((upstream, call) for call in script.calls for upstream in call.inputs)
        for call in script.calls:
            self._numbers.setdefault(id(call.node), len(self._numbers) + 1)
            for inner in {*call.nested}.union(*(nx.ancestors(dataflow, nested) for nested in call.nested)):
                self._outer.setdefault(id(inner.node), call)

    def arguments(self, call: SourceCall) -> Mapping[str, Scalar]:
        """Return the arguments by parameter name; expressions that are not constants are returned as text."""
        if call.node is None:
            return {}
        if id(call) not in self._arguments:
            names = _PARAMETERS.get(call.method, ())
            given = [*zip(names, call.node.args, strict=False)]
            given += [(word.arg, word.value) for word in call.node.keywords if word.arg is not None]
            arguments: dict[str, Scalar] = {}
            for name, node in given:
                value = constant(node, self._constants)
                arguments[name] = value if isinstance(value, bool | int | float | str) else _described(node)
            self._arguments[id(call)] = arguments
        return self._arguments[id(call)]

    def call(self, source: SourceCall, way: Way, executed: str = "") -> Call:
        """Return the `Call` for a source call; its inputs are created first.

        Args:
            source: The call in the script.
            way: The match that the call belongs to.
            executed: The type of the iterator that executed it.
        """
        known = self._made.get(id(source.node))
        if known is not None or source.node is None:
            return known or Call("source_0", source.method, None)
        for upstream in (*source.inputs, *source.nested):
            self.call(upstream, way)
        outer = self._outer.get(id(source.node))
        arguments = dict(self.arguments(source))
        made = Call(
            id=self._id(source),
            method=source.method,
            site=self._script.site(source.node),
            inputs=tuple(self._id(upstream) for upstream in source.inputs),
            arguments=arguments,
            explicit=tuple(arguments),
            function=self._function(source, executed),
            nested_in=self._id(outer) if outer is not None else None,
            text=self._text(source),
        )
        self._made[id(source.node)] = made
        return made

    def used(self) -> tuple[Call, ...]:
        """Return all calls created so far, sources first."""
        return tuple(self._made.values())

    def _id(self, call: SourceCall) -> str:
        return f"source_{self._numbers.get(id(call.node), 0)}"

    def _function(self, call: SourceCall, executed: str) -> FunctionFacts | None:
        if call.function is None:
            return None
        # TensorFlow automatically parallelizes only functions that it considers stateless
        is_stateless = executed.startswith("ParallelMap") and "num_parallel_calls" not in self.arguments(call)
        return FunctionFacts(_described(call.function), None, is_stateful=not is_stateless, is_traced=False)

    @staticmethod
    def _text(call: SourceCall) -> str:
        if call.node is None:
            return ""
        arguments = [ast.unparse(argument) for argument in (*call.node.args, *call.node.keywords)]
        dot = "." if isinstance(call.node.func, ast.Attribute) else ""
        return f"{dot}{call.method}({', '.join(arguments)})"[:MAX_TEXT]


def _constants(tree: ast.Module) -> dict[str, ast.expr]:
    """Names that are assigned exactly once in the whole script, with the assigned expression."""
    assigned: dict[str, list[ast.expr]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            assigned.setdefault(node.id, [])
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            assigned[node.targets[0].id].append(node.value)
    stores = [node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    arguments = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    return {
        name: values[0]
        for name, values in assigned.items()
        if len(values) == 1 and stores.count(name) == 1 and name not in arguments
    }


def _described(node: ast.expr) -> str:
    """A short text for an expression that is not a constant."""
    if isinstance(node, ast.Lambda):
        return "<lambda>"
    text = ast.unparse(node)
    return text if len(text) <= 60 else f"{text[:57]}..."
