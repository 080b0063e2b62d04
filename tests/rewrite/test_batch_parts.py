"""Real scripts whose function is vectorised in parts: the text that is written makes the calls that were replayed, with the same
elements as before, bit for bit, and look-alikes are refused.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from advisor.capture.instrument.code_identity import changed_code
from advisor.capture.instrument.dataset_ids import call_id_of
from advisor.model.edits import Edit, MoveAfter, VectorizeParts
from advisor.model.finding import Safety
from advisor.model.pipeline import Analysis
from advisor.predict import mixed_function
from advisor.prove.texts.graph_difference import difference
from advisor.prove.trial.elements.element_digests import Bounds
from advisor.prove.trial.elements.equivalence import Equivalence
from advisor.prove.trial.runs.script_calls import recorded_graph
from advisor.replay.edited import CannotVectorize
from advisor.replay.edited_graph import edited_graph
from advisor.rewrite.cannot_rewrite import CannotRewrite
from advisor.rewrite.patch import Patch, patch_for
from advisor.testing import batch, map_, pipeline, source
from tests.in_one_line import in_one_line
from tests.recorded import Recorded
from tests.rewrite.batch_part_scripts import SCRIPTS
from tests.rewrite.script_runs import elements, recorded_again, replayed, run

pytestmark = pytest.mark.tensorflow
EMPTY: Analysis = pipeline(source(), map_("f", ms=1), batch(4), consumer_ms=1).analysis


def edits_of(recorded: Recorded, is_auto: bool = True) -> tuple[Edit, ...]:
    """The edits that the rules propose for the only map."""
    calls = recorded.recorder.calls()
    analysis = dataclasses.replace(EMPTY, calls=calls)
    mixed = mixed_function(analysis, recorded.call("map"), recorded.call("batch"))
    assert mixed.fix is not None, mixed.reason
    assert (mixed.fix.safety, mixed.fix.is_auto) == (Safety.EXACT, is_auto)
    return mixed.fix.edits


SHORTEST = "look-ups that are stacked, in a closure, the remainder dropped"


@pytest.mark.parametrize(
    "name", [name if name == SHORTEST else pytest.param(name, marks=pytest.mark.long) for name in SCRIPTS]
)
def test_the_written_parts_are_the_proved_ones(name, tmp_path, monkeypatch, recorded):
    (before, after), path = SCRIPTS[name], tmp_path / "train.py"
    path.write_text(before)
    monkeypatch.chdir(tmp_path)
    (dataset,) = run(path, monkeypatch)
    calls = {call.id: call for call in recorded.recorder.calls()}
    edits = edits_of(recorded, is_auto="flipped" not in name and "method" not in name)
    recorded.recorder.is_open = False
    judgement = Equivalence(recorded.recorder, str(call_id_of(dataset)), Bounds(400, 10.0), tmp_path).judge(edits)
    assert (str(judgement.seen), judgement.undecided) == ("exact", "")
    expected = elements(replayed(recorded, dataset, edits, calls))

    patch = patch_for(edits, calls, tmp_path)
    assert isinstance(patch, Patch), patch
    old, new = patch.files[path.resolve()]
    assert in_one_line(new.decode()) == in_one_line(after)
    proved = edited_graph(recorded_graph(recorded.recorder, call_id_of(dataset), edits=edits), edits)
    assert difference(proved, recorded_again(recorded, path, monkeypatch)[1]) is not None
    path.write_bytes(new)
    (patched,), graph = recorded_again(recorded, path, monkeypatch)
    assert difference(proved, graph, changed_code=changed_code(old, new)) is None
    assert elements(patched) == expected
    path.write_bytes(old.replace(b"\n\n", b"\n\n\n", 1))
    assert isinstance(patch_for(edits, calls, tmp_path), CannotRewrite)  # the definition is on another line


def lines_of(function: Any, elements: Any, recorded: Recorded) -> tuple[Any, ...]:
    elements.take(-1).map(function).batch(2)
    facts = recorded.call("map").function
    assert facts is not None
    return facts.batch_lines


def test_lines_are_described_by_public_names_and_whether_they_take_batches(recorded: Recorded) -> None:
    import tensorflow as tf

    def prepare(image: Any) -> Any:
        image = tf.image.resize(image, [6, 6]) / 255.0
        return tf.reverse(image, [0])

    lines = lines_of(prepare, tf.data.Dataset.from_tensors(tf.ones([4, 4, 3])), recorded)
    assert [(line.called, line.takes_batches) for line in lines] == [("resize", True), ("", True), ("reverse", False)]


def test_look_alikes_are_not_described(recorded: Recorded) -> None:
    """A batch would share what each row has of its own, or fail on rows that a single call takes."""
    import tensorflow as tf

    table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a"], [1.0]), 0.0)
    words = tf.data.Dataset.from_tensor_slices(["a", "bb", "c"])

    def constant_of_another_line(word: Any) -> Any:
        factors = tf.constant([1.0, 2.0])
        return tf.reverse(table.lookup(word) * factors, [0])

    def row_of_varying_length(word: Any) -> Any:
        return tf.reduce_sum(tf.cast(tf.io.decode_raw(word, tf.uint8), tf.int32))

    def reshaped_to_several_lengths(word: Any) -> Any:
        return tf.reverse(tf.reshape(tf.io.decode_raw(word, tf.uint8), [-1, 1]), [0])

    def constant_result(word: Any) -> Any:
        return tf.reverse([table.lookup(word)], [0]), 3

    def size_of_the_table(word: Any) -> Any:
        return tf.reverse([table.lookup(word)], [0]), table.size()

    def python_code(word: Any) -> Any:
        return tf.reverse([tf.numpy_function(lambda x: 1.0, [word], tf.float64)], [0])

    looking_alike = (
        constant_of_another_line,
        row_of_varying_length,
        reshaped_to_several_lengths,
        constant_result,
        size_of_the_table,
        python_code,
    )
    for function in looking_alike:
        assert lines_of(function, words, recorded) == (), function.__name__


def test_a_vocabulary_with_buckets_takes_a_batch_of_words(recorded: Recorded) -> None:
    """Its look-up also reads the number of its words, which is the same for every element."""
    import tensorflow as tf

    keys = tf.lookup.KeyValueTensorInitializer(["a"], tf.constant([0], tf.int64))
    table = tf.lookup.StaticVocabularyTable(keys, num_oov_buckets=3)

    def encode(word: Any) -> Any:
        code = table.lookup(word)
        return tf.cumsum(tf.one_hot(code, 4))

    tf.data.Dataset.from_tensor_slices(["a", "b", "c"]).map(encode).batch(2)
    call = recorded.call("map")
    assert call.function is not None
    lines = [(line.called, line.takes_batches) for line in call.function.batch_lines]
    assert lines == [("lookup", True), ("one_hot", True), ("cumsum", False)]


def test_random_numbers_are_drawn_in_a_vectorised_part(recorded: Recorded) -> None:
    import tensorflow as tf

    table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a"], [1.0]), 0.0)

    def noisy(word: Any) -> Any:
        noise = tf.random.uniform([2])
        return table.lookup(word) + noise

    lines = lines_of(noisy, tf.data.Dataset.from_tensor_slices(["a", "b"]), recorded)
    assert [(line.called, line.takes_batches) for line in lines] == [("uniform", False), ("lookup", True), ("", False)]


def test_parts_that_compute_something_else_for_one_element_are_refused(recorded: Recorded) -> None:
    import tensorflow as tf

    def center(row: Any) -> Any:
        return row - tf.reduce_mean(row)

    dataset = tf.data.Dataset.from_tensor_slices(tf.reshape(tf.range(12.0), [4, 3])).map(center).batch(2)
    call = recorded.call("map")
    whole = "def center_batch(row):\n    return advisor_vectorized_map(center, row, fallback_to_while_loop=False)\n"
    wrong = {
        "another graph than its function": "def center_batch(row):\n    return row * 2.0\n",
        "takes or returns a int instead": whole.replace("center, row", "lambda x: 3, row"),
        "its parts fail": "def center_batch(row):\n    return row.missing\n",
    }
    for reason, text in wrong.items():
        edit = VectorizeParts(call.id, text, "center_batch", "", 1)
        with pytest.raises(CannotVectorize, match=reason):
            recorded.replay(dataset, MoveAfter(call.id, recorded.call("batch").id), edit)
