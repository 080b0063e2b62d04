"""Passes of `fit` over finite data: when the script gets `repeat` and `steps_per_epoch`, and with which number."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from advisor.model.edits import SetArgument
from advisor.model.finding import Safety
from advisor.model.offload_result import FIT, Movability
from advisor.offload.legality import judge
from advisor.offload.repairs import edits_before
from advisor.testing import batch, cache, map_, prefetch, shuffle, source, take
from advisor.testing.simulated_script import Stage
from tests.offload.changed_script import DISTRIBUTE, changed, fit_script, loop_script, whole_batches

STAGES = (source("Range", 100), map_("decode", ms=5), batch(8), prefetch())
UNKNOWN = (source("Range", -2), *STAGES[1:])


def is_written(movability: Movability) -> bool:
    return FIT in [repair.kind for repair in movability.repairs]


def why_not(movability: Movability) -> str:
    (repair,) = [repair for repair in movability.repairs if "steps_per_epoch" in repair.code]
    assert not repair.is_written
    return repair.text


def test_fit_gets_endless_data_and_the_number_of_steps(tmp_path: Path) -> None:
    analysis = fit_script(tmp_path, *STAGES)
    movability, text = changed(tmp_path, analysis)
    assert is_written(movability) and movability.safety is Safety.NUMERICS
    steps = analysis.calls[-1].cardinality
    assert f"model.fit(ds, epochs=3, steps_per_epoch={steps})\n" in text
    assert text.index(".repeat()") < text.index("batch(8)") < text.index(DISTRIBUTE)
    assert any("instead of a pass" in condition for condition in movability.conditions)
    assert not any("incomplete batch" in condition for condition in movability.conditions)
    assert any(condition.startswith("passes overlap") for condition in movability.conditions)


def test_the_number_is_that_of_the_finished_epochs_if_the_length_is_unknown(tmp_path: Path) -> None:
    movability, text = changed(tmp_path, fit_script(tmp_path, *UNKNOWN, finished_epochs=2, finished_steps=26))
    assert is_written(movability) and "steps_per_epoch=13" in text


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({}, "no epoch ended in the recording"),
        ({"finished_epochs": 2, "finished_steps": 27}, "no epoch ended"),
        ({"finished_epochs": 2, "finished_steps": 26, "steps_per_execution": 4}, "no epoch ended"),
    ],
)
def test_an_unknown_number_of_steps_is_not_guessed(facts: dict[str, Any], reason: str, tmp_path: Path) -> None:
    movability, text = changed(tmp_path, fit_script(tmp_path, *UNKNOWN, **facts))
    assert reason in why_not(movability) and DISTRIBUTE in text and "repeat" not in text
    assert movability.safety is Safety.REORDERED


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({"fits": 2}, "called more than once"),
        ({"epochs": "some"}, "number of epochs is unknown"),
    ],
)
def test_what_was_recorded_has_to_be_plain(facts: dict[str, Any], reason: str, tmp_path: Path) -> None:
    assert reason in why_not(judge(fit_script(tmp_path, *STAGES, **facts)))


@pytest.mark.parametrize("facts", [{"epochs": 1}, {"epochs": None}, {"steps_per_epoch": 5}])
def test_nothing_is_said_of_one_pass_or_of_steps_that_are_given(facts: dict[str, Any], tmp_path: Path) -> None:
    movability = judge(fit_script(tmp_path, *STAGES, **facts))
    assert not any("steps_per_epoch" in repair.text + repair.code for repair in movability.repairs)


@pytest.mark.parametrize(
    ("lines", "call", "reason"),
    [
        ("model.evaluate(ds)\n", "model.fit(ds, epochs=3)", "also uses the dataset that fit reads"),
        ("", "model.fit(ds, epochs=3, **more)", "* or **"),
        ("", "model.fit(ds, epochs=3, validation_data=ds)", "also uses"),
    ],
)
def test_the_text_has_to_be_plain_too(lines: str, call: str, reason: str, tmp_path: Path) -> None:
    """What follows the training is in no recording; `distribute` is written all the same."""
    movability, text = changed(tmp_path, fit_script(tmp_path, *STAGES, call=call, lines=lines))
    assert (
        reason in why_not(movability) and DISTRIBUTE in text and "repeat" not in text and "steps_per_epoch" not in text
    )


def test_a_library_that_calls_fit_is_left_alone(tmp_path: Path) -> None:
    analysis = fit_script(tmp_path, *STAGES, call="tuner.search(ds, epochs=3)", method="search")
    movability, text = changed(tmp_path, analysis)
    assert "does not show that tuner.search calls fit" in why_not(movability) and DISTRIBUTE in text


def test_data_that_other_code_was_recorded_reading_stay_finite(tmp_path: Path) -> None:
    analysis = fit_script(tmp_path, *STAGES)
    assert analysis.recording is not None
    (reader,) = analysis.recording.consumers
    other = dataclasses.replace(reader, id="other", kind="for")
    recording = dataclasses.replace(analysis.recording, consumers=(reader, other))
    assert "read the same data" in why_not(judge(dataclasses.replace(analysis, recording=recording)))


def test_a_text_that_makes_validation_data_too_stays(tmp_path: Path) -> None:
    analysis = fit_script(tmp_path, *STAGES)
    others = tuple(
        dataclasses.replace(call, id=f"{call.id}_val", inputs=tuple(f"{i}_val" for i in call.inputs))
        for call in analysis.calls
    )
    movability = judge(dataclasses.replace(analysis, calls=(*analysis.calls, *others)))
    assert "the same text makes other datasets" in why_not(movability)


def test_a_take_behind_the_workers_ends_each_pass(tmp_path: Path) -> None:
    stages = (source("Range", 100), map_("decode", ms=5), batch(8), take(5), prefetch())
    assert "take after the workers" in why_not(judge(fit_script(tmp_path, *stages)))


def test_a_take_that_moves_behind_the_workers_ends_each_pass_too(tmp_path: Path) -> None:
    stages = (source("Range", 100), map_("decode", ms=5), take(80), batch(8), prefetch())
    movability, text = changed(tmp_path, fit_script(tmp_path, *stages))
    assert "ends each pass there" in why_not(movability) and "repeat" not in text and "take(10)" in text


def test_data_are_not_repeated_before_a_cache(tmp_path: Path) -> None:
    """A cache of endless data is never complete."""
    stages = (source("Range", 100), map_("decode", ms=5), batch(8), cache(), prefetch())
    movability, text = changed(tmp_path, fit_script(tmp_path, *stages))
    assert is_written(movability) and text.index("cache()") < text.index("repeat()") < text.index(DISTRIBUTE)
    assert any("incomplete batch" in condition for condition in movability.conditions)
    stages = (source("Range", 100), map_("decode", ms=5), cache(), shuffle(9), batch(8), prefetch())
    _, text = changed(tmp_path, fit_script(tmp_path, *stages))
    assert text.index("shuffle") < text.index("repeat()") < text.index("batch(8)")


def test_workers_make_the_whole_batches_of_whole_passes(tmp_path: Path) -> None:
    """`drop_remainder` drops nothing of 96 rows in batches of 8, and nothing of endless data on any worker."""
    stages = (source("Range", 96), map_("decode", ms=5), whole_batches(8), prefetch())
    movability, text = changed(tmp_path, fit_script(tmp_path, *stages))
    assert is_written(movability) and movability.after_method == "batch" and "steps_per_epoch=12" in text
    assert text.index("repeat()") < text.index("batch(8") < text.index(DISTRIBUTE)
    (edit,) = edits_before(movability)
    assert isinstance(edit, SetArgument) and (edit.name, edit.value) == ("drop_remainder", False)


def test_rows_that_each_pass_drops_stay_dropped(tmp_path: Path) -> None:
    stages = (source("Range", 100), map_("decode", ms=5), whole_batches(8), prefetch())
    movability, text = changed(tmp_path, fit_script(tmp_path, *stages))
    assert not is_written(movability) and movability.after_method == "map" and "repeat" not in text


@pytest.mark.parametrize("stages", [(batch(8), take(5)), (take(80), batch(8))], ids=["stays behind", "moves behind"])
def test_a_loop_over_repeated_data_has_no_take_behind_the_workers(stages: tuple[Stage, ...], tmp_path: Path) -> None:
    """Behind `repeat`, it would end the stream after one pass."""
    analysis = loop_script(tmp_path, source("Range", 100), map_("decode", ms=5), *stages, iterators=3)
    (repair,) = [repair for repair in judge(analysis).repairs if "iter(dataset)" in repair.code]
    assert "without the `take` after it" in repair.code
    plain = loop_script(tmp_path, source("Range", 100), map_("decode", ms=5), batch(8), iterators=3)
    (repair,) = [repair for repair in judge(plain).repairs if "iter(dataset)" in repair.code]
    assert "take" not in repair.code
