"""Copies of functions that parse one record, with a parser of batches: their text, and why others are not copied."""

from __future__ import annotations

import textwrap

import pytest

from advisor.model.calls import Call, FunctionFacts, Site
from advisor.splitting import BatchText, CannotSplitError, batched_parser

BODY = "    return tf.io.parse_single_example(record, FEATURES)\n"


def copied(text: str, call: str = "ds = ds.map(parse)") -> BatchText:
    """The copy of the function that the last line of the text passes to `map`."""
    text = f"{textwrap.dedent(text)}{call}\n"
    line, end = text.count("\n"), len(call) + 1
    defined = next(number for number, row in enumerate(text.split("\n"), 1) if row.lstrip().startswith(("def ", "@")))
    function = FunctionFacts("parse", Site("train.py", defined, 1, defined, 2), is_stateful=False)
    return batched_parser(text, Call("map", "map", Site("train.py", line, 1, line, end), function=function))


def test_only_the_name_and_the_parser_change():
    text = (
        'def parse(record):\n    """One record: é."""\n'
        "    fields = tf.io.parse_single_example(  # é\n        record, FEATURES\n    )\n    return fields\n"
    )
    found = copied(text)
    assert found.text == text.replace("def parse(", "def parse_batch(").replace("parse_single_example", "parse_example")
    assert (found.name, found.original, found.line, found.argument) == ("parse_batch", text, 1, "")


def test_a_name_in_use_is_not_taken():
    found = copied(f"parse_batch = None\ndef parse(record):\n{BODY}")
    assert found.name == "parse_batch_2"
    assert found.text.startswith("def parse_batch_2(record):\n")


def test_other_line_breaks_and_a_wide_def_are_kept():
    text = "def  parse(record):\r\n    return io.parse_single_example(record, FEATURES)\r\n"
    assert copied(text).text == "def  parse_batch(record):\r\n    return io.parse_example(record, FEATURES)\r\n"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (f"@tf.function\ndef parse(record):\n{BODY}", "it has a decorator"),
        (f"def parse(record):\n    if LABELLED:\n    {BODY}{BODY}", "it branches"),
        ("def parse(record):\n    return tf.io.parse_single_example(record, A if B else C)\n", "it branches"),
        ("def parse(record):\n    return tf.io.parse_single_example(record, A or B)\n", "it branches"),
        ("def parse(record):\n    return tf.io.parse_single_example(record, {k: F[k] for k in F if k in A})\n", "it branches"),
        ("def \\\n    parse(record):\n    return tf.io.parse_single_example(record, A)\n", "does not follow its `def`"),
        (f"def parse(record):\n    while tf.constant(True):\n    {BODY}{BODY}", "a statement that is not copied"),
        (f"def parse(record):\n    with tf.device('cpu'):\n    {BODY}", "a statement that is not copied"),
        ("def parse(record):\n    return parse_single_example(record, FEATURES)\n", "by its name alone"),
        ("def parse(record):\n    return parsed(record)\n", "does not call `parse_single_example` itself"),
        (f"def parse(record):\n    def inner():\n    {BODY}    return inner()\n", "it defines a function"),
    ],
)  # fmt: skip
def test_what_is_not_copied(text, reason):
    with pytest.raises(CannotSplitError, match=reason):
        copied(text)


def test_a_lambda_is_not_copied():
    with pytest.raises(CannotSplitError, match="it is a lambda"):
        copied("def other(): pass\n", "ds = ds.map(lambda record: tf.io.parse_single_example(record, FEATURES))")
