"""Whether the function of a `map` can be called once per batch instead of once per element, and what that takes.

In: an `Analysis`, a `map` and the `batch` after it.  Out: the fix, or None; predicted memory. Functions are judged
by an allow-list (`advisor/model/vectorizable_ops.py`): what runs Python code or reads state is refused, and so is whatever is not
known.
"""

from __future__ import annotations

import re

from advisor.model.calls import Call, FunctionFacts
from advisor.model.catalog import ELEMENTWISE_OPS
from advisor.model.edits import Code, Edit, InsertAfter, MoveAfter, Remove, Value, Vectorize
from advisor.model.finding import Fix, Safety
from advisor.model.op_effects import is_dataset_op
from advisor.model.pipeline import Analysis, Iterator, Pipeline
from advisor.model.vectorizable_ops import (
    BRANCHING_OPS,
    CHECKING_OPS,
    DRAWING_OPS,
    LOOP_INVARIANT_OPS,
    VECTORIZABLE_OPS,
)
from advisor.predict.cache_size import element_bytes
from advisor.predict.structure import STAYING, linear_chain, nested_calls, upstream_calls, users_inside

_UNBATCHED_SPECS = (
    "RaggedTensorSpec",
    "SparseTensorSpec",
    "DatasetSpec",
    "VariantSpec",
    "OptionalSpec",
    "NoneTensorSpec",
)
"""Elements that `batch` or `tf.vectorized_map` handles otherwise than tensors."""
_SHAPE = re.compile(r"shape=\(([^)]*)\)")
_SPEC = re.compile(r"TensorSpec\(shape=\([^)]*\), dtype=[^,)]*(?:, name=[^)]*)?\)")
FLAT_TUPLE = re.compile(r"\((?:TensorSpec\([^()]*\([^()]*\)[^()]*\)(?:, )?)*,?\)")
"""The spec of a tuple of tensors, as it is recorded."""
_PARSERS = ("ParseExample", "ParseExampleV2", "ParseSingleExample", "DecodeCSV")
_SINGLE_DECODERS = frozenset({
    "DecodeJpeg", "DecodePng", "DecodeImage", "DecodeAndCropJpeg", "DecodeBmp", "DecodeGif", "DecodeWav", "DecodeWebP",
})  # fmt: skip
"""Decoders that accept a single element: a function with one of these ops cannot be moved after the batch."""
_HELD_OUTPUTS = 2
"""Results of a batch that exist at once: an op's input and output."""


def vectorizing_fix(analysis: Analysis, call: Call, batched: Call) -> Fix | None:
    """Return the fix that calls the function of a `map` once per batch, or None if that is not known to be the same.

    It is tried by default unless the function branches: a branch then gets those rows of a batch that take it, and what it does
    with none at all shows only in such a batch. A function that draws random numbers draws others.

    Args:
        analysis: The analysis.
        call: The `map`.
        batched: The `batch` or `padded_batch` after it, with nothing between them that looks at single elements.
    """
    if call.method != "map" or call.function is None or not is_vectorizable(call.function):
        return None
    moves = moves_after_batch(analysis, call, batched)
    if moves is None:
        return None
    # An assertion would be checked for the first row of a batch only, if no function around it were vectorised as a whole.
    is_plain = call.function.is_straight_code and not CHECKING_OPS.intersection(call.function.ops)
    edit = Vectorize(call.id, is_plain=is_plain)
    return Fix((*moves, edit), vectorized_safety(call.function), is_auto=not has_branches(call.function))


def moves_after_batch(analysis: Analysis, call: Call, batched: Call) -> tuple[Edit, ...] | None:
    """Return the edits that move a `map` after its `batch` with a function of batches; None if its elements may differ then.

    Args:
        analysis: The analysis.
        call: The `map`.
        batched: The `batch` or `padded_batch` after it.
    """
    return edits_to_batch_first(analysis, call, batched) if takes_equal_elements(analysis, call, batched) else None


