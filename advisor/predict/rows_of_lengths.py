"""Whether a function that makes rows of a given length can be called once per batch, for the rows of all its elements.

In: an `Analysis`, a `map` and the `padded_batch` after it.  Out: `RowsOfLengths`: the fix, or the reason why there is none.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from advisor.model.calls import Call, FunctionFacts
from advisor.model.finding import Fix
from advisor.model.pipeline import Analysis
from advisor.model.vectorizable_ops import CHECKING_OPS, DRAWING_OPS, READING_OPS
from advisor.predict.batch_functions import (
    FLAT_TUPLE,
    moves_after_padding,
    shapes_of,
    takes_equal_elements,
    vectorized_safety,
)
from advisor.predict.longest_row import longest_row_obstacle
from advisor.predict.splits import text_of, text_of_file
from advisor.predict.structure import linear_chain
from advisor.predict.written_functions import reads_state, written_fix
from advisor.splitting import CannotSplitError, batched_rows


@dataclass(frozen=True, slots=True)
class RowsOfLengths:
    """How a function that makes rows of a given length can be called once per batch."""

    reason: str = ""
    """Why there is no fix, as a clause; empty if there is one, or if the function makes no such rows."""
    fix: Fix | None = None


def rows_of_lengths(analysis: Analysis, call: Call, batched: Call) -> RowsOfLengths:
    """Return how a `map` that makes rows of a given length can be called once per batch.

    Args:
        analysis: The analysis.
        call: The `map`.
        batched: The `batch` or `padded_batch` after it, with nothing between them that looks at single elements.
    """
    function, spec = call.function, call.element_spec
    if call.method != "map" or function is None or function.row_length is None or batched.method != "padded_batch":
        return RowsOfLengths()
    if call.nested_in is not None or batched.nested_in is not None:
        return RowsOfLengths("it is called inside another function")
    reason = _reads_more(function) or longest_row_obstacle(call, batched, "to_tensor")
    if reason:
        return RowsOfLengths(reason)
    if spec.startswith("{") or (spec.startswith("(") and FLAT_TUPLE.fullmatch(spec) is None):
        return RowsOfLengths("its results are not a tensor or a tuple of tensors")
    moves = moves_after_padding(analysis, call, batched) if takes_equal_elements(analysis, call, batched) else None
    if moves is None:
        return RowsOfLengths("another call depends on single elements")
    text, chain = text_of_file(analysis, call), linear_chain(analysis, call)
    if text is None or len(chain) < 2:
        return RowsOfLengths("its file cannot be read")
    rows = tuple("None" in shape for shape in shapes_of(spec)) if spec.startswith("(") else ()
    elements, read = chain[1].element_spec, partial(text_of, analysis)
    try:
        written = batched_rows(text, call, elements, function.row_length, rows, read)
    except CannotSplitError as error:
        return RowsOfLengths(f"{error.reason}{f' (line {error.line})' if error.line is not None else ''}")
    return RowsOfLengths("", written_fix(analysis, call, moves, written, vectorized_safety(function)))


def _reads_more(function: FunctionFacts) -> str:
    """Why its results may depend on more than its element, constants, static tables and its own draws, as a clause."""
    if reads_state(function):
        return "it reads state outside its element"
    known = CHECKING_OPS | DRAWING_OPS | READING_OPS
    if function.stateful_ops is None or not known.issuperset(function.stateful_ops) or function.python_ops:
        return "it has stateful ops"
    return ""
