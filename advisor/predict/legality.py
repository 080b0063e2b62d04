"""What a change may do to the data: a property of everything upstream, not of one call.

In: an `Analysis` and one of its calls.  Out: the `Obstacle`s that forbid a cache behind it, and the `Safety` of running its
function several times at once.

What cannot be seen counts as an obstacle: a Python function or generator may draw random numbers without TensorFlow knowing.
"""

from __future__ import annotations

from dataclasses import dataclass

from advisor.model import catalog
from advisor.model.finding import Safety
from advisor.model.pipeline import Analysis
from advisor.model.recording import Call, FunctionFacts
from advisor.predict.structure import nested_calls, upstream_calls

ORDER = "order"
CONTENT = "content"

_CONSTANT_RESOURCES = frozenset({"HashTable", "HashTableV2", "AnonymousHashTable"})
"""Tables that are filled once and never changed: a lookup gives the same answer every epoch."""

_HARMLESS_STATEFUL_OPS = frozenset(
    {
        "HashTable",
        "HashTableV2",
        "AnonymousHashTable",
        "LookupTableFind",
        "LookupTableFindV2",
        "LookupTableSize",
        "LookupTableSizeV2",
        "AnonymousMemoryCache",
        "AnonymousMemoryCacheV2",
        "Assert",
        "DummyMemoryCache",
        "ReadVariableOp",
        "VarHandleOp",
    }
)
"""Stateful by registration, but they give the same element every time; variables are judged by `captured`."""

_REPEATABLE_METHODS = frozenset(catalog.METHODS) - {
    "RandomDataset",
    "filter_with_legacy_function",
    "from_dataset_id",
    "from_generator",
    "index_table_from_dataset",
    "make_batched_features_dataset",
    "make_csv_dataset",
    "map_with_legacy_function",
    "random",
    "rejection_resample",
    "table_from_dataset",
}
"""Methods whose elements follow from their inputs, arguments and functions alone. What is not listed may do anything."""


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why elements behind a call are not the same in every epoch."""

    call: Call
    kind: str
    """`content`: other elements. `order`: the same elements in another order."""
    reason: str
    """For people, with the call as its subject: `draws random numbers`."""


def cache_obstacles(analysis: Analysis, call: Call) -> tuple[Obstacle, ...]:
    """Everything upstream of `call` (itself included) that makes epochs differ; empty: a cache behind it is exact."""
    found: dict[tuple[str, str], Obstacle] = {}
    for each in upstream_calls(analysis, call):
        for inner in (each, *nested_calls(analysis, each)):
            obstacle = _obstacle(inner, each)
            if obstacle is not None:
                found.setdefault((each.id, obstacle.kind), obstacle)
    return tuple(found.values())


def parallel_safety(call: Call) -> Safety:
    """What running the function of `call` several times at once does to the elements, their order being kept."""
    function = call.function
    if function is None or _changes(function) is None:
        return Safety.EXACT
    return Safety.RERANDOMIZED


def _obstacle(call: Call, outer: Call) -> Obstacle | None:
    """`outer` is the call in the chain inside which `call` was made, or `call` itself."""
    if call.method == "from_generator":
        return Obstacle(outer, CONTENT, "runs a Python generator, which may yield other elements in every epoch")
    if call.function is not None and (reason := _changes(call.function)) is not None:
        return Obstacle(outer, CONTENT, reason)
    arguments = call.arguments
    if call.method in ("shuffle", "list_files"):
        if call.method == "list_files" and arguments.get("shuffle") is False:
            return None
        if call.method == "shuffle" and arguments.get("reshuffle_each_iteration") is False:
            return None  # one order, drawn when the dataset was made, for all epochs
        return Obstacle(outer, ORDER, "shuffles anew in every epoch")
    if call.method == "sample_from_datasets":
        return Obstacle(outer, CONTENT, "mixes its inputs at random")
    if call.method in ("random", "RandomDataset", "rejection_resample"):
        return Obstacle(outer, CONTENT, "draws random numbers")
    if "Generator" in call.method:
        return Obstacle(outer, CONTENT, "runs Python code")
    if arguments.get("deterministic") is False or call.options.get("deterministic") is False:
        return Obstacle(outer, ORDER, "gives no fixed order (deterministic=False)")
    if call.method not in _REPEATABLE_METHODS and call.made_by is None and call.library is None:
        return Obstacle(outer, CONTENT, "is not known to give the same elements in every epoch")
    return None


def _changes(function: FunctionFacts) -> str | None:
    """Why two runs of the function on one element may differ, or None."""
    if not function.is_traced:
        return "is not known to give the same every time: its script was not run"
    if function.random_ops:
        return "draws random numbers"
    if function.python_ops:
        return "runs Python code, which may draw random numbers without TensorFlow knowing"
    if any(resource not in _CONSTANT_RESOURCES for resource in function.captured):
        return "reads state that can change between epochs"
    if function.is_stateful and not (function.captured or _HARMLESS_STATEFUL_OPS.intersection(function.ops)):
        return "keeps state"
    return None