def takes_equal_elements(analysis: Analysis, call: Call, batched: Call) -> bool:
    """Return whether the elements that a `map` takes can be batched before it, whatever its function does.

    Args:
        analysis: The run.
        call: The `map`.
        batched: The `batch` or `padded_batch` after it.
    """
    if call.nested_in is not None and (call.function is None or call.function.uses_enclosing):
        return False
    if call.arguments.get("deterministic") is False or not _has_equal_elements(analysis, call):
        return False
    return not _skips_errors(analysis, call) and not _fuses_shuffle(analysis, call, batched)


def shapes_of(spec: str) -> list[list[str]]:
    """Return the dimensions of every tensor in an element spec; empty if not all are known to be tensors with a shape."""
    if (
        spec.endswith("…")
        or any(kind in spec for kind in _UNBATCHED_SPECS)
        or spec.count("Spec(") != spec.count("shape=(")
    ):
        return []
    return [[size for size in re.split(r",\s*", shape) if size] for shape in _SHAPE.findall(spec)]


def vectorized_safety(function: FunctionFacts) -> Safety:
    """Return what a vectorised function claims to do to the data: if it draws random numbers, it draws others."""
    return Safety.RERANDOMIZED if function.random_ops else Safety.EXACT


def has_branches(function: FunctionFacts) -> bool:
    """Return whether a function computes one thing for some elements of a batch and another for the rest."""
    return bool(BRANCHING_OPS.intersection(function.ops))


def record_parser(call: Call) -> str | None:
    """Return the op type with which a function parses records, if it does nothing that requires single elements.

    Args:
        call: A call with a function.

    Returns:
        One of `ParseExample`, `ParseExampleV2`, `ParseSingleExample` and `DecodeCSV`; None if there is none, or if the function
        also decodes, draws random numbers or runs Python code.
    """
    function = call.function
    if function is None or function.python_ops or function.random_ops or _SINGLE_DECODERS.intersection(function.ops):
        return None
    return next((op for op in _PARSERS if op in function.ops), None)


def edits_to_batch_first(analysis: Analysis, call: Call, batched: Call) -> tuple[Edit, ...] | None:
    """Return the edits after which a `map` takes batches; None if batches of its elements may differ from those of its results.

    A `padded_batch` that pads nothing is a `batch`. It is moved as it is, unless its arguments describe the results of the `map`.
    One that pads moves only before an element-wise function that maps padding to padding.
    A `map` at the end of the function of an `interleave` or `flat_map` is moved out of it: these pass elements on as they are.

    Args:
        analysis: The run.
        call: The `map`.
        batched: The call after it; any but a `batch` or `padded_batch` gives None.
    """
    if batched.nested_in is not None or not _is_at_the_end(analysis, call, batched):
        return None
    if batched.method == "batch":
        return None if _makes_equal_shapes(analysis, call) else (MoveAfter(call.id, batched.id),)
    if batched.method != "padded_batch":
        return None
    if not _pads_nothing(call, batched):
        return (MoveAfter(call.id, batched.id),) if padding_obstacle(analysis, call, batched) is None else None
    return moves_after_padding(analysis, call, batched)


def moves_after_padding(analysis: Analysis, call: Call, batched: Call) -> tuple[Edit, ...] | None:
    """Return the edits that move a `map` after a `padded_batch` which pads nothing there; None if it cannot be moved.

    If the arguments of the `padded_batch` describe the results of the `map`, a `batch` takes its place.

    Args:
        analysis: The run.
        call: The `map`.
        batched: The `padded_batch` after it.
    """
    if batched.arguments.get("padded_shapes") is None and batched.arguments.get("padding_values") is None:
        return (MoveAfter(call.id, batched.id),)
    chain = linear_chain(analysis, batched)
    size, drop_remainder = batched.arguments.get("batch_size"), batched.arguments.get("drop_remainder")
    if (
        call.nested_in is not None
        or len(chain) < 3
        or not isinstance(size, int)
        or not isinstance(drop_remainder, bool | None)
    ):
        return None
    last = chain[1] if chain[1].id != call.id else chain[2]
    is_used_elsewhere = any(
        last.id in other.inputs and other.id not in (call.id, batched.id) for other in analysis.calls
    )
    if is_used_elsewhere or last.library is not None or last.made_by is not None or last.nested_in is not None:
        return None
    arguments: tuple[tuple[str, Value], ...] = (("", size),)
    if drop_remainder:
        arguments += (("drop_remainder", Code("True")),)
    moves: tuple[Edit, ...] = () if chain[1].id == call.id else (MoveAfter(call.id, last.id),)
    return (
        *moves,
        InsertAfter(last.id, "batch", arguments),
        Remove(batched.id),
    )  # of two links the later one comes first


