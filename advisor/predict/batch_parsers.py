"""Whether a function that parses records can be called once per batch, with `tf.io.parse_example` as its parser.

In: an `Analysis`, a `map` and the `batch` or `padded_batch` after it.  Out: `BatchParser`: the fix, or the reason why there is
none.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from advisor.model.calls import Call
from advisor.model.finding import Fix, Safety
from advisor.model.pipeline import Analysis
from advisor.model.vectorizable_ops import CHECKING_OPS, READING_OPS
from advisor.predict.batch_functions import (
    moves_after_batch,
    moves_after_padding,
    record_parser,
    shapes_of,
    takes_equal_elements,
)
from advisor.predict.longest_row import longest_row_obstacle
from advisor.predict.splits import text_of, text_of_file
from advisor.predict.written_functions import reads_state, written_fix
from advisor.splitting import CannotSplitError, batched_parser


@dataclass(frozen=True, slots=True)
class BatchParser:
    """How a function that parses records can be called once per batch."""

    reason: str = ""
    """Why there is no fix, as a clause; empty if there is one, or if the function does not parse records."""
    fix: Fix | None = None


def batch_parser(analysis: Analysis, call: Call, batched: Call) -> BatchParser:
    """Return how a `map` that parses records can be called once per batch, with another parser in its function.

    Args:
        analysis: The analysis.
        call: The `map`.
        batched: The `batch` or `padded_batch` after it, with nothing between them that looks at single elements.
    """
    function = call.function
    if call.method != "map" or function is None or record_parser(call) in (None, "DecodeCSV"):
        return BatchParser()
    if not function.parses_batches:
        return BatchParser("what it does with the features is not known to be the same for a batch of records")
    if call.nested_in is not None or batched.nested_in is not None:
        return BatchParser("it is called inside another function")
    if reads_state(function):
        return BatchParser("it reads state outside its element")
    if function.stateful_ops is None or not (CHECKING_OPS | READING_OPS).issuperset(function.stateful_ops):
        return BatchParser("it has stateful ops")
    reason = _padding_reason(call, batched)
    if reason:
        return BatchParser(reason)
    if batched.method == "batch":
        moves = moves_after_batch(analysis, call, batched)
    else:
        moves = moves_after_padding(analysis, call, batched) if takes_equal_elements(analysis, call, batched) else None
    if moves is None:
        return BatchParser("another call depends on single elements")
    text = text_of_file(analysis, call)
    if text is None:
        return BatchParser("its file cannot be read")
    try:
        written = batched_parser(text, call, partial(text_of, analysis))
    except CannotSplitError as error:
        return BatchParser(f"{error.reason}{f' (line {error.line})' if error.line is not None else ''}")
    return BatchParser("", written_fix(analysis, call, moves, written, Safety.EXACT))


def _padding_reason(call: Call, batched: Call) -> str:
    """Why a batch of records would not be padded as the `padded_batch` pads, as a clause; empty if it is."""
    if batched.method == "batch":
        results = shapes_of(call.element_spec)
        return "" if results and not any("None" in shape for shape in results) else "batch does not pad its results"
    return longest_row_obstacle(call, batched, "a parser")
