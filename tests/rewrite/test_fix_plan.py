"""Which fixes are tried, in which order, which not and why; and that all of them hold together."""

from __future__ import annotations

import ast
import itertools
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.model.calls import Call, FunctionFacts, Site
from advisor.model.edits import Code, Edit, InsertAfter, MoveAfter, Remove, SetArgument, SetOption, Vectorize
from advisor.model.finding import Finding, Fix, Prediction, Safety
from advisor.model.recording import Host, Recording, ScriptExit
from advisor.rewrite.combined_edits import combine, comparison_key
from advisor.rewrite.fix_plan import is_asked, make_plan
from advisor.rewrite.shared_calls import edited_ids, sentence_of_sharing, spread
from advisor.rewrite.source import rewritten
from tests.effort import examples
from tests.rewrite.source_text import calls_in

AUTOTUNE = Code("tf.data.AUTOTUNE")
TEXT = "import tensorflow as tf\nds = tf.data.Dataset.range(9).shuffle(3).map(f).batch(2)\n"
CALLS = calls_in(TEXT)


def finding(rule, *edits, gain=1.5, safety=Safety.EXACT, is_auto=True):
    fix = Fix(edits, safety, is_auto) if edits else None
    return Finding(rule, f"Do {rule}", "it is slow", prediction=Prediction(gain, gain, gain), fix=fix)


PARALLEL = finding("serial-map", SetArgument("map", "num_parallel_calls", AUTOTUNE), gain=3)
CAPPED = finding("capped", SetArgument("map", "num_parallel_calls", 4), gain=2)
CACHE = finding("cache", MoveAfter("shuffle", "map"), InsertAfter("map", "cache"), gain=5)
PREFETCH = finding("prefetch", InsertAfter("map", "prefetch", (("", AUTOTUNE),)), gain=1.2)
OPTION = finding("option", SetOption("map", "deterministic", True), gain=1.1)
WITHOUT = finding("no-shuffle", Remove("shuffle"), gain=1.3)


def reasons(plan):
    return {finding.finding.rule: finding.reason for finding in plan.left_out}


def test_best_first_and_every_fix_once_if_nothing_stands_against_it():
    plan = make_plan([PREFETCH, OPTION, CACHE, PARALLEL], CALLS)
    assert [finding.rule for finding in plan.findings] == ["cache", "serial-map", "prefetch", "option"]
    assert plan.left_out == ()


def test_conflicts_are_left_out_with_the_reason():
    plan = make_plan([CAPPED, PARALLEL, CACHE, WITHOUT], CALLS)
    assert [finding.rule for finding in plan.findings] == ["cache", "serial-map"]
    assert reasons(plan) == {
        "capped": "Conflicts with serial-map (Do serial-map), which has the larger prediction: both set num_parallel_calls of "
        "map at line 2.",
        "no-shuffle": "Conflicts with cache (Do cache), which has the larger prediction: one removes shuffle at line 2, the "
        "other changes it.",
    }
    assert make_plan([CAPPED, WITHOUT], CALLS).left_out == ()


@pytest.mark.parametrize(
    ("safety", "options", "reason"),
    [
        (Safety.EXACT, {}, None),
        (Safety.RERANDOMIZED, {}, None),
        (Safety.RERANDOMIZED, {"is_seeded": True}, "--allow rerandomized"),
        (Safety.RERANDOMIZED, {"is_seeded": True, "allow": {Safety.RERANDOMIZED}}, None),
        (Safety.REORDERED, {}, "--allow reordered"),
        (Safety.REORDERED, {"allow": {Safety.REORDERED}}, None),
        (Safety.NUMERICS, {"allow": {Safety.REORDERED}}, "--allow numerics"),
        (Safety.CHANGES, {"allow": set(Safety)}, "never made automatically"),
    ],
)
def test_what_a_fix_does_to_the_data_must_be_allowed(safety, options, reason):
    plan = make_plan([finding("rule", InsertAfter("map", "cache"), safety=safety)], CALLS, **options)
    assert len(plan.findings) == (reason is None)
    if reason is None:
        assert plan.left_out == ()
    else:
        assert reason in reasons(plan)["rule"]


def test_only_names_rules_and_asks_for_what_is_not_done_unasked():
    asked = finding("asked", InsertAfter("map", "cache"), is_auto=False)
    assert reasons(make_plan([asked], CALLS))["asked"] == "Tried only if requested by name: --only asked."
    plan = make_plan([asked, PARALLEL], CALLS, only={"asked"})
    assert [finding.rule for finding in plan.findings] == ["asked"]
    assert reasons(plan)["serial-map"] == "Not requested: --only names asked."


