"""The calls that a patched text makes against those that were proved: equal where the text is right, named where it is wrong."""

from __future__ import annotations

from dataclasses import replace

import pytest

from advisor.model.call_graph import CallGraph, CallIdentity
from advisor.model.edits import Code, InsertAfter, MoveAfter, Remove, SetArgument, SetFunction, SetOption, Vectorize
from advisor.prove.texts.graph_difference import difference, unstable_fields
from advisor.replay.edited import CannotReplay
from advisor.replay.edited_graph import edited_graph

AUTOTUNE = Code("tf.data.AUTOTUNE")


def call(name, method, *inputs, given=None, line=None, **kwargs):
    given = given or {}
    defaults = {"map": {"num_parallel_calls": "None"}, "shuffle": {"seed": "None"}}.get(method, {})
    return CallIdentity(name, method, inputs, {**defaults, **given}, tuple(given), line=line, **kwargs)


def graph(*calls, consumer=None):
    return CallGraph(calls, consumer or calls[-1].id)


SCRIPT = graph(
    call("c1", "range"),
    call("c2", "map", "c1", given={"map_func": "<function parse 1>"}, traced="t", input_spec="s"),
    call("c3", "shuffle", "c2", given={"buffer_size": "8"}),
    call("c4", "batch", "c3", given={"batch_size": "4"}),
)


def patched(**changes):
    """The calls of the patched script: numbered otherwise, with these changed."""
    edits = (SetArgument("c2", "num_parallel_calls", AUTOTUNE), InsertAfter("c4", "prefetch", (("", AUTOTUNE),)))
    calls = [
        call("p1", "range"),
        call("p2", "map", "p1", given={"map_func": "<function parse 1>", "num_parallel_calls": "-1"}, traced="t",
             input_spec="s", line=7),
        call("p3", "shuffle", "p2", given={"buffer_size": "8"}),
        call("p4", "batch", "p3", given={"batch_size": "4"}),
        call("p5", "prefetch", "p4", given={"buffer_size": "-1"}),
    ]  # fmt: skip
    calls = [replace(call, **changes.get(call.id, {})) for call in calls]
    return edited_graph(SCRIPT, edits), graph(*calls)


def test_the_patched_text_that_makes_the_proved_calls_is_right():
    assert difference(*patched()) is None


def test_each_kind_of_difference_is_named():
    assert "num_parallel_calls=4" in difference(
        *patched(p2={"arguments": {"map_func": "<function parse 1>", "num_parallel_calls": "4"}})
    )
    other = difference(*patched(p2={"arguments": {"map_func": "<function other 2>", "num_parallel_calls": "-1"}}))
    assert other == "The function passed to map at line 7 as map_func differs from the one that was proved."
    assert "skip is called instead of shuffle" in difference(*patched(p3={"method": "skip"}))
    assert "computes something different" in difference(*patched(p2={"traced": "u"}))
    assert difference(*patched(p5={"arguments": {"buffer_size": "3"}})) is not None
    assert difference(*patched(p5={"inputs": ("p3",)})) is not None


def test_functions_are_traced_anew_for_other_elements_and_then_not_compared():
    assert difference(*patched(p2={"traced": "u", "input_spec": "other"})) is None


def test_moved_and_removed_calls_are_expected_where_the_replay_puts_them():
    expected = edited_graph(SCRIPT, (MoveAfter("c2", "c3"), Remove("c4")))
    right = graph(
        call("p1", "range"),
        call("p3", "shuffle", "p1", given={"buffer_size": "8"}),
        call("p2", "map", "p3", given={"map_func": "<function parse 1>"}, traced="t", input_spec="s"),
    )
    assert difference(expected, right) is None
    assert difference(expected, SCRIPT) is not None


