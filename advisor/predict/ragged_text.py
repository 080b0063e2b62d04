"""Whether a function that splits texts into words can be called once per batch, after what was a `padded_batch`.

In: an `Analysis`, a `map` and the `padded_batch` after it.  Out: `RaggedText`: the fix, or the reason why there is none. Called
with a batch of texts, the function makes ragged tensors; `to_tensor` pads them to the longest row, as the `padded_batch` did.
"""

from __future__ import annotations

from dataclasses import dataclass

from advisor.model.calls import Call
from advisor.model.edits import VectorizeRagged
from advisor.model.finding import Fix, Safety
from advisor.model.pipeline import Analysis
from advisor.model.vectorizable_ops import CHECKING_OPS, READING_OPS
from advisor.predict.batch_functions import FLAT_TUPLE, moves_after_padding, shapes_of, takes_equal_elements
from advisor.predict.written_functions import reads_state


@dataclass(frozen=True, slots=True)
class RaggedText:
    """How a function that splits texts can be called once per batch."""

    reason: str = ""
    """Why there is no fix, as a clause; empty if there is one, or if the function splits no texts."""
    fix: Fix | None = None


def ragged_text(analysis: Analysis, call: Call, batched: Call) -> RaggedText:
    """Return how a `map` that splits texts can be called once per batch.

    Args:
        analysis: The analysis.
        call: The `map`.
        batched: The `batch` or `padded_batch` after it, with nothing between them that looks at single elements.
    """
    function = call.function
    if call.method != "map" or function is None or "StringSplitV2" not in function.ops:
        return RaggedText()
    if batched.method != "padded_batch":
        return RaggedText("it splits texts, and a batch of words without padding fails if their numbers differ")
    if not function.ragged_results:
        return RaggedText(
            "what it does with the words is not known to be the same for those of a batch (a ragged tensor)"
        )
    if call.nested_in is not None or batched.nested_in is not None:
        return RaggedText("it is called inside another function")
    if reads_state(function):
        return RaggedText("it reads state outside its element")
    known = CHECKING_OPS | READING_OPS
    if function.stateful_ops is None or not known.issuperset(function.stateful_ops) or function.python_ops:
        return RaggedText("it has stateful ops")
    reason = _padding_reason(call, batched)
    if reason:
        return RaggedText(reason)
    moves = moves_after_padding(analysis, call, batched) if takes_equal_elements(analysis, call, batched) else None
    if moves is None:
        return RaggedText("its elements are not known to have equal shapes, or another call depends on single elements")
    count = len(shapes_of(call.element_spec)) if call.element_spec.startswith("(") else 0
    value = batched.arguments.get("padding_values")
    assert value is None or isinstance(value, int | float | str)  # _padding_reason
    rows = shapes_of(batched.element_spec)[0][0]
    edit = VectorizeRagged(call.id, count, function.ragged_results, value, int(rows) if rows.isdigit() else None)
    return RaggedText("", Fix((*moves, edit), Safety.EXACT, is_auto=True))


def _padding_reason(call: Call, batched: Call) -> str:
    """Why `to_tensor` would not pad as a `padded_batch` does, as a clause; empty if it pads the same."""
    assert call.function is not None
    results, batches = shapes_of(call.element_spec), shapes_of(batched.element_spec)
    where = f"padded_batch{f' at line {batched.site.line}' if batched.site is not None else ''}"
    is_flat = not call.element_spec.startswith("(") or FLAT_TUPLE.fullmatch(call.element_spec) is not None
    if not results or len(results) != len(batches) or not is_flat or call.element_spec.startswith("{"):
        return "its results are not a tensor or a tuple of tensors"
    for number, (shape, rows) in enumerate(zip(results, batches, strict=True)):
        if number not in call.function.ragged_results and ("None" in shape or rows[1:] != shape):
            return f"{where} also pads what is not a row of words"
        if number in call.function.ragged_results and rows[1:] != ["None"]:
            return f"{where} pads to a fixed length and refuses longer rows, which to_tensor would cut"
    value = batched.arguments.get("padding_values")
    is_plain = value is None or (isinstance(value, int | float | str) and not isinstance(value, bool))
    if not is_plain or (isinstance(value, str) and value.startswith("<")) or (value is not None and len(results) > 1):
        return f"{where} gets padding_values of several components, or values that are not in the text"
    return ""