def test_an_allowed_level_permits_no_assumption_and_nothing_undecided():
    made = finding("order", InsertAfter("map", "cache"), safety=Safety.REORDERED, is_auto=False)
    assumed = replace(made, fix=replace(made.fix, assumptions=("the table is not changed",)))
    assert make_plan([made], CALLS, {Safety.REORDERED}).findings == (made,)
    plan = make_plan([assumed], CALLS, set(Safety))
    assert reasons(plan)["order"] == "It assumes that the table is not changed; --only order tries it."
    assert make_plan([assumed], CALLS, {Safety.REORDERED}, only={"order"}).findings == (assumed,)
    assert not is_asked(made, ()) and not is_asked(made, {"serial-map"}) and is_asked(made, {"order"})


def test_unprovable_fixes_are_reported_but_not_applied():
    made = finding("told", InsertAfter("map", "cache"), is_auto=False)
    unprovable = replace(made, fix=replace(made.fix, is_provable=False))
    for options in ({}, {"only": {"told"}, "allow": set(Safety)}):
        plan = make_plan([unprovable], CALLS, **options)
        assert plan.findings == () and "make the change yourself" in reasons(plan)["told"]


def test_advice_and_library_calls_cannot_be_written():
    site = Site("train.py", 1, 1, 1, 9)
    calls = {
        "a": Call("a", "map", site, library="keras"),
        "b": Call("b", "prefetch", site, inputs=("a",), library="keras"),
        "c": Call("c", "from_generator", site),
        "d": Call("d", "flat_map", site, made_by="c"),
        "e": Call("e", "map", None),
    }

    def reason(edit):
        return reasons(make_plan([finding("rule", edit)], calls)).get("rule")

    assert "Advice only" in reasons(make_plan([finding("rule")], calls))["rule"]
    assert (
        reason(SetArgument("a", "num_parallel_calls", 4))
        == "map is called inside keras, which is not the script's own code."
    )
    assert reason(InsertAfter("a", "cache")) == "keras makes further calls after map in the same line of the script."
    assert reason(InsertAfter("b", "cache")) is None
    assert reason(InsertAfter("d", "cache")) == "flat_map is called inside from_generator, not by a line of the script."
    assert reason(InsertAfter("e", "cache")) == "The call of map is not in a file."
    assert reason(InsertAfter("f", "cache")) == "The call to change was not recorded."


def test_links_behind_one_call_come_in_the_order_that_makes_sense():
    fixes = make_plan([PREFETCH, OPTION, CACHE, PARALLEL], CALLS).fixes
    wanted = (
        "import tensorflow as tf\noptions = tf.data.Options()\noptions.deterministic = True\n"
        "ds = (\n    tf.data.Dataset.range(9)\n    .map(f, num_parallel_calls=tf.data.AUTOTUNE)\n    .cache()\n    .shuffle(3)\n"
        "    .prefetch(tf.data.AUTOTUNE)\n    .with_options(options)\n    .batch(2)\n)\n"
    )
    for order in itertools.permutations(fixes):
        assert rewritten(TEXT, combine(order, CALLS), CALLS) == wanted


def test_a_prefetch_follows_a_call_that_another_fix_moves():
    moving = Fix((MoveAfter("shuffle", "map"), MoveAfter("map", "batch")), Safety.EXACT, is_auto=True)
    buffered = Fix(
        (SetArgument("map", "num_parallel_calls", 2), InsertAfter("map", "prefetch")), Safety.EXACT, is_auto=True
    )
    for fixes in ((moving, buffered), (buffered, moving)):
        edits = combine(fixes)
        assert set(edits) == {*moving.edits, buffered.edits[0], InsertAfter("batch", "prefetch")}
        assert edits.index(InsertAfter("batch", "prefetch")) < edits.index(
            MoveAfter("map", "batch")
        )  # ends up behind it


def test_a_cache_follows_a_call_that_an_earlier_fix_moved():
    """It was proposed for the changed pipeline. Of two proposals for one pipeline, the cache means the present place."""
    moving = finding("vectorise", MoveAfter("map", "batch"), gain=3)
    cached = finding("cache", InsertAfter("map", "cache"), Remove("shuffle"), gain=2)
    buffered = finding("buffer", SetArgument("map", "num_parallel_calls", 2), *PREFETCH.fix.edits)
    for fixes in itertools.permutations((moving.fix, cached.fix, buffered.fix)):
        if fixes.index(cached.fix) < fixes.index(moving.fix):
            with pytest.raises(ValueError, match="one moves map at line 2"):
                combine(fixes, CALLS)
            continue
        text = rewritten(TEXT, combine(fixes, CALLS), CALLS)
        chain = ".batch(2).map(f, num_parallel_calls=2).cache().prefetch(tf.data.AUTOTUNE)"
        assert "".join(map(str.strip, text.splitlines())).endswith(f"range(9){chain})"), fixes
    assert [left.finding.rule for left in make_plan([moving, cached], CALLS).left_out] == ["cache"]


