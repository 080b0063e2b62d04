"""What the rules that write a function of batches share: the fix for a written text, and whether the function reads state.

In: an `Analysis`, a `map` and what `advisor.splitting` wrote for it.  Out: a `Fix`.
"""

from __future__ import annotations

from advisor.model.calls import Call, FunctionFacts
from advisor.model.edits import Edit, VectorizeParts
from advisor.model.finding import Fix, Safety
from advisor.model.pipeline import Analysis
from advisor.model.state import STATIC_TABLE
from advisor.predict.splits import is_in_script
from advisor.splitting import BatchText


def written_fix(
    analysis: Analysis, call: Call, moves: tuple[Edit, ...], written: BatchText, safety: Safety, *, is_auto: bool = True
) -> Fix:
    """Return the fix that moves a `map` after its `batch` and passes the written function.

    Args:
        analysis: The analysis.
        call: The `map`.
        moves: The edits that move it.
        written: The function of batches.
        safety: What the fix claims to do to the data.
        is_auto: Whether it may be tried without being asked for. A method that another class may override never is.
    """
    imported = written.imported
    edit = VectorizeParts(
        call.id, written.text, written.name, written.original, written.line, written.argument, written.called,
        "" if imported is None else imported.file, "" if imported is None else imported.beside,
    )  # fmt: skip
    is_assumed = written.method != "" and (imported is not None or not is_in_script(analysis, call))
    assumptions = (f"no class in another file overrides `{written.method}`",) if is_assumed else ()
    return Fix((*moves, edit), safety, is_auto and not assumptions, assumptions=assumptions)


def reads_state(function: FunctionFacts) -> bool:
    """Return whether a function reads more than its element, constants and static tables."""
    is_constant = all(resource.kind == STATIC_TABLE for resource in function.resources)
    return not is_constant or bool(function.captured and not function.resources)
