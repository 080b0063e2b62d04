"""Whether a `map` inside the function of an `interleave` or `flat_map` can move out of it, after that call.

In: an `Analysis` and the `map`.  Out: `Hoist`: the edits and what they do to the data, or the reason why there are none. Both
outer calls pass on elements as they are, and a `map` changes neither their number nor their order, so that it computes the same
elements in the same order outside. Everything that could make a difference is refused unless it is known not to.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from advisor.model.calls import Call, FunctionFacts
from advisor.model.edits import Code, Edit, MoveAfter, SetArgument
from advisor.model.finding import Fix, Safety
from advisor.model.pipeline import Analysis
from advisor.predict.determinism import parallel_safety
from advisor.predict.structure import STAYING, users_inside

_PASSING_ON = frozenset({"interleave", "flat_map"})
"""Calls that pass on the elements of the datasets that their function makes."""
_AUTOTUNE = Code("tf.data.AUTOTUNE")


@dataclass(frozen=True, slots=True)
class Hoist:
    """Whether a `map` can move out of a function."""

    edits: tuple[Edit, ...]
    """They move the `map`, and the maps that follow it there, after the outer call, and make it parallel; none if it stays."""
    safety: Safety
    reason: str
    """Why it stays, as a clause; empty if there are edits."""

    def fix(self, is_auto: bool) -> Fix | None:
        """Return the fix; None if the `map` stays.

        Args:
            is_auto: Whether it is tried by default.
        """
        return Fix(self.edits, self.safety, is_auto) if self.edits else None


def hoist(analysis: Analysis, call: Call) -> Hoist:
    """Return how a `map` moves out of the function inside which it is called.

    Args:
        analysis: The analysis.
        call: A call of `map` with `nested_in`.
    """
    outer = next((other for other in analysis.calls if other.id == call.nested_in), None)
    if outer is None:
        return _staying("the call whose function contains it was not recorded")
    users = users_inside(analysis, call)
    reason = _reason_against_place(analysis, call, outer, users)
    if reason is not None or users is None:
        return _staying(reason or "its dataset is used more than once")
    moving = (call, *(moved_call for moved_call in users if moved_call.method not in STAYING))
    for moved_call in moving:
        reason = _reason_against_function(moved_call, outer)
        if reason is not None:
            return _staying(
                reason if moved_call is call else f"{_place(moved_call)}, which follows it there, cannot: {reason}"
            )
    draws = any(moved_call.function is not None and moved_call.function.random_ops for moved_call in moving)
    edits: tuple[Edit, ...] = tuple(MoveAfter(moved_call.id, outer.id) for moved_call in reversed(moving))
    if call.arguments.get("num_parallel_calls") is None:
        edits += (SetArgument(call.id, "num_parallel_calls", _AUTOTUNE),)
    return Hoist(edits, Safety.RERANDOMIZED if draws else Safety.EXACT, "")


def _staying(reason: str) -> Hoist:
    return Hoist((), Safety.CHANGES, reason)


def _reason_against_place(analysis: Analysis, call: Call, outer: Call, users: tuple[Call, ...] | None) -> str | None:
    """Why a `map` must stay where it is called, whatever its function does; None if it may move."""
    if outer.method not in _PASSING_ON:
        return f"{_place(outer)} does not pass on the elements of its function as they are"
    if outer.nested_in is not None:
        return f"{_place(outer)} is itself inside a function"
    own = [call, outer, *(users or ())]
    if any(
        other_call.library is not None or other_call.made_by is not None or other_call.site is None
        for other_call in own
    ):
        return "a library makes one of the calls"
    inner = [
        other_call for other_call in analysis.calls if other_call.nested_in == outer.id and other_call.made_by is None
    ]
    used = {call_id for other_call in inner for call_id in other_call.inputs}
    if sum(other_call.id not in used for other_call in inner) > 1:
        return f"the function of {_place(outer)} makes more than one dataset"
    for other_call in users or ():
        if other_call.nested_in != outer.id:
            return f"{_place(other_call)} takes its elements in another function"
        if other_call.method not in (*STAYING, "map"):
            return f"{_place(other_call)}, which follows it there, works on its results"
        if len(other_call.inputs) != 1:
            return f"{_place(other_call)}, which follows it there, takes another dataset too"
    if any(_has_no_order(other_call) for other_call in analysis.calls):
        return "the elements have no fixed order (deterministic=False), so that nothing could prove the change"
    if any(other_call.method == "ignore_errors" for other_call in analysis.calls):
        return "errors are ignored, and one outside of the function ends more than one inside of it"
    return None


def _has_no_order(call: Call) -> bool:
    return call.arguments.get("deterministic") is False or call.options.get("deterministic") is False


def _reason_against_function(call: Call, outer: Call) -> str | None:
    """Why the function of a `map` must not run outside of another function, or ahead of time; None if it may."""
    function = call.function
    if function is None or not function.is_traced:
        return "its function was not inspected"
    if function.uses_enclosing:
        return f"its function uses a value of the function of {_place(outer)}, such as its element"
    if function.uses_enclosing is None:
        return f"whether its function uses values of the function of {_place(outer)} was not recorded"
    if function.python_ops:
        return "its function runs Python code, which may count its calls"
    if parallel_safety(replace(call, function=_without_draws(function))) is not Safety.EXACT:
        return "its function reads or changes state, so that the order of its calls matters"
    return None


def _without_draws(function: FunctionFacts) -> FunctionFacts:
    """The function without its random ops, to judge the rest: drawing in another order gives other numbers, nothing else."""
    stateful = function.stateful_ops
    if stateful is not None:
        stateful = tuple(op for op in stateful if op not in function.random_ops)
    return replace(function, random_ops=(), stateful_ops=stateful)


def _place(call: Call) -> str:
    return call.method if call.site is None else f"{call.method} at line {call.site.line}"