def test_combining_what_conflicts_is_a_mistake():
    with pytest.raises(ValueError, match="both set num_parallel_calls"):
        combine([PARALLEL.fix, CAPPED.fix], CALLS)


EDITS = st.one_of(
    st.builds(SetArgument, st.just("map"), st.just("num_parallel_calls"), st.sampled_from([2, 4])),
    st.builds(SetArgument, st.just("shuffle"), st.just("seed"), st.sampled_from([1, 2])),
    st.builds(
        InsertAfter,
        st.sampled_from(["range", "shuffle", "map", "batch"]),
        st.sampled_from(["cache", "prefetch", "repeat"]),
    ),
    st.builds(Remove, st.sampled_from(["shuffle", "batch"])),
    st.builds(MoveAfter, st.just("shuffle"), st.sampled_from(["map", "batch"])),
    st.builds(SetOption, st.sampled_from(["map", "batch"]), st.just("deterministic"), st.booleans()),
)


@settings(max_examples=examples(300))
@given(st.lists(st.lists(EDITS, min_size=1, max_size=1), min_size=1, max_size=6))
def test_whatever_is_planned_can_be_written_together(all_edits):
    findings = [finding(f"rule-{i}", *edits, gain=9 - i) for i, edits in enumerate(all_edits)]
    plan = make_plan(findings, CALLS)
    assert len(plan.findings) + len(plan.left_out) == len(findings)
    after = rewritten(TEXT, combine(plan.fixes, CALLS), CALLS)
    ast.parse(after)
    for fix in plan.fixes:
        for edit in fix.edits:
            if isinstance(edit, SetArgument):
                assert f"{edit.name}={edit.value}" in after
            elif isinstance(edit, InsertAfter):
                assert f".{edit.method}()" in after
            elif isinstance(edit, Remove):
                assert f".{edit.call_id}(" not in after
            elif isinstance(edit, MoveAfter):
                assert after.index(".shuffle(") > after.index(f".{edit.after_id}(")


def test_one_line_that_serves_several_datasets_is_told():
    site, other = Site("a/train.py", 3, 1, 3, 9), Site("a/train.py", 4, 1, 4, 9)
    calls = {
        "train": Call("train", "map", site),
        "batch": Call("batch", "batch", other, inputs=("train",)),
        "val": Call("val", "map", site),
        "inside": Call("inside", "map", site, library="keras"),
    }
    fix = Fix((SetArgument("train", "num_parallel_calls", AUTOTUNE),), Safety.EXACT, True)
    assert edited_ids(spread(fix.edits, calls)) == ("train", "val")
    assert sentence_of_sharing(fix, calls) == (
        "train.py:3 map creates 2 datasets; the change is compared on all of them, if they are created before the training "
        "starts."
    )
    alone = Fix((InsertAfter("batch", "cache"),), Safety.EXACT, True)
    assert spread(alone.edits, calls) == alone.edits
    assert sentence_of_sharing(alone, calls) is None


@pytest.mark.parametrize(
    ("recording", "expected"),
    [
        ({"is_seeded": False}, False),
        ({"is_seeded": True}, True),
        ({}, True),
        ({"is_seeded": False, "calls": (Call("a", "shuffle", None, arguments={"seed": 3}),)}, True),
        ({"is_seeded": False, "calls": (Call("a", "shuffle", None, arguments={"seed": None}),)}, False),
        ({"is_seeded": False, "calls": (Call("a", "shuffle", None, arguments={"seed": 3}, library="keras"),)}, False),
        (
            {
                "is_seeded": False,
                "calls": (Call("a", "map", None, function=FunctionFacts("f", None, True, is_seeded=True)),),
            },
            True,
        ),
    ],
)
def test_a_script_is_seeded_if_anything_in_it_is(recording, expected):
    host = Host("h", 2, 2, 1 << 30, 1 << 29)
    assert Recording("train.py", host, ScriptExit("finished"), **recording).is_reproducible is expected


@pytest.mark.parametrize(
    ("edits", "is_any_order"),
    [
        ((InsertAfter("a", "cache"), MoveAfter("b", "c")), True),
        ((SetArgument("a", "num_parallel_calls", 2), InsertAfter("a", "cache"), Vectorize("b")), True),
        ((InsertAfter("a", "cache"), InsertAfter("a", "prefetch")), False),  # the later one is closer to the call
        ((MoveAfter("a", "b"), MoveAfter("c", "a")), False),
        ((Remove("a"), MoveAfter("b", "a")), False),
    ],
)
def test_which_edits_make_the_same_dataset_in_every_order(edits: tuple[Edit, ...], is_any_order: bool) -> None:
    assert (comparison_key(edits) == comparison_key(edits[::-1])) == is_any_order
    assert comparison_key(edits) != comparison_key(edits[1:])
