"""Whether the function of a `map` can be called once per batch instead of once per element, and what that takes.

In: an `Analysis`, a `map` and the `batch` behind it.  Out: the fix, or None; predicted memory. Functions are judged
by an allow-list (`advisor/model/vectorizable_ops.py`): what draws numbers, runs Python code or reads state is refused, and so is
whatever is not known.
"""

from __future__ import annotations

from advisor.model.finding import Fix, MoveAfter, Safety, Vectorize
from advisor.model.pipeline import Analysis, Iterator, Pipeline
from advisor.model.recording import Call, FunctionFacts
from advisor.model.vectorizable_ops import BRANCHING_OPS, CHECKING_OPS, LOOP_INVARIANT_OPS, VECTORIZABLE_OPS
from advisor.predict.cache_size import element_bytes
from advisor.predict.structure import linear_chain, upstream_calls

_UNBATCHED_SPECS = (
    "RaggedTensorSpec",
    "SparseTensorSpec",
    "DatasetSpec",
    "VariantSpec",
    "OptionalSpec",
    "NoneTensorSpec",
)
"""Elements that `batch` or `tf.vectorized_map` handles otherwise than tensors."""
_HELD_OUTPUTS = 2
"""Results of a batch that exist at once: an op's input and output."""


def vectorizing_fix(analysis: Analysis, call: Call, batched: Call) -> Fix | None:
    """Return the fix that calls the function of a `map` once per batch, or None if that is not known to be the same.

    It is tried by default unless the function branches: a branch then gets those rows of a batch that take it, and what it does
    with none at all shows only in such a batch.

    Args:
        analysis: The analysis.
        call: The `map`.
        batched: The `batch` behind it, with nothing between them that looks at single elements.
    """
    is_plain = (
        call.method == "map" and batched.method == "batch" and call.nested_in is None and batched.nested_in is None
    )
    if not is_plain or call.function is None or not is_vectorizable(call.function):
        return None
    if call.arguments.get("deterministic") is False or not _has_equal_elements(analysis, call):
        return None
    if _skips_errors(analysis, call) or _fuses_shuffle(analysis, call, batched):
        return None
    has_branches = bool(BRANCHING_OPS.intersection(call.function.ops))
    return Fix((MoveAfter(call.id, batched.id), Vectorize(call.id)), Safety.EXACT, is_auto=not has_branches)


def is_vectorizable(function: FunctionFacts) -> bool:
    """Whether every op of a function has a form for batches, and its results depend on its element alone."""
    if function.random_ops or function.python_ops or function.resources or function.captured or not function.is_traced:
        return False
    if function.stateful_ops is None or not CHECKING_OPS.issuperset(function.stateful_ops):
        return False
    return bool(function.ops) and (VECTORIZABLE_OPS | LOOP_INVARIANT_OPS).issuperset(function.ops)


def vectorized_bytes(
    analysis: Analysis, pipeline: Pipeline, iterator: Iterator, call: Call, batched: Call, size: int
) -> int | None:
    """Return the additional memory in bytes of a map that is called once per batch; None if element sizes are unknown.

    Each parallel call holds a batch of inputs and `_HELD_OUTPUTS` of results. A shuffle in between holds the inputs of the map
    instead of its results.
    """
    chain = linear_chain(analysis, call)
    before = element_bytes(pipeline, chain[1]) if len(chain) > 1 else None
    after = element_bytes(pipeline, call)
    if before is None or after is None:
        return None
    held = max(1, iterator.parallelism or 1) * size * (before + _HELD_OUTPUTS * after)
    for between in linear_chain(analysis, batched)[1:]:
        if between.id == call.id:
            break
        buffer = between.arguments.get("buffer_size")
        if between.method == "shuffle" and isinstance(buffer, int) and buffer > 0:
            held += min(buffer, call.cardinality if call.cardinality and call.cardinality > 0 else buffer) * max(
                0, before - after
            )
    return held


def _has_equal_elements(analysis: Analysis, call: Call) -> bool:
    """Whether all elements that the map takes are known to have the same shape, so that they can be batched before it."""
    chain = linear_chain(analysis, call)
    spec = chain[1].element_spec if len(chain) > 1 else ""
    if not spec or spec.endswith("…") or any(kind in spec for kind in _UNBATCHED_SPECS):
        return False
    shapes = spec.replace("name=None", "")
    return "None" not in shapes and "<unknown>" not in shapes


def _skips_errors(analysis: Analysis, call: Call) -> bool:
    """Whether a call behind the map drops elements with errors: of a batch it would drop all."""
    return any(
        other.method == "ignore_errors" and any(each.id == call.id for each in upstream_calls(analysis, other))
        for other in analysis.calls
    )


def _fuses_shuffle(analysis: Analysis, call: Call, batched: Call) -> bool:
    """Whether the map stands between a shuffle and its repeat. TensorFlow fuses them without it, and shuffles otherwise."""
    chain = linear_chain(analysis, batched)
    place = [other.id for other in chain].index(call.id) if call in chain else 0
    around = [other.method for other in chain[place - 1 : place + 2]] if place else []
    return around[:1] == ["repeat"] and around[2:] == ["shuffle"]
