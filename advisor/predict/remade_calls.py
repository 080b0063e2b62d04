"""Finds datasets that the script makes again each time before it reads them, for example a new one in every epoch.

In: an `Analysis` and a pipeline.  Out: whether calls are repeated, and what that costs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from advisor.model.calls import Call
from advisor.model.pipeline import Analysis, Pipeline
from advisor.model.shared_text import Span, span_of
from advisor.predict.call_index import graph_of
from advisor.predict.passes_over_data import root_steps_per_epoch
from advisor.predict.structure import consumed_call, upstream_calls

MAX_COMPARED = 20
"""Number of datasets whose arguments are compared with those of the consumed one, the latest ones."""


@dataclass(frozen=True, slots=True)
class Remade:
    """A dataset that is made again for every epoch."""

    count: int
    """Datasets that the script has made there, the consumed one included."""
    calls: tuple[Call, ...]
    """The calls that are made again, nearest to the consumer first."""
    made_ns: float
    """Median time in which these calls make another dataset, in ns; the first time is not counted."""
    made_range_ns: tuple[float, float]
    """Shortest and longest of these times, in ns."""
    epoch_ns: float | None
    """Time of the steps of an epoch, in ns; None if their number is unknown."""
    is_equal: bool
    """Whether others were made with equal arguments, as far as they were compared; then only those are counted."""
    is_all_equal: bool = False
    """Whether all of those that were compared, the first one among them, were made with equal arguments."""

    @property
    def caches(self) -> tuple[Call, ...]:
        """Caches in memory that start empty in every epoch."""
        return tuple(
            call for call in self.calls if call.method == "cache" and call.arguments.get("filename") in ("", None)
        )


def remade_calls(analysis: Analysis, pipeline: Pipeline) -> frozenset[str]:
    """Return the ids of the consumed dataset's calls that the script makes again each time before it reads the data.

    Other datasets of the same text count unless another consumer reads them, as a helper makes one for training and one for
    validation.
    """
    consumed = consumed_call(analysis, pipeline)
    if consumed is None or not _reads(analysis, pipeline):
        return frozenset()
    texts = _Texts(analysis, pipeline)
    chain = upstream_calls(analysis, consumed)
    return frozenset(call.id for call in chain if _is_remade(analysis, pipeline, len(texts.same(call))))


def calls_with_lost_caches(analysis: Analysis, pipeline: Pipeline) -> frozenset[str]:
    """Return the ids of the calls after which a cache in memory starts empty in every epoch, without ever being read."""
    consumed = consumed_call(analysis, pipeline)
    again = remade_calls(analysis, pipeline)
    if consumed is None or not again:
        return frozenset()
    chain, graph = upstream_calls(analysis, consumed), graph_of(analysis)
    repeats = [call for call in chain if call.method == "repeat" and call.arguments.get("count") != 1]
    kept = {other.id for repeat in repeats for other in graph.upstream(repeat)}
    return again - kept


def remade(analysis: Analysis, pipeline: Pipeline) -> Remade | None:
    """Return what making the consumed dataset again costs; None if it is made once, or if that was not measured."""
    consumed = consumed_call(analysis, pipeline)
    if consumed is None:
        return None
    texts = _Texts(analysis, pipeline)
    ends = texts.same(consumed)
    if not _is_remade(analysis, pipeline, len(ends)):
        return None
    own = texts.remade_part(upstream_calls(analysis, consumed))
    rest = [end for end in ends if end is not consumed]
    others = [texts.remade_part(upstream_calls(analysis, end)) for end in rest[-MAX_COMPARED:]]
    first = [texts.remade_part(upstream_calls(analysis, end)) for end in rest[:1]]
    equal = [chain for chain in others if texts.are_equal(own, chain)]
    times = [
        sum(call.made_ns or 0 for call in chain) for chain in (own, *(equal or others)) if chain[0].id != ends[0].id
    ]
    if not any(times):
        return None
    counted = pipeline.consumer.datasets if pipeline.consumer is not None else 0
    count = 1 + len(equal) if equal and len(equal) < len(others) else max(len(ends), counted)
    steps = root_steps_per_epoch(analysis, pipeline)
    epoch_ns = steps * pipeline.steps.mean_ns if steps and pipeline.steps is not None else None
    is_all_equal = len(equal) == len(others) and all(texts.are_equal(own, chain) for chain in first)
    return Remade(count, own, median(times), (min(times), max(times)), epoch_ns, bool(equal), is_all_equal)


def _reads(analysis: Analysis, pipeline: Pipeline) -> int:
    """How often the consumer began to read, if that is more than once; else 0."""
    if pipeline.consumer is None:
        return 0
    is_keras = pipeline.consumer.kind.startswith("keras")  # it also makes iterators that are no epochs
    reads = analysis.keras.get("fits") if is_keras else pipeline.consumer.iterators
    return reads if isinstance(reads, int) and reads > 1 else 0


def _is_remade(analysis: Analysis, pipeline: Pipeline, recorded: int) -> bool:
    """Whether each time it was read it was another dataset.

    Args:
        analysis: The analysis.
        pipeline: One of its pipelines.
        recorded: Number of datasets of the same text whose calls were recorded; of many, only some are analysed.
    """
    reads = _reads(analysis, pipeline)
    datasets = (pipeline.consumer.datasets if pipeline.consumer is not None else 0) or recorded
    return recorded > 1 and datasets >= reads > 0


class _Texts:
    """The recorded calls by their place in the source."""

    def __init__(self, analysis: Analysis, pipeline: Pipeline) -> None:
        graph = graph_of(analysis)
        consumers = analysis.recording.consumers if analysis.recording is not None else ()
        own = pipeline.consumer.id if pipeline.consumer is not None else ""
        ends = [
            call for consumer in consumers if consumer.id != own and (call := graph.by_id.get(consumer.call_id or ""))
        ]
        self._read = {call.id for call in graph.upstream_of_all(ends)}
        """What other consumers read."""
        self._calls = graph.by_id
        self._by_span: dict[Span, list[Call]] = {}
        for call in graph.by_id.values():
            if call.site is not None and call.made_by is None:
                self._by_span.setdefault(self.span(call), []).append(call)

    def span(self, call: Call) -> Span:
        """What identifies the text of a call."""
        return span_of(call.id, self._calls)

    def remade_part(self, chain: Sequence[Call]) -> tuple[Call, ...]:
        """Return the calls of a chain that are made more than once."""
        return tuple(call for call in chain if len(self.same(call)) > 1)

    def are_equal(self, one: Sequence[Call], other: Sequence[Call]) -> bool:
        """Whether two chains are of the same text, with equal arguments as far as they were compared."""
        return len(one) == len(other) and all(
            a.identity != "" and a.identity == b.identity and self.span(a) == self.span(b) and _is_alike(a, b)
            for a, b in zip(one, other, strict=True)
        )

    def same(self, call: Call) -> list[Call]:
        """Return the calls of the same text that no other consumer reads, `call` included, in the order of the recording."""
        calls = self._by_span.get(self.span(call), [call])
        return [other for other in calls if other is call or other.id not in self._read]


def _is_alike(one: Call, other: Call) -> bool:
    """Whether two datasets have as many elements of the same kind, from functions with the same ops.

    Arguments describe a Python object by its simple attributes; what a function makes of others shows in its graph.
    """
    ops = [call.function.ops if call.function is not None else None for call in (one, other)]
    is_same_kind = (one.element_spec, one.cardinality) == (other.element_spec, other.cardinality)
    return is_same_kind and ops[0] == ops[1]