def test_a_wrapped_function_is_identified_by_its_graph_alone():
    edits = (MoveAfter("c2", "c4"), Vectorize("c2"))
    script = replace(SCRIPT, wrapped={"c2": ("w", "batches")})

    def text(**changes):
        new = call("p2", "map", "p4", given={"map_func": "<function <lambda> 7>"}, traced="w", input_spec="batches")
        return graph(
            call("p1", "range"),
            call("p3", "shuffle", "p1", given={"buffer_size": "8"}),
            call("p4", "batch", "p3", given={"batch_size": "4"}),
            replace(new, **changes),
        )

    expected = edited_graph(script, edits)
    assert difference(expected, text()) is None
    assert "changed function of map differs" in (difference(expected, text(traced="t")) or "")
    assert "changed function of map differs" in (difference(expected, text(traced="")) or "")
    assert "changed function of map differs" in (difference(expected, text(input_spec="s")) or "")
    assert difference(expected, text(arguments={"map_func": "", "num_parallel_calls": "8"})) is not None
    with pytest.raises(CannotReplay, match="the graph of its changed function is unknown"):
        edited_graph(SCRIPT, edits)


def test_a_call_that_leaves_a_function_is_identified_by_its_graph_where_that_is_known():
    inner = (call("i1", "TFRecordDataset", outer="c1"), call("i2", "map", "i1", outer="c1",
             given={"map_func": "<function <lambda> 1>"}, traced="t", input_spec="s"))  # fmt: skip
    script = graph(*inner, call("c1", "interleave", given={"map_func": "<function <lambda> 2>"}))
    edits = (MoveAfter("i2", "c1"),)

    def text(traced):
        moved = call("p2", "map", "c1", given={"map_func": "<function <lambda> 3>"}, traced=traced, input_spec="s")
        return graph(inner[0], script.calls[2], moved)

    known = edited_graph(replace(script, wrapped={"i2": ("t", "s")}), edits)
    assert difference(known, text("t")) is None
    assert "changed function of map differs" in difference(known, text("u"))
    assert "differs from the one that was proved" in difference(edited_graph(script, edits), text("t"))


def test_the_datasets_of_a_new_function_are_part_of_its_graph():
    inner = call("i1", "batch", outer="c2")
    script = graph(
        call("c1", "range"), inner, call("c2", "flat_map", "c1", given={"map_func": "<function <lambda> 1>"})
    )
    edits = (SetFunction("c2", "lambda rows: tf.data.Dataset.from_tensor_slices(rows)"),)
    expected = edited_graph(replace(script, wrapped={"c2": ("w", "s")}), edits)

    def text(traced):
        new = call("n2", "flat_map", "c1", given={"map_func": "<function <lambda> 2>"}, traced=traced, input_spec="s")
        return graph(call("c1", "range"), call("n1", "from_tensor_slices", outer="n2"), new)

    assert difference(expected, text("w")) is None
    assert "changed function of flat_map differs" in difference(expected, text("v"))
    with pytest.raises(CannotReplay, match="the graph of its changed function is unknown"):
        edited_graph(script, edits)


def test_another_dataset_of_the_script_counts_too():
    val = (call("v1", "range"), call("v2", "batch", "v1", given={"batch_size": "2"}))
    script = graph(*SCRIPT.calls, *val, consumer="c4")
    expected = edited_graph(script, (Remove("c3"),))
    right = graph(call("p1", "range"), replace(SCRIPT.calls[1], id="p2", inputs=("p1",)),
                  call("p4", "batch", "p2", given={"batch_size": "4"}), *val, consumer="p4")  # fmt: skip
    assert difference(expected, right) is None
    wrong = graph(*right.calls[:-1], call("v2", "batch", "v1", given={"batch_size": "3"}), consumer="p4")
    assert "batch_size=3" in difference(expected, wrong)


def test_options_count_wherever_they_are_set():
    expected = edited_graph(SCRIPT, (SetOption("c2", "deterministic", False),))
    options = call("p5", "with_options", "c4", options={"deterministic": "False"})
    assert difference(expected, graph(*SCRIPT.calls, options)) is None
    assert "deterministic = True" in difference(
        expected, graph(*SCRIPT.calls, replace(options, options={"deterministic": "True"}))
    )
    assert difference(expected, SCRIPT) is not None


