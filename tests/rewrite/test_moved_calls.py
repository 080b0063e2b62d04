"""Calls that are removed, moved or vectorised in source text as people write it."""

from __future__ import annotations

import pytest

from advisor.model.edits import InsertAfter, MoveAfter, Remove, Vectorize
from tests.rewrite.source_text import rewritten


def test_remove_a_link_and_a_whole_statement():
    assert rewritten("ds = ds.map(f).cache().batch(8)\n", Remove("cache")) == "ds = ds.map(f).batch(8)\n"
    assert rewritten("ds = ds.map(f)\nds = ds.cache()\nds = ds.batch(8)\n", Remove("cache")) == (
        "ds = ds.map(f)\nds = ds.batch(8)\n"
    )


def test_move_within_a_chain():
    text = "ds = (\n    ds\n    .cache()\n    .map(f)\n    .batch(8)\n)\n"
    after = "ds = (\n    ds\n    .map(f)\n    .cache()\n    .batch(8)\n)\n"
    assert rewritten(text, MoveAfter("cache", "map")) == after
    assert rewritten(after, MoveAfter("map", "cache")) == text


def test_move_a_line_behind_another_of_the_same_name():
    text = "ds = ds.cache()  # here\nds = ds.skip(1)\nds = ds.take(9).map(\n    f\n)\nprint(ds)\n"
    after = "ds = ds.skip(1)\nds = ds.take(9).map(\n    f\n)\nds = ds.cache()  # here\nprint(ds)\n"
    assert rewritten(text, MoveAfter("cache", "map")) == after


def test_a_line_moved_behind_a_line_of_another_name_becomes_a_link_there():
    """Found by hypothesis: the whole line was moved, and made a dataset that nobody used."""
    lines = "ds = ds.map(f)\nds = ds.cache()\nout = ds.shuffle(5)\nout = out.batch(3)\nprint(out)"
    moved = "ds = ds.cache()\nout = ds.shuffle(5)\nout = out.batch(3).map(f)\nprint(out)"
    assert rewritten(lines, MoveAfter("map", "batch")) == moved


MEANING_CHANGES = {
    "an attribute": "config.fn = other",
    "an attribute of an attribute": "config.model.fn = other",
    "an item": "config['fn'] = other",
    "an attribute, set in place": "config.fn += other",
    "setattr": "setattr(config, 'fn', other)",
    "a method": "config.update(fn=other)",
    "a name": "config = other",
    "a loop": "for config.fn in others: pass",
    "a with statement": "with other() as config.fn: pass",
    "a walrus in a line of the dataset": "ds = ds.take((config := other))",
    "a call in a line of the dataset": "ds = ds.take(change(config))",
    "deleting": "del config.fn",
}


@pytest.mark.parametrize("between", MEANING_CHANGES.values(), ids=MEANING_CHANGES)
def test_a_call_is_not_moved_past_what_may_change_its_arguments(between):
    assert rewritten(f"ds = ds.map(config.fn)\n{between}\nds = ds.shuffle(5)", MoveAfter("map", "shuffle")) is None


@pytest.mark.parametrize("between", ["print('x')", "y = tf.constant(3)", "ds = ds.batch(config.size)", "other.fn = 3"])
def test_a_call_is_moved_past_what_cannot(between):
    script = f"import tensorflow as tf\nds = ds.map(config.fn)\n{between}\nds = ds.shuffle(5)\n"
    assert rewritten(script, MoveAfter("map", "shuffle")) is not None


def test_lines_of_an_attribute_are_moved_unless_the_argument_reads_it():
    lines = "self.ds = self.ds.map({})\nself.ds = self.ds.shuffle(5)\n"
    move = MoveAfter("map", "shuffle")
    assert (
        rewritten(lines.format("self.parse"), move)
        == "self.ds = self.ds.shuffle(5)\nself.ds = self.ds.map(self.parse)\n"
    )
    assert rewritten(lines.format("lambda x: x + self.ds.n"), move) is None


HELPER = "def make(ds, training):\n    {}\n    ds = ds.map(f)\n    return ds.batch(8)\n"
SHUFFLED = "if training:\n        ds = ds.shuffle(9)"


@pytest.mark.parametrize("test", ["training", "not self.is_test", "split == 'train' and training", "size > -1"])
def test_a_condition_moves_with_the_only_line_in_it(test):
    shuffled = f"if {test}:\n        # every epoch anew\n        ds = ds.shuffle(9)"
    text = HELPER.format(shuffled)
    moved = f"def make(ds, training):\n    ds = ds.map(f).cache()\n    {shuffled}\n    return ds.batch(8)\n"
    assert rewritten(text, MoveAfter("shuffle", "map"), InsertAfter("map", "cache")) == moved


