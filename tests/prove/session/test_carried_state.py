"""What the analysed run saw of changing state, in the recordings of edited pipelines."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from advisor.model.calls import Call, FunctionFacts, Site
from advisor.model.codec import decode, encode
from advisor.model.pipeline import Analysis
from advisor.model.recording import Loop, Recording, ScriptExit
from advisor.model.state import ObservedState, StateChange
from advisor.predict import cache_obstacles, is_read_again, vectorizing_fix
from advisor.prove.session.carried_state import with_state_of
from advisor.testing import batch, map_, pipeline, source

MADE = pipeline(source(), map_("decode", ms=1), consumer_ms=1).analysis
CHANGED = ObservedState(
    "f", "file", "/data/val.txt", ("c5",), epochs=1, change=StateChange("changed", 1, "train.py", 31)
)


def call(number: int, method: str, line: int, *inputs: str) -> Call:
    return Call(f"c{number}", method, Site("train.py", line, 1, line, 9), inputs=inputs)


TRAINING = (call(1, "range", 1), call(2, "shuffle", 4, "c1"), call(3, "batch", 5, "c2"))
LATER = (call(5, "TextLineDataset", 9), call(6, "shuffle", 4, "c5"), call(7, "batch", 5, "c6"))


def carried(folder: Path, first: tuple[Call, ...], now: tuple[Call, ...]) -> Recording:
    assert MADE.host is not None
    seen = Recording("train.py", MADE.host, ScriptExit("stopped"), calls=first, state=(CHANGED,))
    (folder / "recording.json").write_bytes(encode(replace(seen, calls=now, state=None)))
    assert with_state_of(replace(MADE, calls=first, recording=seen), folder) == folder
    return decode((folder / "recording.json").read_bytes(), Recording, "recording.json")


def of(recording: Recording) -> Analysis:
    return replace(MADE, calls=recording.calls, recording=recording)


def test_datasets_that_the_script_makes_after_its_first_element_are_judged_too(tmp_path: Path) -> None:
    """The edited pipeline was recorded while the script was held: the second call of the helper was still to come."""
    edited = (*TRAINING[:2], call(900, "prefetch", 4, "c2"), TRAINING[2])
    recording = carried(tmp_path, (*TRAINING, *LATER), edited)
    assert [call.id for call in recording.calls] == ["c1", "c2", "c900", "c3", "c5", "c6", "c7"]
    made = of(recording)
    reasons = [obstacle.reason for obstacle in cache_obstacles(made, recording.calls[3])]
    assert any("val.txt" in reason for reason in reasons)


def test_a_call_that_an_edit_took_out_does_not_come_back(tmp_path: Path) -> None:
    recording = carried(tmp_path, (*TRAINING, *LATER), (TRAINING[0], replace(TRAINING[2], inputs=("c1",))))
    assert [call.id for call in recording.calls] == ["c1", "c3", "c5", "c6", "c7"]
    assert recording.state == (CHANGED,)


def test_nothing_is_carried_over_where_the_runs_number_their_calls_differently(tmp_path: Path) -> None:
    other = (call(1, "from_generator", 8), TRAINING[1], TRAINING[2])
    recording = carried(tmp_path, TRAINING, other)
    assert recording.state is None and recording.calls == other


@pytest.mark.parametrize(
    ("loops", "is_cached"), [((Loop(1, "train.py", 7, 9),), False), ((Loop(4, "train.py", 7, 9),), True)]
)
def test_a_cache_is_of_no_use_to_a_training_of_one_pass(
    tmp_path: Path, loops: tuple[Loop, ...], is_cached: bool
) -> None:
    """The first run shows how often the training reads its data; the edited pipeline is read again and again."""
    once, again = (
        pipeline(source(), map_("decode", ms=5), batch(32), consumer_ms=5, epochs=epochs).analysis for epochs in (1, 3)
    )
    assert once.main is not None and once.main.consumer is not None and once.host is not None
    seen = Recording("train.py", once.host, ScriptExit("stopped"), calls=once.calls)
    reader = replace(once.main.consumer, loops=loops)
    first = replace(
        once,
        recording=replace(seen, consumers=(reader,)),
        pipelines=(replace(once.main, consumer=reader), *once.pipelines[1:]),
    )
    (tmp_path / "recording.json").write_bytes(encode(replace(seen, is_pipeline_alone=True)))
    alone = decode((with_state_of(first, tmp_path) / "recording.json").read_bytes(), Recording, "recording.json")
    edited = replace(again, recording=alone)
    assert edited.main is not None
    assert is_read_again(edited, edited.main) is is_cached


ROWS = "TensorSpec(shape=(None, 8), dtype=tf.float32, name=None)"
ITSELF = FunctionFacts("lambda", None, False, ops={"BatchDatasetV2": 1})
MEAN = FunctionFacts("center", None, False, ops={"Mean": 1, "Sub": 1}, stateful_ops=())


@pytest.mark.parametrize("drops", [True, False])
def test_windows_that_an_edit_cut_out_of_a_tensor_still_have_equal_lengths(tmp_path: Path, drops: bool) -> None:
    """The spec says None before and after; only the calls of the unedited pipeline tell that all have 20 rows."""
    slices = replace(call(3, "flat_map", 3, "c2"), function=ITSELF, element_spec=ROWS)
    mapped = replace(call(4, "map", 4, "c3"), function=MEAN, element_spec=ROWS)
    first = (
        call(1, "from_tensor_slices", 1),
        replace(call(2, "window", 2, "c1"), arguments={"size": 20, "shift": 1, "drop_remainder": drops}),
        slices,
        Call("in", "batch", None, nested_in="c3", arguments={"batch_size": 20}),
        mapped,
        call(5, "batch", 5, "c4"),
    )
    edited = (first[0], call(900, "batch", 1, "c1"), replace(slices, inputs=("c900",)), *first[4:])
    recording = carried(tmp_path, first, edited)
    now = of(recording)
    fix = vectorizing_fix(now, recording.calls[3], recording.calls[4])
    assert (fix is not None) is drops
