"""Recorded datasets made again: edits where they belong, state where it was, and what cannot be done said."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from advisor.capture.instrument.dataset_ids import ID_ATTRIBUTE
from advisor.model.edits import Code, InsertAfter, MoveAfter, Remove, SetArgument, SetOption
from advisor.model.finding import Fix, Safety
from advisor.replay.edited import inserted_id
from advisor.replay.edited_calls import edited_calls
from advisor.replay.replay import OTHER, TWIN, CannotReplay, Replay
from advisor.rewrite.combined_edits import combine
from tests.recorded import Recorded
from tests.replay.dataset_kinds import interleave

pytestmark = pytest.mark.tensorflow
AUTOTUNE = Code("tf.data.AUTOTUNE")
PREFETCH = (("", AUTOTUNE),)


def elements(dataset: Any) -> list[Any]:
    return [value.tolist() if hasattr(value, "tolist") else value for value in dataset.as_numpy_iterator()]


# -- edits


def test_links_behind_one_call_stand_with_the_later_edit_first(recorded: Recorded) -> None:
    import tensorflow as tf

    dataset = tf.data.Dataset.range(5).map(lambda x: x + 1)
    call = recorded.call("map")
    edited, work = recorded.replaying(
        dataset, InsertAfter(call.id, "batch", (("", 2),)), InsertAfter(call.id, "repeat", (("count", 2),))
    )
    assert elements(edited) == [[1, 2], [3, 4], [5, 1], [2, 3], [4, 5]]
    assert [call.method for call in work.built] == ["range", "map", "repeat", "batch"]


def test_a_call_moves_and_its_own_changes_go_with_it(recorded: Recorded) -> None:
    import tensorflow as tf

    dataset = tf.data.Dataset.range(6).batch(2).map(lambda x: x * 2).prefetch(1)
    batch, double = recorded.call("batch"), recorded.call("map")
    edited = recorded.replay(dataset, MoveAfter(batch.id, double.id), SetArgument(batch.id, "batch_size", 3))
    assert elements(edited) == [[0, 2, 4], [6, 8, 10]]


def test_what_is_inserted_after_a_moved_call_follows_it(recorded: Recorded) -> None:
    import tensorflow as tf

    dataset = tf.data.Dataset.range(6).map(lambda x: x * 2).batch(2)
    double, batch = recorded.call("map"), recorded.call("batch")
    edited, work = recorded.replaying(
        dataset, MoveAfter(double.id, batch.id), InsertAfter(double.id, "prefetch", PREFETCH)
    )
    assert elements(edited) == [[0, 2], [4, 6], [8, 10]]
    assert [call.method for call in work.built] == ["range", "batch", "map", "prefetch"]


def test_a_cache_behind_a_call_that_an_earlier_fix_moved_is_filled_with_its_results(recorded: Recorded) -> None:
    import tensorflow as tf

    dataset = tf.data.Dataset.range(6).cache().map(lambda x: x * 2).batch(2)
    cache, double, batch = (recorded.call(method) for method in ("cache", "map", "batch"))
    moving = Fix((MoveAfter(double.id, batch.id),), Safety.EXACT, is_auto=True)
    cached = Fix((InsertAfter(double.id, "cache"), Remove(cache.id)), Safety.EXACT, is_auto=True)
    edited, work = recorded.replaying(dataset, *combine((moving, cached)))
    assert elements(edited) == [[0, 2], [4, 6], [8, 10]]
    assert [call.method for call in work.built] == ["range", "batch", "map", "cache"]


def test_what_fills_a_cache_comes_before_it(recorded: Recorded) -> None:
    """Also if it is moved to the call that the cache follows; otherwise it would run in every pass."""
    import tensorflow as tf

    dataset = tf.data.Dataset.range(6).map(lambda x: x + 1).map(lambda x: x * 2).batch(2)
    first, second, batch = recorded.call("map", 0), recorded.call("map", 1), recorded.call("batch")
    cached = Fix((InsertAfter(batch.id, "cache"),), Safety.EXACT, is_auto=True)
    moved = [
        Fix((MoveAfter(call.id, batch.id),), Safety.EXACT, is_auto=True, fills_cache=True) for call in (second, first)
    ]
    edited, work = recorded.replaying(dataset, *combine((cached, *moved)))
    assert elements(edited) == [[2, 4], [6, 8], [10, 12]]
    assert [call.method for call in work.built] == ["range", "batch", "map", "map", "cache"]
    behind = recorded.replaying(dataset, *combine((cached, replace(moved[0], fills_cache=False))))[1]
    assert [call.method for call in behind.built][-3:] == ["batch", "cache", "map"]


def test_the_pass_that_fills_the_caches_is_made_without_them(recorded: Recorded) -> None:
    """Those of the script and of the edits, where they are, and what follows them; a cache on disk stays."""
    import tensorflow as tf

    dataset = tf.data.Dataset.range(6).cache().map(lambda x: x * 2).batch(2)
    cache, double, batch = (recorded.call(method) for method in ("cache", "map", "batch"))
    edits = (
        InsertAfter(batch.id, "prefetch", PREFETCH),
        MoveAfter(cache.id, double.id),
        InsertAfter(batch.id, "cache"),
    )
    work = Replay(recorded.recorder, edits, skipped=frozenset({cache.id}))
    assert elements(work.dataset(batch.id)) == [[0, 2], [4, 6], [8, 10]]
    assert [call.method for call in work.built] == ["range", "map", "batch", "prefetch"]
    calls = {call.id: call for call in edited_calls(recorded.recorder, work)}
    assert [call.method for call in calls.values()] == ["range", "map", "batch", "prefetch"]
    assert calls[double.id].inputs == (recorded.call("range").id,)
    _, whole = recorded.replaying(dataset, *edits)
    assert [call.method for call in whole.built] == ["range", "map", "cache", "batch", "cache", "prefetch"]


def test_the_first_and_the_last_call_can_be_removed(recorded: Recorded) -> None:
    import tensorflow as tf

    dataset = tf.data.Dataset.range(4).map(lambda x: x + 1).batch(2)
    assert elements(recorded.replay(dataset, Remove(recorded.call("batch").id))) == [1, 2, 3, 4]
    assert elements(recorded.replay(dataset, Remove(recorded.call("map").id))) == [[0, 1], [2, 3]]


def test_a_later_edit_may_name_an_inserted_call(recorded: Recorded) -> None:
    import tensorflow as tf

    dataset = tf.data.Dataset.range(4).map(lambda x: x + 1)
    first = InsertAfter(recorded.call("map").id, "repeat", (("", 2),))
    new = inserted_id((first,), 0)
    behind = recorded.replay(dataset, first, InsertAfter(new, "batch", (("", 8),)))
    assert elements(behind) == [[1, 2, 3, 4, 1, 2, 3, 4]]
    assert elements(recorded.replay(dataset, first, SetArgument(new, "count", 1))) == [1, 2, 3, 4]
    assert elements(recorded.replay(dataset, first, Remove(new))) == [1, 2, 3, 4]


def test_an_option_is_changed_taken_back_or_added_and_the_scripts_own_object_stays(recorded: Recorded) -> None:
    import tensorflow as tf

    options = tf.data.Options()
    options.autotune.enabled = False
    options.threading.private_threadpool_size = 3
    dataset = tf.data.Dataset.range(4).with_options(options).batch(2)
    call = recorded.call("with_options")
    without = recorded.replay(dataset, SetOption(call.id, "autotune.enabled", None)).options()
    assert without.autotune.enabled is None
    assert without.threading.private_threadpool_size == 3
    assert recorded.replay(dataset, SetOption(call.id, "autotune.enabled", True)).options().autotune.enabled is True
    added = recorded.replay(dataset, SetOption(recorded.call("batch").id, "deterministic", False)).options()
    assert added.deterministic is False
    assert added.autotune.enabled is False
    assert dataset.options().autotune.enabled is False
    assert options.autotune.enabled is False


def test_calls_inside_functions_are_edited(recorded: Recorded, tmp_path: Path) -> None:
    import tensorflow as tf

    dataset = interleave(tf, tmp_path)
    lines, upper, kept = recorded.call("TextLineDataset"), recorded.call("map"), recorded.call("filter")
    assert upper.nested_in == recorded.call("interleave").id
    twice = recorded.replay(dataset, InsertAfter(lines.id, "repeat", (("", 2),)), Remove(kept.id))
    assert sum(len(batch) for batch in elements(twice)) == 20
    short = recorded.replay(dataset, InsertAfter(upper.id, "take", (("", 2),)))
    assert sorted(itertools.chain(*elements(short))) == [b"A0", b"A1", b"B0", b"B1"]
    plain = recorded.replay(dataset, Remove(upper.id))
    assert b"a0" in itertools.chain(*elements(plain))


def test_a_constructor_that_a_function_gives_back_directly_can_have_a_link(recorded: Recorded, tmp_path: Path) -> None:
    import tensorflow as tf

    (tmp_path / "a.txt").write_text("1\n2\n")
    dataset = tf.data.Dataset.from_tensors(str(tmp_path / "a.txt")).flat_map(lambda file: tf.data.TextLineDataset(file))
    edited = recorded.replay(dataset, InsertAfter(recorded.call("TextLineDataset").id, "repeat", (("", 2),)))
    assert elements(edited) == [b"1", b"2", b"1", b"2"]


def test_a_dataset_from_outside_that_a_function_goes_on_from_is_edited_too(recorded: Recorded) -> None:
    import tensorflow as tf

    outside = tf.data.Dataset.range(2).map(lambda x: x + 7)
    call = recorded.call("map")
    dataset = tf.data.Dataset.range(2).flat_map(lambda i: outside.repeat(2))
    assert elements(recorded.replay(dataset, InsertAfter(call.id, "take", (("", 1),)))) == [7, 7, 7, 7]


def test_a_dataset_that_a_function_only_holds_cannot_be_replayed_and_is_named(recorded: Recorded) -> None:
    import tensorflow as tf

    outside = tf.data.Dataset.range(2).map(lambda x: x + 7)
    call = recorded.call("map")
    dataset = tf.data.Dataset.range(2).flat_map(lambda i: outside)
    with pytest.raises(CannotReplay, match=r"map at line \d+ cannot be replayed: it is not upstream of the dataset"):
        recorded.replay(dataset, InsertAfter(call.id, "cache"))


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        (lambda call: SetArgument(call, "colour", 1), "it takes no argument colour"),
        (lambda call: InsertAfter(call, "polish"), "datasets do not have this method"),
        (lambda call: InsertAfter(call, "batch", (("", -3),)), "batch"),
        (
            lambda call: InsertAfter(call, "prefetch", (("", Code("tf.data.FASTER")),)),
            "TensorFlow does not have this name",
        ),
        (lambda call: SetOption(call, "autotune.enabled", None), "it sets no options"),
        (lambda call: InsertAfter("tfadv_999", "cache"), "it is not upstream of the dataset"),
        (lambda call: MoveAfter(call, call), "after itself"),
    ],
)
def test_what_cannot_be_done_is_said(recorded: Recorded, edit: Callable[[str], Any], reason: str) -> None:
    import tensorflow as tf

    dataset = tf.data.Dataset.range(5).map(lambda x: x + 1)
    with pytest.raises(CannotReplay, match=reason):
        elements(recorded.replay(dataset, edit(recorded.call("map").id)))


def test_edits_of_the_other_dataset_that_the_same_text_makes_are_no_obstacle(recorded: Recorded) -> None:
    import tensorflow as tf

    def prepare(size: int) -> Any:
        return tf.data.Dataset.range(size).map(lambda x: x + 1)

    training = prepare(4)
    prepare(2)
    both = [SetArgument(recorded.call("map", index).id, "num_parallel_calls", 2) for index in (-2, -1)]
    assert elements(recorded.replay(training, *both)) == [1, 2, 3, 4]


# -- state


def test_parts_without_state_are_used_as_they_are_and_others_are_made_anew(recorded: Recorded) -> None:
    import tensorflow as tf

    dataset = tf.data.Dataset.range(6).map(lambda x: x + 1).cache().shuffle(6).map(lambda x: x * 2)
    _, work = recorded.replaying(dataset, SetArgument(recorded.call("map").id, "num_parallel_calls", 2))
    made = {(call.method, call.is_new) for call in work.built}
    assert made == {("map", False), ("cache", True), ("shuffle", True), ("map", True)}


def test_a_seeded_script_gets_its_own_numbers_again(recorded: Recorded) -> None:
    import tensorflow as tf

    tf.random.set_seed(5)
    try:
        dataset = tf.data.Dataset.range(9).shuffle(9).map(lambda x: tf.cast(x, tf.float32) + tf.random.uniform([]))
        wanted = elements(dataset)
        tf.random.uniform([])  # the script draws on
        assert elements(recorded.replay(dataset)) == wanted
        assert elements(recorded.replay(dataset, seeding=OTHER)) != wanted
    finally:
        tf.random.set_seed(None)


def test_an_unseeded_script_stays_random_and_its_twins_agree(recorded: Recorded) -> None:
    import tensorflow as tf

    dataset = tf.data.Dataset.range(30).shuffle(30).map(lambda x: tf.cast(x, tf.float32) + tf.random.uniform([]))
    assert elements(recorded.replay(dataset)) != elements(recorded.replay(dataset))
    assert elements(recorded.replay(dataset, seeding=TWIN)) == elements(recorded.replay(dataset, seeding=TWIN))
    assert elements(recorded.replay(dataset, seeding=TWIN)) != elements(recorded.replay(dataset, seeding=OTHER))
    from tensorflow.python.eager import context

    assert context.global_seed() is None


def test_the_scripts_cache_files_are_never_written(recorded: Recorded, tmp_path: Path) -> None:
    import tensorflow as tf

    own, ours = tmp_path / "own", tmp_path / "ours"
    own.mkdir()
    ours.mkdir()
    dataset = tf.data.Dataset.range(5).map(lambda x: x + 1).cache(str(own / "cache"))
    with pytest.raises(CannotReplay, match="it writes to"):
        recorded.replay(dataset)
    again = recorded.replay(dataset, files=ours)
    assert elements(again) == [1, 2, 3, 4, 5]
    assert list(own.iterdir()) == []
    assert list(ours.iterdir())


def test_the_calls_of_an_edited_pipeline_are_those_it_would_have_recorded(recorded: Recorded) -> None:
    import tensorflow as tf

    dataset = tf.data.Dataset.range(8).map(lambda x: x + 1).shuffle(4).batch(2)
    move, insert = (
        MoveAfter(recorded.call("shuffle").id, recorded.call("batch").id),
        InsertAfter(recorded.call("map").id, "cache"),
    )
    edited, work = recorded.replaying(
        dataset,
        move,
        insert,
        Remove(recorded.call("map").id)
        if False
        else SetArgument(recorded.call("map").id, "num_parallel_calls", AUTOTUNE),
    )
    calls = {call.id: call for call in edited_calls(recorded.recorder, work)}
    path, call_id = [], getattr(edited, ID_ATTRIBUTE)
    while call_id:
        path.append(calls[call_id].method)
        call_id = next(iter(calls[call_id].inputs), "")
    assert path == ["shuffle", "batch", "cache", "map", "range"]
    assert calls[recorded.call("map").id].arguments["num_parallel_calls"] == -1
    assert calls[inserted_id((move, insert), 1)].site == recorded.call("map").site
    assert calls[inserted_id((move, insert), 1)].cardinality == 8