def test_a_vectorised_map_moves_behind_the_batch_with_its_condition():
    head = "import tensorflow as tf\n\ndef make(ds, training):\n"
    text = f"{head}    if training:\n        ds = ds.map(self.f)\n    ds = ds.batch(8)\n"
    moved = rewritten(text, MoveAfter("map", "batch"), Vectorize("map"))
    assert moved is not None
    assert moved.startswith(f"{head}    ds = ds.batch(8)\n    if training:\n        ds = ds.map(\n            lambda ")
    assert "tf.vectorized_map(" in moved and moved.count("self.f") == 1


@pytest.mark.parametrize(
    "lines",
    [
        f"{SHUFFLED}\n    else:\n        ds = ds.take(3)",
        f"{SHUFFLED}\n        print(3)",
        f"{SHUFFLED}\n    training = False",
        f"{SHUFFLED}\n    for training in range(3):\n        pass",
        f"{SHUFFLED}\n    print(ds)",
        f"{SHUFFLED}\n    other = ds.take(3)",
        f"if other:\n        ds = ds.take(1)\n    el{SHUFFLED}",
        SHUFFLED.replace("training", "training()"),
        SHUFFLED.replace("training", "sizes[0]"),
        SHUFFLED.replace("training", "ds.is_train"),
        SHUFFLED.replace("if training", "while training"),
        SHUFFLED.replace("ds = ", "out = "),
        SHUFFLED.replace("ds.shuffle", "ds.take(5).shuffle"),
        f"{SHUFFLED.replace('training', 'config.training')}\n    config.training = False",
        f"{SHUFFLED.replace('training', 'config.training')}\n    config.update(training=False)",
    ],
)
def test_a_condition_that_may_mean_something_else_later_is_not_moved(lines):
    assert rewritten(HELPER.format(lines), MoveAfter("shuffle", "map")) is None


def test_a_condition_is_not_moved_to_a_line_of_another_name_or_block():
    text = HELPER.format(SHUFFLED)
    for other in ("out = ds.map(f)", "ds = transformed(ds.map(f))", "if True:\n        ds = ds.map(f)"):
        assert rewritten(text.replace("ds = ds.map(f)", other), MoveAfter("shuffle", "map")) is None


def test_links_go_directly_behind_their_call_so_that_the_later_edit_comes_first():
    text = "ds = ds.shuffle(9).map(f)\n"
    edits = (MoveAfter("shuffle", "map"), InsertAfter("map", "repeat"), InsertAfter("map", "cache"))
    assert rewritten(text, *edits) == "ds = ds.map(f).cache().repeat().shuffle(9)\n"


@pytest.mark.parametrize(
    ("text", "moved"),
    [
        ("ds = a.map(f).batch(8).repeat().prefetch(2)\n", "ds = a.map(f).repeat().batch(8).prefetch(2)\n"),
        ("ds = a.map(f)\nds = ds.batch(8)\nds = ds.repeat()\n", "ds = a.map(f).repeat()\nds = ds.batch(8)\n"),
        ("ds = a.map(f)\nother = ds.batch(8).repeat(-1)\n", "ds = a.map(f).repeat(-1)\nother = ds.batch(8)\n"),
        ("ds = a.map(f)\nds = ds.batch(8)\nds = ds.repeat(count=None)  # all\n",
         "ds = a.map(f).repeat(count=None)\nds = ds.batch(8)\n# all\n"),
    ],
)  # fmt: skip
def test_a_call_moves_to_an_earlier_one(text, moved):
    assert rewritten(text, MoveAfter("repeat", "map")) == moved


def test_a_whole_line_moves_up_to_a_line_of_the_same_name():
    text = "ds = ds.map(f)\nds = ds.batch(8)\nds = ds.repeat()  # all\nprint(ds)\n"
    moved = "ds = ds.map(f)\nds = ds.repeat()  # all\nds = ds.batch(8)\nprint(ds)\n"
    assert rewritten(text, MoveAfter("repeat", "map")) == moved


@pytest.mark.parametrize(
    "between",
    ["print(ds.cardinality())", "val = ds.take(3)", "for batch in ds:\n    pass", "ds = other(ds)", "train(ds)"],
)
def test_a_call_does_not_move_up_past_another_use_of_the_dataset(between):
    assert rewritten(f"ds = a.map(f)\n{between}\nds = ds.batch(8).repeat()\n", MoveAfter("repeat", "map")) is None


@pytest.mark.parametrize("argument", ["EPOCHS", "count=n + 1", "args.epochs", "*counts"])
def test_a_call_whose_arguments_may_be_made_later_does_not_move_up(argument):
    text = f"ds = a.map(f)\nds = ds.batch(8)\nds = ds.repeat({argument})\n"
    assert rewritten(text, MoveAfter("repeat", "map")) is None


def test_a_name_that_is_used_later_keeps_what_it_holds():
    text = "ds = a.map(f)\ntrain = ds.batch(8).repeat()\nval = ds.take(3)\n"
    assert rewritten(text, MoveAfter("repeat", "map")) is None
