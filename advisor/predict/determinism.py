"""Determines the effect of a change on the data, which depends on everything upstream of a call.

In: an `Analysis` and one of its calls.  Out: the `Obstacle`s that forbid a cache after the call, the assumptions under which a
cache is exact, and the `Safety` of running the call's function in parallel.

Everything is judged by allow-lists: methods (`_REPEATABLE_METHODS`), stateful ops (`advisor/model/op_effects.py`) and kinds of
captured resources (`advisor/model/state.py`). Anything that is on no list counts as an obstacle.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from advisor.model import op_effects, state
from advisor.model.calls import Call, FunctionFacts
from advisor.model.catalog import PYTHON_OPS
from advisor.model.finding import Safety
from advisor.model.lineage import Lineage
from advisor.model.pipeline import Analysis
from advisor.model.shared_text import siblings_of, span_of
from advisor.predict.call_index import graph_of
from advisor.predict.observed import Observations
from advisor.predict.shared_datasets import dataset_name

MAX_SIBLINGS = 100
"""Other datasets of one text that are looked at for assumptions and moves; a helper called more often makes them of one kind."""
ORDER = "order"
CONTENT = "content"

_REPEATABLE_METHODS = frozenset({
    # Transformations that only select, group, repeat or store the elements of their inputs.
    "batch", "bucket_by_sequence_length", "cache", "concatenate", "enumerate", "group_by_window", "ignore_errors",
    "padded_batch", "prefetch", "ragged_batch", "rebatch", "repeat", "shard", "skip", "snapshot", "sparse_batch", "take",
    "unbatch", "unique", "window", "with_options", "zip", "choose_from_datasets", "pad_to_cardinality",
    # Transformations that apply a function, which is judged separately. `apply` makes other calls, or a class of its own.
    "apply", "filter", "flat_map", "interleave", "map", "scan", "take_while",
    # Sources that return the same numbers, tensors or files in the same order; files are observed while the script runs.
    "counter", "Counter", "from_sparse_tensor_slices", "from_tensor_slices", "from_tensors", "from_list", "range",
    "TextLineDataset", "TFRecordDataset", "FixedLengthRecordDataset", "CsvDataset", "load",
})  # fmt: skip
"""Methods whose elements depend only on their inputs, arguments, files and functions. `shuffle`, `list_files`, generators and
random sources are handled below; every other method may do anything."""

_FUNCTION_METHODS = frozenset({"filter", "flat_map", "interleave", "map", "scan", "take_while", "group_by_window"})
"""Methods whose elements depend on a function; without facts about it, they are unknown."""
_TRANSPARENT_CLASSES = frozenset({"_OptionsDataset", "DatasetV1Adapter", "_AssertCardinalityDataset", "_NestedVariant"})
"""Classes of datasets that pass on the elements of their input."""


@dataclass(frozen=True, slots=True)
class Obstacle:
    """A reason why the elements after a call differ between epochs."""

    call: Call
    kind: str
    """`content` for different elements, `order` for the same elements in a different order."""
    reason: str
    """A text with the call as its subject: `draws random numbers`."""


def cache_obstacles(analysis: Analysis, call: Call) -> tuple[Obstacle, ...]:
    """Return everything upstream of `call` (inclusive) that makes epochs differ or that a cache would suppress.

    The text of the call may make other datasets too (a loop, a helper that is called twice). A cache in that text changes them
    all, so what is upstream of its other calls counts, too, and names the dataset.

    Empty: a cache after the call is exact, as long as `cache_assumptions` hold.
    """
    graph, observed = graph_of(analysis), Observations(analysis.recording)
    by_id, lineage, own = graph.by_id, graph.lineage, graph.upstream(call)
    obstacles = {(span_of(o.call.id, by_id), o.kind): o for o in _obstacles(own, lineage, observed)}
    for obstacle in _obstacles(_upstream_of_siblings(analysis, call, own), lineage, observed):
        key = (span_of(obstacle.call.id, by_id), obstacle.kind)
        if key not in obstacles:
            name = dataset_name(analysis, obstacle.call)
            obstacles[key] = replace(obstacle, reason=f"{obstacle.reason}; the same text makes {name}")
    return tuple(obstacles.values())


def own_obstacles(analysis: Analysis, call: Call) -> tuple[Obstacle, ...]:
    """Those of `cache_obstacles` that concern the dataset of this call alone."""
    graph = graph_of(analysis)
    return tuple(_obstacles(graph.upstream(call), graph.lineage, Observations(analysis.recording)))


def cache_assumptions(analysis: Analysis, call: Call) -> tuple[str, ...]:
    """Return the conditions of a cache after `call` that no observation can establish, as clauses without a period.

    Those of other datasets that the same text makes are among them. A change with an assumption is made only where the user asks
    for it by name.
    """
    graph, observed = graph_of(analysis), Observations(analysis.recording)
    lineage = graph.lineage
    dependencies = lineage.upstream(call.id)
    clauses = {text: text for dependency in dependencies for text in observed.assumptions(dependency, dependencies)}
    own = {dependency.id for dependency in dependencies}
    siblings = siblings_of(call, graph.by_id)
    if len(siblings) > MAX_SIBLINGS:
        text = f"all {len(siblings) + 1} datasets that this text makes read the same kind of state"
        clauses[text] = text
    for sibling in siblings[:MAX_SIBLINGS]:
        others = lineage.upstream(sibling.id)
        for dependency in others:
            for text in () if dependency.id in own else observed.assumptions(dependency, others):
                if text not in clauses:
                    clauses[text] = f"{text}, on which {dataset_name(analysis, dependency)} depends"
        own |= {dependency.id for dependency in others}
    return tuple(clauses.values())


def reason_against_function(analysis: Analysis, call: Call, function: FunctionFacts) -> str | None:
    """Return why `call` must not be cached if it applied another function, with that function as the subject; None if it may.

    Args:
        analysis: The analysis.
        call: A recorded call.
        function: The facts about the other function, such as a part of the recorded one.
    """
    reason = _reason_against(function, frozenset())
    state_changed = Observations(analysis.recording).change_of(replace(call, function=function))
    return reason or state_changed


def assumptions_of_function(analysis: Analysis, call: Call, function: FunctionFacts) -> tuple[str, ...]:
    """Return the assumptions of a cache after `call` if it applied another function; see `cache_assumptions`.

    Args:
        analysis: The run.
        call: The call after which the cache would be.
        function: Facts about the other function, such as the first half of a split one.
    """
    graph = graph_of(analysis)
    return tuple(
        Observations(analysis.recording).assumptions(replace(call, function=function), graph.lineage.upstream(call.id))
    )


def _obstacles(calls: Iterable[Call], lineage: Lineage, observed: Observations) -> Iterator[Obstacle]:
    """The first of each kind for each of the calls."""
    for outer in calls:
        kinds = set()
        repeated: set[str | None] = set()
        """Generators that yielded the same elements again, with the calls that implement them."""
        for inner in (outer, *lineage.inside(outer)):
            if observed.passes_of(inner) is not None or (inner.made_by is not None and inner.made_by in repeated):
                repeated.add(inner.id)
                continue
            obstacle = _obstacle(inner, outer, lineage, observed)
            if obstacle is not None and obstacle.kind not in kinds:
                kinds.add(obstacle.kind)
                yield obstacle


def _upstream_of_siblings(analysis: Analysis, call: Call, own: Iterable[Call]) -> Iterator[Call]:
    """What feeds the other calls of the same text, without what feeds `call`."""
    graph, fed = graph_of(analysis), {upstream_call.id for upstream_call in own}
    return (
        upstream_call
        for upstream_call in graph.upstream_of_all(siblings_of(call, graph.by_id))
        if upstream_call.id not in fed
    )


def parallel_safety(call: Call) -> Safety:
    """Return the effect of running the function of `call` in parallel, with the order of elements preserved."""
    function = call.function
    if function is None:
        return Safety.EXACT
    effects = {op_effects.effect_of(op) for op in function.stateful_ops or ()}
    if effects & op_effects.STATE_CHANGES and not function.random_ops:
        return Safety.CHANGES  # the changes are visible to other elements, in an order that would no longer be fixed
    is_constant = not Observations(None).reads_mutable_state(function)
    return Safety.EXACT if _reason_against(function, frozenset()) is None and is_constant else Safety.RERANDOMIZED


def _obstacle(call: Call, outer: Call, lineage: Lineage, observed: Observations) -> Obstacle | None:
    """`outer` is the call in the chain inside which `call` was made, or `call` itself."""
    changed = observed.change_of(call)
    if call.method == "from_generator":
        but = f"; {changed}" if changed else ""
        return Obstacle(
            outer, CONTENT, f"runs a Python generator, which may yield different elements in every epoch{but}"
        )
    reason = None
    if call.function is not None:
        function = call.function if observed.repeats_of(call) is None else _without_python(call.function)
        reason = _reason_against(function, frozenset(other.method for other in lineage.inside(call)))
    elif call.method in _FUNCTION_METHODS:
        reason = "has a function that could not be inspected"
    if reason is not None or changed is not None:
        return Obstacle(outer, CONTENT, "; ".join(part for part in (reason, changed) if part))
    return _obstacle_of_method(call, outer)


def _obstacle_of_method(call: Call, outer: Call) -> Obstacle | None:
    arguments, is_nested = call.arguments, call.id != outer.id
    if call.method in ("shuffle", "list_files"):
        if call.method == "list_files" and arguments.get("shuffle") is False:
            return None
        is_one_order = call.method == "shuffle" and arguments.get("reshuffle_each_iteration") is False
        if is_one_order and (not is_nested or arguments.get("seed") is not None):
            return (
                None  # drawn at the creation of the dataset; a dataset created inside a function is new in every epoch
            )
        return Obstacle(outer, ORDER, "shuffles anew in every epoch")
    if call.method == "sample_from_datasets":
        return Obstacle(outer, CONTENT, "mixes its inputs at random")
    if call.method in ("random", "RandomDataset", "rejection_resample"):
        return Obstacle(outer, CONTENT, "draws random numbers")
    if "Generator" in call.method:
        return Obstacle(outer, CONTENT, "runs Python code")
    if arguments.get("deterministic") is False or call.options.get("deterministic") is False:
        return Obstacle(outer, ORDER, "has no fixed order (deterministic=False)")
    if call.method not in _REPEATABLE_METHODS:
        return Obstacle(outer, CONTENT, "is not known to produce the same elements in every epoch")
    unknown = [name for name in call.unrecorded if name not in _TRANSPARENT_CLASSES]
    is_scripts = call.made_by is None and call.nested_in is None  # other calls get datasets of their owner
    if unknown and is_scripts:
        return Obstacle(
            outer,
            CONTENT,
            f"takes its elements from a {unknown[0]}, which is not known to produce the same elements in every epoch",
        )
    return None


def _reason_against(function: FunctionFacts, methods: frozenset[str]) -> str | None:
    """Why two runs of the function on one element may differ, or which effect a cache would suppress; None if neither.

    `methods` are those of the recorded calls that the function makes. Mutable state that the function only reads is judged by the
    recorded observations (`Observations`).
    """
    if not function.is_traced:
        return "is not known to return the same value every time: its script was not run"
    if function.random_ops:
        return "draws random numbers"
    if function.python_ops:
        return "runs Python code, which may draw random numbers that TensorFlow does not control"
    if function.stateful_ops is None and (function.is_stateful or function.captured):
        return "keeps state that this recording, made by an earlier version, does not describe"
    for op in function.stateful_ops or ():
        reason = op_effects.reason_against(op) or op_effects.reason_against_dataset_op(op, methods)
        if reason is not None:
            return reason
        if op in op_effects.SEED_OPS and not methods & op_effects.DATASET_OPS_JUDGED_AS_CALLS["Shuffle"]:
            return op_effects.reason_against_seed(op)
    return unknown_resource(function)


def _without_python(function: FunctionFacts) -> FunctionFacts:
    """The function without its Python code, which returned the same for the same elements."""
    stateful = (
        None if function.stateful_ops is None else tuple(op for op in function.stateful_ops if op not in PYTHON_OPS)
    )
    return replace(function, python_ops=(), stateful_ops=stateful)


def unknown_resource(function: FunctionFacts) -> str | None:
    """Return why a captured resource forbids a cache regardless of observations; None if none does."""
    for resource in function.resources:
        if resource.kind == state.DATASET and not resource.id:
            return "captures a dataset that no recorded call made"
        if resource.kind not in (*state.CONSTANT_KINDS, *state.OBSERVABLE_KINDS, state.DATASET):
            name = f" `{resource.name}`" if resource.name else ""
            return f"reads a {resource.kind}{name}, which can change between epochs"
    return None
