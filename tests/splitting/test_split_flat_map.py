"""Texts of functions of `flat_map` that are cut before they make a dataset. The traced lines are given."""

from __future__ import annotations

import ast
import textwrap
from dataclasses import replace

import pytest

from advisor.splitting import CannotSplitError, Halves, split_function
from tests.splitting.test_split import ONE, recorded, texts

MAKERS = {"from_tensor_slices": "TensorSliceDataset", "zip": "ZipDataset", "range": "RangeDataset"}


def split(text: str, is_script: bool = True) -> Halves:
    text = textwrap.dedent(text).lstrip("\n")
    place = text.rindex(".flat_map(")
    _, call = recorded(f"{text[:place]}.map({text[place + len('.flat_map(') :]}", "nothing")
    assert call.function is not None and call.site is not None
    lines = tuple(
        replace(line, ops={MAKERS[line.called]: 1}) if line.called in MAKERS else line for line in call.function.lines
    )
    column = call.site.end_column + len("flat_map") - len("map")
    site = replace(call.site, end_column=column)
    function = replace(call.function, lines=lines, random_ops=())
    return split_function(text, replace(call, method="flat_map", site=site, function=function), ONE, is_script)


def test_what_precedes_the_dataset_becomes_a_function_of_its_own():
    halves = split("""
        def slices(file):
            # Decode it.
            sound = decode(read(file))
            spectrum = stft(sound)
            return tf.data.Dataset.from_tensor_slices(spectrum)
        ds = ds.flat_map(slices)
        """)
    assert halves.names == ("spectrum",)
    assert texts(halves) == textwrap.dedent("""\
        def slices_values(file):
            # Decode it.
            sound = decode(read(file))
            spectrum = stft(sound)
            return spectrum
        ---
        def slices(spectrum):
            return tf.data.Dataset.from_tensor_slices(spectrum)
        """)
    assert (halves.line, halves.ops) == (5, {"Decode": 1, "Read": 1, "Stft": 1})


def test_an_argument_of_the_call_that_makes_the_dataset_joins_the_first_half():
    halves = split("""
        def slices(file):
            sound = decode(file)
            return tf.data.Dataset.from_tensor_slices(stft(sound))
        ds = ds.flat_map(slices)
        """)
    assert texts(halves) == textwrap.dedent("""\
        def slices_values(file):
            sound = decode(file)
            value = stft(sound)
            return value
        ---
        def slices(value):
            return tf.data.Dataset.from_tensor_slices(value)
        """)


def test_a_lambda_is_cut_and_what_follows_the_dataset_stays():
    halves = split("ds = ds.flat_map(lambda file: tf.data.Dataset.from_tensor_slices(decode(file)).batch(2))")
    assert texts(halves) == (
        "lambda file: decode(file)---\nlambda value: tf.data.Dataset.from_tensor_slices(value).batch(2)"
    )


def test_several_values_are_passed_on_and_another_user_keeps_the_function():
    halves = split("""
        def slices(file):
            rows, count = decode(file), size(file)
            numbers = tf.data.Dataset.range(count)
            return tf.data.Dataset.zip((tf.data.Dataset.from_tensor_slices(rows), numbers))
        check(slices)
        ds = ds.flat_map(slices)
        """)
    assert texts(halves) == textwrap.dedent("""\
        def slices_values(file):
            rows, count = decode(file), size(file)
            return rows, count
        ---
        def slices_dataset(rows, count):
            numbers = tf.data.Dataset.range(count)
            return tf.data.Dataset.zip((tf.data.Dataset.from_tensor_slices(rows), numbers))
        """)
    assert not halves.texts.is_replaced


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("return tf.data.Dataset.from_tensor_slices(file)", "nothing is computed before it"),
        (
            "if decode(file) > 1:\n        return tf.data.Dataset.from_tensor_slices(file)\n"
            "    return tf.data.Dataset.range(3)",
            "everything is inside the `if` that makes it",
        ),
        ("return decode(file)", "the traced graph does not show which of its lines makes the dataset"),
    ],
)
def test_functions_that_are_not_cut_and_why(text, reason):
    with pytest.raises(CannotSplitError) as caught:
        split(f"def slices(file):\n    {text}\nds = ds.flat_map(slices)\n")
    assert caught.value.reason == reason


def test_halves_are_valid_python():
    halves = split("""
        def slices(file, size=4):
            sound = decode(file, size)
            return tf.data.Dataset.from_tensor_slices(sound).take(size)
        ds = ds.flat_map(slices)
        """)
    ast.parse(halves.texts.first)
    assert halves.texts.second.startswith("def slices(sound, size=4):")