def padding_obstacle(analysis: Analysis, call: Call, batched: Call) -> str | None:
    """Return why a `map` must not move after a `padded_batch` that pads its results, as a clause; None if it may.

    Args:
        analysis: The analysis.
        call: The `map`.
        batched: The `padded_batch` after it.
    """
    function = call.function
    where = f"padded_batch{_at_line(batched)} pads its results"
    if function is None or not function.is_elementwise or not ELEMENTWISE_OPS.issuperset(function.ops):
        return f"{where}, and only element-wise functions are known to treat padding like any other value"
    if function.random_ops or function.python_ops or function.stateful_ops or function.resources or function.captured:
        return f"{where}, and its function reads more than its element"
    if batched.arguments.get("padding_values") is not None:
        return f"{where} with padding_values of its own, which the function would change"
    if function.keeps_padding is False:
        return f"{where} with zeros, and its function makes something else of a zero"
    chain = linear_chain(analysis, call)
    elements = chain[1].element_spec if len(chain) > 1 else ""
    if function.keeps_padding is None or not _pads_alike(elements, call.element_spec, batched):
        return f"{where}, and it is not known that its function maps padding to padding"
    return None


def _pads_alike(elements: str, results: str, batched: Call) -> bool:
    """Whether a `padded_batch` fills only dimensions of unknown size, the same in the elements of a `map` as in its results."""
    before, after, batches = shapes_of(elements), shapes_of(results), shapes_of(batched.element_spec)
    if not before or not after or len(after) != len(batches):
        return False
    for shape, rows in zip(after, batches, strict=True):
        if len(rows) != len(shape) + 1:
            return False
        if any(size not in ("None", padded) for size, padded in zip(shape, rows[1:], strict=True)):
            return False  # it fills a dimension of known size
    has_same_structure = _SPEC.sub("", elements) == _SPEC.sub("", results) and before == after
    return batched.arguments.get("padded_shapes") is None or has_same_structure


def _at_line(call: Call) -> str:
    return f" at line {call.site.line}" if call.site is not None else ""


def _is_at_the_end(analysis: Analysis, call: Call, batched: Call) -> bool:
    """Whether a `map` is outside of functions, or comes last in the function of a call before the `batch`."""
    if call.nested_in is None:
        return True
    outer = next((other for other in linear_chain(analysis, batched) if other.id == call.nested_in), None)
    users = users_inside(analysis, call)
    is_last = users is not None and all(user.method in STAYING and user.nested_in == call.nested_in for user in users)
    return outer is not None and outer.method in ("interleave", "flat_map") and outer.nested_in is None and is_last


def _makes_equal_shapes(analysis: Analysis, call: Call) -> bool:
    """Whether the results of a `map` have equal shapes, but not its elements (`tf.image.resize`)."""
    chain = linear_chain(analysis, call)
    elements, results = (
        shapes_of(spec) for spec in (chain[1].element_spec if len(chain) > 1 else "", call.element_spec)
    )
    if _takes_full_windows(analysis, call):
        return False
    is_open, is_open_after = (any("None" in shape for shape in shapes) for shapes in (elements, results))
    return is_open and bool(results) and not is_open_after


def _pads_nothing(call: Call, batched: Call) -> bool:
    """Whether all results of a `map` are known to have the shapes to which a `padded_batch` pads them."""
    results, batches = shapes_of(call.element_spec), shapes_of(batched.element_spec)
    return (
        bool(results) and results == [shape[1:] for shape in batches] and all("None" not in shape for shape in results)
    )


def is_vectorizable(function: FunctionFacts) -> bool:
    """Whether every op of a function has a form for batches, and its results depend on its element and its own draws alone."""
    if function.python_ops or function.resources or function.captured or not function.is_traced:
        return False
    if function.varying_parameters:
        return False
    if function.stateful_ops is None or not (CHECKING_OPS | DRAWING_OPS).issuperset(function.stateful_ops):
        return False
    return bool(function.ops) and (VECTORIZABLE_OPS | LOOP_INVARIANT_OPS | DRAWING_OPS).issuperset(function.ops)


