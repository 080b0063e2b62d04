"""`repeat` before `distribute`, and batches that are sent as one element: when they are written, and into what."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from advisor.model.edits import InsertAfter, SetArgument
from advisor.model.offload_result import BATCH, MOVABLE, OFF, REPEAT, Movability
from advisor.offload.legality import judge
from advisor.offload.repairs import edits_before, has_fixed_shapes
from advisor.offload.sizing import speedup_at
from advisor.testing import batch, cache, map_, prefetch, repeat, shuffle, source, take
from advisor.testing.simulated_script import Stage
from tests.offload.changed_script import ADDRESS, DISTRIBUTE, VECTOR, changed, loop_script, whole_batches

DECODE, PYTHON = map_("decode", ms=5, spec=VECTOR), map_("show", ms=0.1, python=True, spec=VECTOR)
OVERLAP = "passes overlap"


def kinds(movability: Movability) -> list[str]:
    """Kinds of the repairs that are written."""
    return [repair.kind for repair in movability.repairs if repair.kind and repair.is_written]


def overlaps(movability: Movability) -> bool:
    return any(condition.startswith(OVERLAP) for condition in movability.conditions)


def by_hand(movability: Movability, start: str) -> str:
    """The text of a repair that is left to the user."""
    (repair,) = [repair for repair in movability.repairs if repair.text.startswith(start)]
    assert not repair.is_written and repair.code
    return repair.text


def test_repeat_moves_before_whole_batches_of_whole_passes(tmp_path: Path) -> None:
    """`drop_remainder` of endless data drops nothing on any worker, so that the batch may move."""
    analysis = loop_script(tmp_path, source("Range", 96), DECODE, whole_batches(8), repeat(), prefetch())
    movability, text = changed(tmp_path, analysis)
    assert (movability.verdict, movability.after_method) == (MOVABLE, "batch")
    assert kinds(movability) == [REPEAT] and overlaps(movability)
    assert text.index("decode)") < text.index(".repeat()") < text.index("batch(8") < text.index(DISTRIBUTE)
    assert text.count("repeat") == 1


def test_what_is_compared_is_one_pass_with_its_last_batch(tmp_path: Path) -> None:
    analysis = loop_script(tmp_path, source("Range", 96), DECODE, whole_batches(8), repeat(), prefetch())
    edits = edits_before(judge(analysis))
    assert [type(edit) for edit in edits] == [SetArgument]
    assert (edits[0].name, edits[0].value) == ("drop_remainder", False)


@pytest.mark.parametrize("elements", [100, -2])
def test_rows_that_each_pass_drops_keep_the_batch_in_the_training(elements: int, tmp_path: Path) -> None:
    """100 rows in batches of 8 drop 4 in each pass; behind the move, they would come."""
    analysis = loop_script(tmp_path, source("Range", elements), DECODE, whole_batches(8), repeat(), prefetch())
    movability, text = changed(tmp_path, analysis)
    assert movability.after_method == "map" and kinds(movability) == [BATCH] and not overlaps(movability)
    assert "does not do the same with repeated data" in by_hand(movability, "`repeat` (line 6) asks")
    assert f"decode).batch(8){DISTRIBUTE}.unbatch()\n" in text and text.index(DISTRIBUTE) < text.index("drop_remainder")


@pytest.mark.parametrize("count", [None, 3])
def test_repeat_moves_before_distribute_past_what_stays(count: int | None, tmp_path: Path) -> None:
    analysis = loop_script(tmp_path, source("Range", 96), DECODE, PYTHON, batch(8), repeat(count), prefetch())
    movability, text = changed(tmp_path, analysis)
    assert movability.after_method == "map" and kinds(movability) == [BATCH, REPEAT] and overlaps(movability)
    repeated = f".repeat({count or ''})"
    assert (
        f"ds = ds.map(decode){repeated}.batch(8){DISTRIBUTE}.unbatch()\nds = ds.map(show)\nds = ds.batch(8)\n" in text
    )
    assert text.count("repeat") == 1


def test_the_rows_of_one_pass_travel_in_batches_when_they_are_compared(tmp_path: Path) -> None:
    analysis = loop_script(tmp_path, source("Range", 96), DECODE, PYTHON, batch(8), repeat(), prefetch())
    (edit,) = edits_before(judge(analysis))
    assert isinstance(edit, InsertAfter) and edit.method == "batch"


def test_elements_that_are_sent_together_count_as_one(tmp_path: Path) -> None:
    """100 batches/s through the service are 100 steps/s, not 100/8."""
    analysis = loop_script(tmp_path, source("Range", 96), DECODE, PYTHON, batch(8), prefetch())
    movability = judge(analysis)
    assert movability.sent_together == 8
    alone = dataclasses.replace(movability, repairs=())
    one, eight = speedup_at(analysis, alone, 8 * 100.0), speedup_at(analysis, movability, 100.0)
    assert one is not None and eight == pytest.approx(one)


@pytest.mark.parametrize(
    ("between", "reason"),
    [
        ((PYTHON, take(64)), "take (line 6) does not do the same"),
        ((PYTHON, cache()), "cache (line 6) does not do the same"),
    ],
)
def test_repeat_stays_behind_what_is_another_for_a_stream(
    between: tuple[Stage, ...], reason: str, tmp_path: Path
) -> None:
    """`take(64).repeat()` reads the same 64 in every pass, and a cache of endless data is never complete."""
    analysis = loop_script(tmp_path, source("Range", 96), DECODE, *between, repeat(), batch(8))
    movability, text = changed(tmp_path, analysis)
    assert REPEAT not in kinds(movability)
    assert reason in by_hand(movability, "`repeat` (line 7) asks")
    assert text.index(DISTRIBUTE) < text.index("repeat()")


def test_repeat_stays_behind_a_take_that_moves_behind_the_workers(tmp_path: Path) -> None:
    """`repeat` follows `batch` in the recording, and `take` in the new text: before it, the stream would end after one pass."""
    analysis = loop_script(tmp_path, source("Range", 96), DECODE, take(64), batch(8), repeat(), prefetch())
    movability, text = changed(tmp_path, analysis)
    assert movability.after_method == "batch" and not kinds(movability)
    assert "ends each pass there" in by_hand(movability, "`repeat` (line 7) asks")
    assert text.index(DISTRIBUTE) < text.index("take(8)") < text.index("repeat()")


def test_repeat_stays_for_a_consumer_of_single_passes(tmp_path: Path) -> None:
    stages = (source("Range", 96), DECODE, PYTHON, repeat(3), batch(8))
    analysis = loop_script(tmp_path, *stages, kind="keras.evaluate")
    assert "takes each pass for whole" in by_hand(judge(analysis), "`repeat` (line 6) asks")


def test_repeat_stays_if_other_datasets_read_the_elements_before_it(tmp_path: Path) -> None:
    analysis = loop_script(tmp_path, source("Range", 96), DECODE, PYTHON, repeat(), batch(8))
    other = dataclasses.replace(analysis.calls[2], id="other", inputs=(analysis.calls[1].id,))
    movability = judge(dataclasses.replace(analysis, calls=(*analysis.calls, other)))
    assert "would never end" in by_hand(movability, "`repeat` (line 6) asks")


def test_repeat_stays_where_the_text_does_not_allow_the_move(tmp_path: Path) -> None:
    """The recording ended before this line; everything else is still written."""
    analysis = loop_script(tmp_path, source("Range", 96), DECODE, PYTHON, repeat(), batch(8), prefetch())
    path = tmp_path / "train.py"
    path.write_text(path.read_text().replace("ds = ds.map(show)\n", "ds = ds.map(show); first = next(iter(ds))\n"))
    movability, after = changed(tmp_path, analysis)
    assert movability.verdict == MOVABLE and REPEAT not in kinds(movability)
    assert "is also used elsewhere" in by_hand(movability, "`repeat` (line 6) asks")
    assert DISTRIBUTE in after and after.index(DISTRIBUTE) < after.index("repeat()")


def test_a_place_that_needs_the_move_is_given_up_if_the_text_does_not_allow_it(tmp_path: Path) -> None:
    analysis = loop_script(tmp_path, source("Range", 96), DECODE, whole_batches(8), repeat(), prefetch())
    path = tmp_path / "train.py"
    path.write_text(path.read_text().replace("ds = ds.map(decode)\n", "ds = ds.map(decode); first = next(iter(ds))\n"))
    movability, after = changed(tmp_path, analysis)
    assert movability.after_method == "map" and kinds(movability) == [BATCH]
    assert after.index(DISTRIBUTE) < after.index("batch(8, drop") < after.index("repeat()")


def test_a_repeat_at_the_end_is_before_distribute_already(tmp_path: Path) -> None:
    analysis = loop_script(tmp_path, source("Range", 96), DECODE, shuffle(8), batch(8), repeat(), prefetch())
    movability, text = changed(tmp_path, analysis)
    assert movability.after_method == "repeat" and not kinds(movability) and overlaps(movability)
    assert f".repeat(){DISTRIBUTE}" in text


def test_without_sharding_passes_do_not_overlap(tmp_path: Path) -> None:
    analysis = loop_script(tmp_path, source("Range", 96), DECODE, batch(8), repeat(), prefetch())
    assert not overlaps(judge(analysis, OFF))


@pytest.mark.parametrize(
    ("spec", "is_fixed"),
    [
        (VECTOR, True),
        ("TensorSpec(shape=(), dtype=tf.string, name=None)", True),
        (f"({VECTOR}, {{'a': TensorSpec(shape=(2, 2), dtype=tf.int64, name=None)}})", True),
        ("TensorSpec(shape=(None,), dtype=tf.float32, name=None)", False),
        ("TensorSpec(shape=<unknown>, dtype=tf.float32, name=None)", False),
        ("TensorSpec(shape=None, dtype=tf.float32, name=None)", False),
        ("RaggedTensorSpec(TensorShape([3, None]), tf.int64, 1, tf.int64)", False),
        ("SparseTensorSpec(TensorShape([3]), tf.int64)", False),
        (f"({VECTOR}, DatasetSpec({VECTOR}, TensorShape([])))", False),
        ("", False),
    ],
)
def test_only_elements_of_fixed_shapes_are_sent_in_batches(spec: str, is_fixed: bool) -> None:
    assert has_fixed_shapes(spec) == is_fixed


def test_elements_of_unknown_shapes_are_sent_one_by_one(tmp_path: Path) -> None:
    analysis = loop_script(tmp_path, source("Range", 96), map_("decode", ms=5), PYTHON, batch(8), prefetch())
    movability, text = changed(tmp_path, analysis)
    assert not kinds(movability) and "unbatch" not in text and ADDRESS in text
    assert by_hand(movability, "Elements are sent one by one")
