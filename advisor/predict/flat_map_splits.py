"""Whether what the function of a `flat_map` or `interleave` computes can move to a parallel `map` before it.

In: an `Analysis` and a call whose function computes before it makes a dataset.  Out: `Split`: the fix, or the reason why
there is none and the line at which it could be cut by hand.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from advisor.model.calls import Call, FunctionFacts
from advisor.model.edits import SplitFlatMap
from advisor.model.finding import Fix, Safety
from advisor.model.pipeline import Analysis
from advisor.predict.determinism import parallel_safety
from advisor.predict.splits import Split, facts_of_first, is_in_script, split_edit, text_of, text_of_file
from advisor.predict.structure import linear_chain
from advisor.splitting import CannotSplitError, Halves, split_function


def flat_map_split(analysis: Analysis, call: Call) -> Split:
    """Return how the function of a `flat_map` or `interleave` can be split into a `map` and the part that makes the dataset.

    Args:
        analysis: The analysis.
        call: A call of `flat_map`, or of `interleave` without parallel calls.
    """
    chain = linear_chain(analysis, call)
    text = text_of_file(analysis, call)
    if text is None or call.function is None or len(chain) < 2:
        return Split(None, "its file cannot be read")
    try:
        read = partial(text_of, analysis)
        halves = split_function(text, call, chain[1].element_spec, is_in_script(analysis, call), read)
    except CannotSplitError as error:
        return Split(error.line, error.reason)
    file = "" if halves.imported is None else halves.imported.file
    split = Split(halves.line, "", None, file, halves.names, halves.ops, halves.bytes)
    reason = _reason_against(analysis, call, _first(call.function, halves))
    if reason is not None:
        return replace(split, reason=reason)
    edits = (split_edit(SplitFlatMap, call, halves),)
    assumed = halves.assumptions
    return replace(split, fix=Fix(edits, Safety.EXACT, is_auto=not assumed, assumptions=assumed))


def _first(function: FunctionFacts, halves: Halves) -> FunctionFacts:
    first = facts_of_first(function, halves)
    return replace(first, random_ops=tuple(op for op in function.random_ops if op in halves.ops))


def _reason_against(analysis: Analysis, call: Call, first: FunctionFacts) -> str | None:
    """Why the first half must not run in parallel, or before the elements are asked for, as a clause; None if it may."""
    if call.library is not None or call.made_by is not None:
        return f"its {call.method} is called by a library"
    if call.nested_in is not None:
        return f"its {call.method} is inside another function"
    if call.arguments.get("num_parallel_calls") is not None:
        return f"its {call.method} calls it in parallel already"
    if first.random_ops:
        return "what it computes before draws random numbers"
    if first.python_ops:
        return "what it computes before runs Python code"
    if parallel_safety(replace(call, function=first)) is not Safety.EXACT:
        return "what it computes before may depend on the order of the elements"
    if any(other.options.get("deterministic") is False for other in analysis.calls):
        return "the elements of a parallel map would have no fixed order (deterministic=False)"
    if any(other.method == "ignore_errors" for other in analysis.calls):
        return "errors are ignored after it"
    return None
