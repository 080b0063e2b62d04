"""One text that makes several datasets: a cache in it must be legal in all of them."""

from __future__ import annotations

import dataclasses

from advisor.model.calls import Call, FunctionFacts, Site
from advisor.model.recording import Consumer, Recording, ScriptExit
from advisor.model.state import CapturedResource, ObservedState, StateChange
from advisor.predict import cache_assumptions, cache_obstacles, movable_shuffles
from advisor.testing import map_, pipeline, source

STATELESS = FunctionFacts("decode", None, False, stateful_ops=())
RANDOM = FunctionFacts("augment", None, True, random_ops=("RandomUniform",), stateful_ops=("RandomUniform",))
TABLE = CapturedResource("mutable table", "scores", "s1")
READS_TABLE = FunctionFacts("weigh", None, True, resources=(TABLE,), stateful_ops=("LookupTableFindV2",))
CHANGE = StateChange("changed", 1, "/home/me/train.py", 31)


def site(line: int) -> Site:
    return Site("/home/me/train.py", line, 1, line, 9)


def call(name: str, method: str, line: int, *inputs: str, function: FunctionFacts | None = None, **arguments) -> Call:
    return Call(name, method, site(line), inputs=inputs, function=function, arguments=arguments)


def analysed(*calls: Call, observed: tuple[ObservedState, ...] = ()):
    """`train` is read at line 40, `other` at line 50."""
    made = pipeline(source(), map_("decode", ms=1), consumer_ms=1).analysis
    consumers = (Consumer("a", "train", "for", site(40)), Consumer("b", "other", "for", site(50)))
    recording = Recording(
        "train.py", made.host, ScriptExit("stopped"), calls=calls, consumers=consumers, state=observed
    )
    return dataclasses.replace(made, calls=calls, recording=recording)


def helper(first: Call, *others: Call, function: FunctionFacts = STATELESS):
    """A helper whose `map` at line 5 is called for `a` and `b`."""
    train = call("train", "map", 5, "a", function=function)
    other = call("other", "map", 5, others[-1].id if others else "b", function=function)
    return first, *others, train, other


def reasons(made) -> list[str]:
    return [
        obstacle.reason for obstacle in cache_obstacles(made, next(call for call in made.calls if call.id == "train"))
    ]


def test_what_forbids_a_cache_in_another_dataset_of_the_text_names_it():
    made = analysed(*helper(call("a", "range", 1), call("b", "from_generator", 2)))
    assert reasons(made) == [
        "runs a Python generator, which may yield different elements in every epoch; "
        "the same text makes the dataset that train.py:50 reads"
    ]


def test_state_that_changes_for_another_dataset_of_the_text_counts():
    observed = ObservedState("s1", "mutable table", "scores", ("b",), epochs=2, change=CHANGE)
    chain = helper(call("a", "range", 1), call("r", "range", 2), call("b", "map", 3, "r", function=READS_TABLE))
    made = analysed(*chain, observed=(observed,))
    assert reasons(made) == [
        "reads the mutable table `scores`, which changed after epoch 1 had begun (train.py:31); "
        "the same text makes the dataset that train.py:50 reads"
    ]


def test_files_that_only_another_dataset_reads_count():
    observed = ObservedState("f", "file", "/data/val.txt", ("b",), epochs=1, change=CHANGE)
    made = analysed(*helper(call("a", "range", 1), call("b", "TextLineDataset", 2)), observed=(observed,))
    (reason,) = reasons(made)
    assert "val.txt" in reason and "train.py:50" in reason


def test_what_another_dataset_assumes_is_assumed_and_names_it():
    observed = ObservedState("s1", "mutable table", "scores", ("b",), epochs=2)
    chain = helper(call("a", "range", 1), call("r", "range", 2), call("b", "map", 3, "r", function=READS_TABLE))
    made = analysed(*chain, observed=(observed,))
    assert reasons(made) == []
    assert cache_assumptions(made, chain[-2]) == (
        "the mutable table `scores` is not changed while training runs (it was the same at the beginning of 2 epochs), on which "
        "the dataset that train.py:50 reads depends",
    )
    assert cache_assumptions(made, chain[0]) == ()


def test_text_that_is_not_shared_is_judged_alone():
    made = analysed(
        call("a", "range", 1),
        call("b", "from_generator", 2),
        call("train", "map", 5, "a", function=STATELESS),
        call("other", "map", 6, "b", function=STATELESS),
    )
    assert reasons(made) == []


def test_a_dataset_that_is_never_read_is_named_by_its_last_call():
    chain = (*helper(call("a", "range", 1), call("b", "from_generator", 2)), call("last", "batch", 9, "other"))
    made = analysed(*chain)
    recording = dataclasses.replace(made.recording, consumers=made.recording.consumers[:1])
    (reason,) = reasons(dataclasses.replace(made, recording=recording))
    assert reason.endswith("the same text makes another dataset, which ends with batch at train.py:9")


def test_the_same_function_of_the_text_is_a_reason_once():
    made = analysed(*helper(call("a", "range", 1), call("b", "range", 2), function=RANDOM))
    assert reasons(made) == ["draws random numbers"]


def shuffled(*between: Call):
    """The helper shuffles at line 4 and maps at line 5; `between`: calls of the other dataset alone."""
    last = between[-1].id if between else "s2"
    return (
        call("a", "range", 1),
        call("b", "range", 2),
        call("s1", "shuffle", 4, "a"),
        call("s2", "shuffle", 4, "b"),
        *between,
        call("train", "map", 5, "s1", function=STATELESS),
        call("other", "map", 5, last, function=STATELESS),
    )


def movable(*calls: Call) -> list[str]:
    return [
        shuffle.id for shuffle in movable_shuffles(analysed(*calls), next(call for call in calls if call.id == "train"))
    ]


def test_a_shuffle_moves_only_if_it_can_in_all_datasets_of_the_text():
    assert movable(*shuffled()) == ["s1"]
    assert movable(*shuffled(call("x", "batch", 7, "s2", batch_size=2))) == []
    assert movable(*shuffled(call("x", "shuffle", 7, "s2"))) == []


def test_checking_only_some_of_many_datasets_of_one_text_is_an_assumption():
    sources = [call(f"s{number}", "range", 2) for number in range(150)]
    maps = [call(f"m{number}", "map", 5, f"s{number}", function=STATELESS) for number in range(150)]
    made = analysed(*sources, *maps)
    assert cache_assumptions(made, maps[0]) == ("all 150 datasets that this text makes read the same kind of state",)
    assert cache_obstacles(made, maps[0]) == ()
