"""Which maps may leave the function of an `interleave` or `flat_map`: only those of which everything is known."""

from __future__ import annotations

import dataclasses

import pytest

from advisor.model.calls import Call, FunctionFacts, Site
from advisor.model.edits import Code, MoveAfter, SetArgument
from advisor.model.finding import Safety
from advisor.model.state import CapturedResource
from advisor.predict import Hoist, hoist
from advisor.testing import batch, map_, pipeline, source

PURE = FunctionFacts("decode", None, False, ops={"DecodeJpeg": 1}, stateful_ops=(), uses_enclosing=False)
MADE = pipeline(source(), map_("decode", ms=1), batch(32), consumer_ms=1).analysis
AUTOTUNE = Code("tf.data.AUTOTUNE")


def hoisted(
    *behind: str,
    function: FunctionFacts | None = PURE,
    method: str = "interleave",
    outside: tuple[str, ...] = ("batch",),
    **changes: object,
) -> Hoist:
    """The answer for a `map` in the function of a call of `method`, with these calls behind it there, and these outside."""
    calls = [
        Call("files", "from_tensor_slices", Site("train.py", 1, 1, 1, 9)),
        Call("reader", "TFRecordDataset", Site("train.py", 2, 1, 2, 9), nested_in="outer"),
    ]
    for number, inner_method in enumerate(("map", *behind)):
        own = function if inner_method == "map" else None
        site = Site("train.py", 3 + number, 1, 3 + number, 9)
        name = inner_method if number == 0 else f"{inner_method}{number}"
        calls.append(Call(name, inner_method, site, (calls[-1].id,), function=own, nested_in="outer"))
    at = Site("train.py", 20, 1, 20, 9)
    calls.append(Call("outer", method, at, ("files",)))
    for outer_method in outside:
        calls.append(Call(outer_method, outer_method, at, (calls[-1].id,)))
    calls = [dataclasses.replace(call, **changes.get(call.id, {})) for call in calls]
    return hoist(dataclasses.replace(MADE, calls=tuple(calls)), next(call for call in calls if call.id == "map"))


def test_a_map_at_the_end_goes_behind_the_outer_call_and_becomes_parallel() -> None:
    for method in ("interleave", "flat_map"):
        hoist = hoisted(method=method)
        assert hoist.edits == (MoveAfter("map", "outer"), SetArgument("map", "num_parallel_calls", AUTOTUNE))
        assert (hoist.safety, hoist.reason) == (Safety.EXACT, "")


def test_what_follows_it_there_moves_too_or_stays_without_harm() -> None:
    parallel = SetArgument("map", "num_parallel_calls", AUTOTUNE)
    assert hoisted("prefetch").edits == (MoveAfter("map", "outer"), parallel)
    assert hoisted("map", "prefetch").edits == (MoveAfter("map1", "outer"), MoveAfter("map", "outer"), parallel)
    fixed = hoisted(map={"arguments": {"num_parallel_calls": 4}})
    assert fixed.edits == (MoveAfter("map", "outer"),)


@pytest.mark.parametrize("method", ["batch", "shuffle", "enumerate", "cache", "filter", "take", "repeat", "unheard_of"])
def test_a_map_whose_results_another_call_works_on_stays(method: str) -> None:
    hoist = hoisted(method)
    assert hoist.edits == () and hoist.fix(is_auto=True) is None
    assert hoist.reason == f"{method} at line 4, which follows it there, works on its results"


NEEDS_INSIDE = {
    "the element of the outer call": (
        {"uses_enclosing": True},
        "uses a value of the function of interleave at line 20",
    ),
    "not recorded": ({"uses_enclosing": None}, "was not recorded"),
    "Python code": ({"python_ops": ("EagerPyFunc",)}, "runs Python code, which may count its calls"),
    "a counter": ({"stateful_ops": ("AssignAddVariableOp",)}, "reads or changes state"),
    "a variable": (
        {"resources": (CapturedResource("variable", "scale"),), "stateful_ops": ("ReadVariableOp",)},
        "reads or changes state",
    ),
    "an unknown op with state": ({"stateful_ops": ("UnheardOf",)}, "reads or changes state"),
    "a generator with a state": (
        {
            "random_ops": ("RngReadAndSkip",),
            "stateful_ops": ("RngReadAndSkip",),
            "resources": (CapturedResource("variable", "g"),),
        },
        "reads or changes state",
    ),
    "an old recording": ({"stateful_ops": None, "is_stateful": True}, "reads or changes state"),
    "not traced": ({"is_traced": False}, "was not inspected"),
}


@pytest.mark.parametrize(("facts", "reason"), NEEDS_INSIDE.values(), ids=NEEDS_INSIDE)
def test_a_function_that_depends_on_where_it_is_called_stays(facts: dict[str, object], reason: str) -> None:
    hoist = hoisted(function=dataclasses.replace(PURE, **facts))  # type: ignore[arg-type]
    assert hoist.edits == () and reason in hoist.reason


def test_a_function_that_only_draws_numbers_draws_others() -> None:
    draws = dataclasses.replace(PURE, random_ops=("RandomUniform",), stateful_ops=("RandomUniform",), is_stateful=True)
    assert hoisted(function=draws).safety is Safety.RERANDOMIZED and hoisted(function=draws).edits


def test_a_table_that_never_changes_may_be_read_anywhere() -> None:
    looks_up = dataclasses.replace(
        PURE, resources=(CapturedResource("static table", "words"),), stateful_ops=("LookupTableFindV2",)
    )
    assert hoisted(function=looks_up).safety is Safety.EXACT


def test_the_reason_names_the_call_that_cannot_follow() -> None:
    counts = dataclasses.replace(PURE, python_ops=("EagerPyFunc",))
    hoist = hoisted("map", map1={"function": counts})
    assert hoist.reason.startswith("map at line 4, which follows it there, cannot: its function runs Python code")


PLACES = {
    "another outer call": ({"method": "group_by_window"}, "does not pass on the elements"),
    "two levels": ({"**": {"outer": {"nested_in": "files"}}}, "is itself inside a function"),
    "a library": ({"**": {"map": {"library": "keras"}}}, "a library makes one of the calls"),
    "another dataset": ({"**": {"reader": {"method": "zip"}, "map": {"inputs": ()}}}, "makes more than one dataset"),
    "errors": ({"outside": ("ignore_errors",)}, "errors are ignored"),
    "no order": ({"**": {"outer": {"arguments": {"deterministic": False}}}}, "no fixed order"),
}


@pytest.mark.parametrize(("made", "reason"), PLACES.values(), ids=PLACES)
def test_a_place_of_which_not_all_is_known_keeps_its_map(made: dict[str, object], reason: str) -> None:
    more = made.get("**", {})
    made = {name: value for name, value in made.items() if name != "**"}
    hoist = hoisted(**made, **more)  # type: ignore[arg-type]
    assert hoist.edits == () and reason in hoist.reason
