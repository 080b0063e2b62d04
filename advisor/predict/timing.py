"""What a fix relies on that changes when the pipeline runs, or how many of its calls run at once.

In: an `Analysis` and a fix.  Out: the fix with its assumptions.

A buffer, a parallel call or a larger batch computes elements before the step that precedes them has ended. If the loop assigns
a variable between two steps and the pipeline reads it, those elements get the value of another step. A replay cannot show this,
because nothing assigns the variable while the script is held at its first element. Nor can it show whether Python code that
never ran twice at once may do so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from advisor.model.calls import Call
from advisor.model.edits import Edit, MoveAfter, SetArgument, SetOption, SplitFlatMap
from advisor.model.finding import Fix, Safety
from advisor.model.pipeline import Analysis
from advisor.model.shared_text import siblings_of
from advisor.predict.call_index import graph_of
from advisor.predict.determinism import parallel_safety
from advisor.predict.observed import Observations

_LEVELS = tuple(Safety)


def with_timing(analysis: Analysis, fix: Fix) -> Fix:
    """The fix with what it assumes about time, so that it is tried only if its rule is asked for by name.

    Its safety is that of all datasets that the changed text makes.

    Args:
        analysis: The run, which knows what functions read and which datasets share a text.
        fix: The fix; its edits tell which calls it makes parallel or runs ahead of time.

    Returns:
        The same object if it assumes nothing more and its safety stays.
    """
    calls = tuple(_edited_calls(analysis, fix.edits))
    parallel = tuple(_edited_calls(analysis, (edit for edit in fix.edits if _is_parallel(edit))))
    ahead = tuple(_edited_calls(analysis, (edit for edit in fix.edits if isinstance(edit, SplitFlatMap))))
    clauses = dict.fromkeys((*_of_state(analysis, calls), *_of_python(analysis, parallel)))
    more = tuple(clause for clause in clauses if clause not in fix.assumptions)
    safety = max((fix.safety, *_safeties_of_siblings(analysis, fix.edits, (*parallel, *ahead))), key=_LEVELS.index)
    if not more and safety is fix.safety:
        return fix
    return replace(fix, safety=safety, is_auto=fix.is_auto and not more, assumptions=(*fix.assumptions, *more))


def _edited_calls(analysis: Analysis, edits: Iterable[Edit]) -> Iterator[Call]:
    """The calls that the edits name, with all other calls of the same text; for an option every call of its datasets.

    The last calls come first: the others are upstream of them.
    """
    graph = graph_of(analysis)
    by_id = graph.by_id
    ids = [
        i for edit in edits for i in ((edit.call_id, edit.after_id) if isinstance(edit, MoveAfter) else (edit.call_id,))
    ]
    named = [by_id[i] for i in ids if i in by_id]
    edited = {twin.id: twin for call in named for twin in (call, *siblings_of(call, by_id))}
    if any(isinstance(edit, SetOption) for edit in edits):
        return iter({user.id: user for call in edited.values() for user in graph.downstream_first(call)}.values())
    return reversed(edited.values())


def _of_state(analysis: Analysis, calls: Iterable[Call]) -> Iterator[str]:
    """State that was seen to change, or was not watched, upstream of these calls."""
    lineage, observed = graph_of(analysis).lineage, Observations(analysis.recording)
    upstream_calls: dict[str, Call] = {}
    for call in calls:
        if call.id not in upstream_calls:
            upstream_calls |= {upstream_call.id: upstream_call for upstream_call in lineage.upstream(call.id)}
    for upstream_call in upstream_calls.values():
        reason = observed.reason_against_reading_ahead(upstream_call)
        if reason is not None:
            yield f"`{_name(upstream_call)}` may run earlier or later than now, though it {reason}"


def _of_python(analysis: Analysis, calls: Iterable[Call]) -> Iterator[str]:
    """Python code that would run in several threads and did not before."""
    lineage = graph_of(analysis).lineage
    for call in calls:
        if call.arguments.get("num_parallel_calls") is not None:
            continue
        for inner_call in (call, *lineage.inside(call)):
            has_code = inner_call.function is not None and bool(inner_call.function.python_ops)
            if has_code or "generator" in inner_call.method.lower():
                yield f"the Python code of `{_name(inner_call)}` may run several times at once"


def _safeties_of_siblings(analysis: Analysis, edits: Iterable[Edit], calls: Iterable[Call]) -> Iterator[Safety]:
    """What parallel calls do in the other datasets that the text makes; rules judge the dataset that training reads."""
    lineage, judged = graph_of(analysis).lineage, {edit.call_id for edit in edits}
    for call in calls:
        if call.id not in judged:
            yield from map(parallel_safety, lineage.inside(call) if call.method == "interleave" else (call,))


def _is_parallel(edit: Edit) -> bool:
    return isinstance(edit, SetArgument) and edit.name == "num_parallel_calls"


def _name(call: Call) -> str:
    return call.function.name if call.function is not None and call.function.name else call.method