def varying_parameter(function: FunctionFacts) -> str:
    """Name the ops with a parameter that has to be the same for all elements of a batch and is not, as a clause; empty: none."""
    if not function.varying_parameters:
        return ""
    return f"a parameter of {', '.join(function.varying_parameters)} differs between the elements of a batch"


def vectorized_bytes(
    analysis: Analysis, pipeline: Pipeline, iterator: Iterator, call: Call, batched: Call, size: int, calls: int = 1
) -> int | None:
    """Return the additional memory in bytes of a map that is called once per batch; None if element sizes are unknown.

    Each parallel call holds a batch of inputs and `_HELD_OUTPUTS` of results. A shuffle in between holds the inputs of the map
    instead of its results.

    Args:
        analysis: The run.
        pipeline: The executed pipeline, which knows the sizes of elements.
        iterator: The iterator that runs the map; its number of parallel calls counts.
        call: The `map`.
        batched: The `batch` or `padded_batch` after it.
        size: Elements per batch.
        calls: Parallel calls after the change, if it makes the map parallel.
    """
    chain = linear_chain(analysis, call)
    before = element_bytes(pipeline, chain[1]) if len(chain) > 1 else None
    after = element_bytes(pipeline, call)
    if before is None or after is None:
        return None
    held = max(calls, iterator.parallelism or 1) * size * (before + _HELD_OUTPUTS * after)
    for between in linear_chain(analysis, batched)[1:]:
        if between.id in (call.id, call.nested_in):
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
    if not spec or spec.endswith("…") or any(kind in spec for kind in _UNBATCHED_SPECS) or "<unknown>" in spec:
        return False
    if _takes_full_windows(analysis, call):
        shapes = shapes_of(spec)
        return bool(shapes) and all(shape and "None" not in shape[1:] for shape in shapes)
    return "None" not in spec.replace("name=None", "")


def _takes_full_windows(analysis: Analysis, call: Call) -> bool:
    """Whether a `map` takes windows that all have as many rows, which TensorFlow does not know: their spec says None."""
    chain = linear_chain(analysis, call)
    return len(chain) > 1 and call.nested_in is None and makes_full_windows(analysis, chain[1])


def makes_full_windows(analysis: Analysis, call: Call) -> bool:
    """Return whether a call is the `flat_map` of `window(n, drop_remainder=True).flat_map(lambda window: window.batch(n))`.

    After an edit that puts something else in its place and keeps the elements, it still counts, see `Recording.full_windows`.
    """
    if analysis.recording is not None and call.id in analysis.recording.full_windows:
        return True
    chain = linear_chain(analysis, call)
    if len(chain) < 2 or call.method != "flat_map" or chain[1].method != "window":
        return False
    size, function, inner = chain[1].arguments.get("size"), call.function, nested_calls(analysis, call)
    is_constant = isinstance(size, int) and not isinstance(size, bool) and size > 0
    if not is_constant or chain[1].arguments.get("drop_remainder") is not True:
        return False
    if function is None or not function.is_traced or not all(is_dataset_op(op) for op in function.ops):
        return False
    return [inner_call.method for inner_call in inner] == ["batch"] and inner[0].arguments.get("batch_size") == size


def _skips_errors(analysis: Analysis, call: Call) -> bool:
    """Whether a call after the map drops elements with errors: of a batch it would drop all."""
    return any(
        other.method == "ignore_errors"
        and any(feeding.id in (call.id, call.nested_in) for feeding in upstream_calls(analysis, other))
        for other in analysis.calls
    )


def _fuses_shuffle(analysis: Analysis, call: Call, batched: Call) -> bool:
    """Whether the map is between a shuffle and its repeat. TensorFlow fuses them without it, and shuffles otherwise."""
    chain = linear_chain(analysis, batched)
    place = [other.id for other in chain].index(call.id) if call in chain else 0
    around = [other.method for other in chain[place - 1 : place + 2]] if place else []
    return around[:1] == ["repeat"] and around[2:] == ["shuffle"]