def test_calls_inside_functions_are_compared():
    inner = (call("i1", "TFRecordDataset", outer="c1"), call("i2", "map", "i1", outer="c1"))
    script = graph(*inner, call("c1", "interleave"), call("c2", "batch", "c1"))
    expected = edited_graph(script, (SetArgument("i2", "num_parallel_calls", 4),))
    right = graph(inner[0], replace(inner[1], arguments={"num_parallel_calls": "4"}), *script.calls[2:])
    assert difference(expected, right) is None
    assert "num_parallel_calls" in difference(expected, script)


def test_differences_between_two_runs_of_one_text_are_not_attributed_to_the_patch():
    def with_seed(seed):
        return graph(SCRIPT.calls[0], SCRIPT.calls[1],
                     call("c3", "shuffle", "c2", given={"buffer_size": "8", "seed": seed}), SCRIPT.calls[3])  # fmt: skip

    unstable = unstable_fields(with_seed("1"), with_seed("2"))
    assert unstable == {("c3", "seed")}
    assert difference(with_seed("1"), with_seed("3")) is not None
    assert difference(with_seed("1"), with_seed("3"), unstable) is None
    assert unstable_fields(SCRIPT, graph(*SCRIPT.calls[:-1])) is None


def test_an_insertion_has_the_defaults_of_what_it_does_not_set():
    expected = edited_graph(SCRIPT, (InsertAfter("c4", "cache"),))
    assert difference(expected, graph(*SCRIPT.calls, CallIdentity("n", "cache", ("c4",), {"filename": "''"}))) is None
    elsewhere = CallIdentity("n", "cache", ("c4",), {"filename": "'/tmp/x'"}, ("filename",))
    assert "filename='/tmp/x'" in difference(expected, graph(*SCRIPT.calls, elsewhere))


def test_code_that_the_patch_changes_is_expected_to_change():
    expected, actual = patched(p2={"arguments": {"map_func": "<function parse 2>", "num_parallel_calls": "-1"}})
    assert difference(expected, actual) is not None
    assert difference(expected, actual, changed_code={"1>": "2>"}) is None
    assert difference(expected, actual, changed_code={"1>": "3>"}) is not None


READING = "<function read 1 [scale=2; parse=<function parse 9 [a=1; b=2]>; tf=<module>]>"
NESTED = graph(
    call("c1", "range"),
    call("c2", "TFRecordDataset", given={"filenames": "<string ()>"}, outer="c4"),
    call("c3", "map", "c2", given={"map_func": "<function parse 9>"}, traced="t", input_spec="s", outer="c4"),
    call("c4", "interleave", "c1", given={"map_func": READING}, traced="u", input_spec="v"),
    call("c5", "batch", "c4", given={"batch_size": "4"}),
)


def moved_out(read: str, **outer: str):
    """What is expected of a map moved behind the batch, and the calls of a patched script with this function."""
    actual = graph(
        call("p1", "range"),
        call("p2", "TFRecordDataset", given={"filenames": "<string ()>"}, outer="p4"),
        call("p4", "interleave", "p1", given={"map_func": read}, traced="w", input_spec="v"),
        call("p5", "batch", "p4", given={"batch_size": "4"}),
        call("p3", "map", "p5", given={"map_func": "<function parse 9>"}, traced="t", input_spec="s", **outer),
    )
    return edited_graph(NESTED, (MoveAfter("c3", "c5"),)), actual


def test_a_function_out_of_which_a_call_is_moved_has_the_changed_code_and_reads_nothing_else():
    code = {"1": "5"}
    assert difference(*moved_out("<function read 5 [scale=2; tf=<module>]>"), changed_code=code) is None
    assert difference(*moved_out("<function read 5>"), changed_code=code) is None
    for other in ("<function read 5 [scale=3; tf=<module>]>", "<function read 6 [scale=2]>", "<function other 5>"):
        assert difference(*moved_out(other), changed_code=code) is not None
    assert difference(*moved_out("<function read 5 [scale=2]>", outer="p4"), changed_code=code) is not None
    unmoved = edited_graph(NESTED, ())
    assert difference(unmoved, moved_out("<function read 5>")[1], changed_code=code) is not None
