"""Whether a function of which only one part takes batches as it is can be called once per batch, in parts.

In: an `Analysis`, a `map` and the `batch` after it.  Out: `Mixed`: the fix, or the reason why there is none. The parts are put
together from the text of the function (`advisor.splitting.batch_text`) and from what capture recorded of its lines.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from advisor.model.call_names import of_file
from advisor.model.calls import Call, FunctionFacts
from advisor.model.finding import Fix
from advisor.model.pipeline import Analysis
from advisor.model.vectorizable_ops import CHECKING_OPS, DRAWING_OPS, READING_OPS
from advisor.predict.batch_functions import has_branches, moves_after_batch, varying_parameter, vectorized_safety
from advisor.predict.splits import text_of, text_of_file
from advisor.predict.structure import linear_chain
from advisor.predict.written_functions import reads_state, written_fix
from advisor.splitting import CannotSplitError, batch_text


@dataclass(frozen=True, slots=True)
class Mixed:
    """How a function can be called once per batch, in parts."""

    reason: str = ""
    """Why there is no fix, as a clause; empty if there is one, or if nothing is known about its lines."""
    fix: Fix | None = None
    lines: tuple[int, ...] = ()
    """The lines at which one part ends and the next begins."""
    file: str = ""
    """The file of these lines, if it is not that of the call."""

    @property
    def where(self) -> str:
        """The places of the cuts in a sentence: `line 5`, `lines 5, 9 of data.py`."""
        return f"line{'s' * (len(self.lines) > 1)} {', '.join(map(str, self.lines))}{of_file(self.file)}"


def mixed_function(analysis: Analysis, call: Call, batched: Call) -> Mixed:
    """Return how a `map` can be called once per batch, in parts that take batches and parts that are vectorised.

    Args:
        analysis: The analysis.
        call: The `map`.
        batched: The `batch` or `padded_batch` after it, with nothing between them that looks at single elements.
    """
    function = call.function
    if call.method != "map" or function is None or call.nested_in is not None:
        return Mixed()
    if not function.batch_lines and (function.called is None or not function.called.batch_lines):
        return Mixed()
    reason = _reason_against(function)
    if reason:
        return Mixed(reason)
    moves = moves_after_batch(analysis, call, batched)
    if moves is None:
        return Mixed()
    text, chain = text_of_file(analysis, call), linear_chain(analysis, call)
    if text is None or len(chain) < 2:
        return Mixed("its file cannot be read")
    try:
        written = batch_text(text, call, chain[1].element_spec, partial(text_of, analysis))
    except CannotSplitError as error:
        where = f" (line {error.line})" if error.line is not None else ""
        return Mixed(f"{error.reason}{where}")
    fix = written_fix(analysis, call, moves, written, vectorized_safety(function), is_auto=not has_branches(function))
    return Mixed("", fix, written.cuts, "" if written.imported is None else written.imported.file)


def _reason_against(function: FunctionFacts) -> str:
    """Why its results may depend on more than its element, constants, static tables and its own draws, as a clause."""
    if (function.python_ops and not function.is_python_row_wise) or not function.is_traced:
        return "it runs Python code"
    known = CHECKING_OPS | DRAWING_OPS | READING_OPS | frozenset(function.python_ops)
    if function.stateful_ops is None or not known.issuperset(function.stateful_ops):
        return "it has stateful ops"
    if not DRAWING_OPS.issuperset(function.random_ops):
        return "it draws random numbers in a way that has no form for batches"
    if reads_state(function):
        return "it reads state outside its element"
    return varying_parameter(function)
