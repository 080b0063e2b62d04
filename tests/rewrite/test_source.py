"""Arguments, calls and options that are set or added in source text as people write it: what must change, and nothing else."""

from __future__ import annotations

import ast
import textwrap

import pytest

from advisor.model.edits import InsertAfter, MoveAfter, Remove, SetArgument, SetOption
from advisor.rewrite.source import rewrite
from tests.rewrite.source_text import AUTOTUNE, CACHE, PARALLEL, PREFETCH, calls_in, fix, rewritten

SET_ARGUMENT = {
    "one line": ("ds = ds.map(decode)", "ds = ds.map(decode, num_parallel_calls=tf.data.AUTOTUNE)"),
    "a keyword replaced": (
        "ds = ds.map(f, num_parallel_calls=4)",
        "ds = ds.map(f, num_parallel_calls=tf.data.AUTOTUNE)",
    ),
    "spaces around =": (
        "ds = ds.map(f, num_parallel_calls = 4 )",
        "ds = ds.map(f, num_parallel_calls = tf.data.AUTOTUNE )",
    ),
    "a position replaced": ("ds = ds.map(f, 4)", "ds = ds.map(f, tf.data.AUTOTUNE)"),
    "a value in parentheses": (
        "ds = ds.map(f, num_parallel_calls=(2 + 2))",
        "ds = ds.map(f, num_parallel_calls=tf.data.AUTOTUNE)",
    ),
    "a lambda": (
        "ds = ds.map(lambda x, y: (x / 255, y))",
        "ds = ds.map(lambda x, y: (x / 255, y), num_parallel_calls=tf.data.AUTOTUNE)",
    ),
    "parentheses and comments inside a block": (
        """\
        if True:
            ds = (ds).map (  # here
                f, num_parallel_calls = (
                    2  # two
                ),  # end
            )""",
        """\
        if True:
            ds = (ds).map (  # here
                f, num_parallel_calls = tf.data.AUTOTUNE,  # end
            )""",
    ),
    "a trailing comma on one line": ("ds = ds.map(f,)", "ds = ds.map(f, num_parallel_calls=tf.data.AUTOTUNE,)"),
    "an argument a line": (
        """\
        ds = ds.map(
            decode,
        )""",
        """\
        ds = ds.map(
            decode,
            num_parallel_calls=tf.data.AUTOTUNE,
        )""",
    ),
    "an argument a line, a comment, no trailing comma": (
        """\
        ds = ds.map(
            map_func=decode  # slow
        )""",
        """\
        ds = ds.map(
            map_func=decode,  # slow
            num_parallel_calls=tf.data.AUTOTUNE
        )""",
    ),
    "a comment behind the trailing comma": (
        """\
        ds = ds.map(
            decode,  # slow
        )""",
        """\
        ds = ds.map(
            decode,  # slow
            num_parallel_calls=tf.data.AUTOTUNE,
        )""",
    ),
    "a lambda over lines": (
        """\
        ds = ds.map(lambda x: decode(
            x, 3)
        )""",
        """\
        ds = ds.map(lambda x: decode(
            x, 3), num_parallel_calls=tf.data.AUTOTUNE
        )""",
    ),
    "a chain with comments": (
        """\
        ds = (
            tf.data.TFRecordDataset(files)  # records
            .map(decode)  # images
            .batch(32)
        )""",
        """\
        ds = (
            tf.data.TFRecordDataset(files)  # records
            .map(decode, num_parallel_calls=tf.data.AUTOTUNE)  # images
            .batch(32)
        )""",
    ),
    "characters of several bytes before it": (
        'ds = make("données 🌍").map(décode)',
        'ds = make("données 🌍").map(décode, num_parallel_calls=tf.data.AUTOTUNE)',
    ),
    "inside a lambda": (
        "ds = ds.interleave(lambda f: tf.data.TFRecordDataset(f).map(decode))",
        """\
        ds = ds.interleave(
            lambda f: tf.data.TFRecordDataset(f).map(
                decode, num_parallel_calls=tf.data.AUTOTUNE
            )
        )""",
    ),
}


@pytest.mark.parametrize(("before", "after"), SET_ARGUMENT.values(), ids=SET_ARGUMENT)
def test_set_argument(before, after):
    header = "import tensorflow as tf\n\n"
    before, after = header + textwrap.dedent(before), header + textwrap.dedent(after)
    assert rewritten(before, PARALLEL) == after
    ast.parse(after)


INSERT = {
    "an assignment": ("ds = ds.map(f)\n", "ds = ds.map(f).cache()\n"),
    "a return": ("def make(ds):\n\treturn ds.map(f)\n", "def make(ds):\n\treturn ds.map(f).cache()\n"),
    "within a chain on one line": ("ds = ds.map(f).batch(8)\n", "ds = ds.map(f).cache().batch(8)\n"),
    "an argument": ("model.fit(ds.map(f), epochs=3)\n", "model.fit(ds.map(f).cache(), epochs=3)\n"),
    "in a chain over lines": (
        "ds = (\n    ds\n    .map(f)\n    .batch(8)\n)\n",
        "ds = (\n    ds\n    .map(f)\n    .cache()\n    .batch(8)\n)\n",
    ),
    "in a function, receivers in parentheses, comments": (
        "def make(ds):\n    return (\n        (ds)  # (in)\n        .map(f)  # out\n        .batch(8))\n",
        "def make(ds):\n    return (\n        (ds)  # (in)\n        .map(f)  # out\n        .cache()\n        .batch(8))\n",
    ),
    "at the end of a chain, behind a comment": (
        "ds = (ds\n      .shuffle(9)  # all\n      .map(f)  # decode\n      )\n",
        "ds = (ds\n      .shuffle(9)  # all\n      .map(f)  # decode\n      .cache()\n      )\n",
    ),
    "with backslashes": (
        "ds = ds \\\n    .map(f) \\\n    .batch(8)\n",
        "ds = ds \\\n    .map(f) \\\n    .cache() \\\n    .batch(8)\n",
    ),
    "the last with backslashes": ("ds = ds \\\n    .map(f)\n", "ds = ds \\\n    .map(f) \\\n    .cache()\n"),
    "with trailing dots": ("ds = ds.map(\n    f\n).batch(8)\n", "ds = ds.map(\n    f\n).cache().batch(8)\n"),
    "Windows line ends and tabs": (
        "if x:\r\n\tds = (ds\r\n\t\t.map(f)\r\n\t)\r\n",
        "if x:\r\n\tds = (ds\r\n\t\t.map(f)\r\n\t\t.cache()\r\n\t)\r\n",
    ),
    "no line end": ("ds = ds.map(f)", "ds = ds.map(f).cache()"),
}


@pytest.mark.parametrize(("before", "after"), INSERT.values(), ids=INSERT)
def test_insert_after(before, after):
    assert rewritten(before, CACHE) == after
    ast.parse(after)


def test_insert_after_the_first_of_a_chain_over_lines():
    before = "ds = (\n    tf.data.TFRecordDataset(files)\n    .map(f)\n)\n"
    after = "ds = (\n    tf.data.TFRecordDataset(files)\n    .cache()\n    .map(f)\n)\n"
    assert rewritten(before, InsertAfter("TFRecordDataset", "cache")) == after


NAMES = {
    "import tensorflow as tf": "tf.data.AUTOTUNE",
    "import tensorflow": "tensorflow.data.AUTOTUNE",
    "import tensorflow.compat.v2 as tf": "tf.data.AUTOTUNE",
    "from tensorflow import data": "data.AUTOTUNE",
    "from tensorflow import data as tfd": "tfd.AUTOTUNE",
    "from tensorflow.data import AUTOTUNE, Dataset": "AUTOTUNE",
    "from tensorflow.data.experimental import AUTOTUNE": "AUTOTUNE",
    "try:\n    import tensorflow as tf\nexcept ImportError:\n    tf = None": "-1",
    "def other():\n    import tensorflow as tf": "-1",
    "if TYPE_CHECKING:\n    import tensorflow as tf": "-1",
    "for tf in range(9):\n    import tensorflow": "tensorflow.data.AUTOTUNE",
}


@pytest.mark.parametrize(("imports", "name"), NAMES.items())
def test_autotune_is_written_in_the_files_own_names(imports, name):
    text = f"{imports}\nds = ds.batch(8)\n"
    assert rewritten(text, PREFETCH) == f"{imports}\nds = ds.batch(8).prefetch({name})\n"


IMPORTS = {
    "beside others": ("import numpy as np\nfrom tensorflow.data import Dataset\n", 2),
    "behind a docstring": ('"""What it does."""\n\n', 1),
    "behind from __future__": ('"""What it does."""\nfrom __future__ import annotations\n', 2),
    "below the first comments": ("#!/usr/bin/env python\n# -*- coding: utf-8 -*-\n", 2),
    "a name that means something else": ("from tensorflow import data\ndata = load(data)\n", 1),
    "nothing": ("", 0),
}


@pytest.mark.parametrize(("head", "lines"), IMPORTS.values(), ids=IMPORTS)
def test_an_import_is_added_where_none_leads_to_tensorflow(head, lines):
    after = (head + "ds = ds.batch(8).prefetch(tf.data.AUTOTUNE)\n").splitlines(keepends=True)
    after.insert(lines, "import tensorflow as tf\n")
    assert rewritten(head + "ds = ds.batch(8)\n", PREFETCH) == "".join(after)


def test_an_import_inside_the_function_counts_there():
    text = "def make(ds):\n    import tensorflow as tf\n    return ds.batch(8)\n"
    assert rewritten(text, PREFETCH) == text.replace("batch(8)", "batch(8).prefetch(tf.data.AUTOTUNE)")


def test_two_arguments_of_one_call():
    text = "import tensorflow as tf\nds = ds.interleave(read)\n"
    edits = (SetArgument("interleave", "num_parallel_calls", AUTOTUNE), SetArgument("interleave", "cycle_length", 4))
    assert rewritten(text, *edits) == (
        "import tensorflow as tf\nds = ds.interleave(read, num_parallel_calls=tf.data.AUTOTUNE, cycle_length=4)\n"
    )


OPTIONS = """\
import tensorflow as tf

def make(ds):
    options = tf.data.Options()
    options.autotune.enabled = False  # debugging
    options.deterministic = True
    return ds.with_options(options)
"""


def test_remove_an_option():
    after = OPTIONS.replace("    options.autotune.enabled = False  # debugging\n", "")
    assert rewritten(OPTIONS, SetOption("with_options", "autotune.enabled", None)) == after


def test_set_an_option():
    after = OPTIONS.replace("enabled = False", "enabled = True")
    assert rewritten(OPTIONS, SetOption("with_options", "autotune.enabled", True)) == after


NOT_PLAIN = {
    "an option set twice": (OPTIONS.replace("deterministic = True", "autotune.enabled = False"),
                            SetOption("with_options", "autotune.enabled", None)),
    "an option set elsewhere": ("ds = ds.with_options(options())\n", SetOption("with_options", "autotune.enabled", None)),
    "the only statement of a block": (
        "options = tf.data.Options()\nif debug:\n    options.autotune.enabled = False\nds = ds.with_options(options)\n",
        SetOption("with_options", "autotune.enabled", None),
    ),
    "**kwargs": ("ds = ds.map(f, **how)\n", PARALLEL),
    "*args": ("ds = ds.map(*how)\n", PARALLEL),
    "an unknown parameter": ("ds = ds.map(f)\n", SetArgument("map", "speed", 11)),
    "a call in another chain": ("a = a.map(f)\nb = b.cache()\n", MoveAfter("cache", "map")),
    "a line in another block": ("ds = ds.cache()\nif x:\n    ds = ds.map(f)\n", MoveAfter("cache", "map")),
    "a line with something else between": ("ds = ds.cache()\nprint(ds)\nds = ds.map(f)\n", MoveAfter("cache", "map")),
    "a line of another name": ("a = a.cache()\nb = b.map(f)\n", MoveAfter("cache", "map")),
    "backwards": ("ds = ds.map(f)\nds = ds.cache()\n", MoveAfter("cache", "map")),
    "no method call": ("ds = TFRecordDataset(f)\n", Remove("TFRecordDataset")),
    "an unknown call": ("ds = ds.map(f)\n", InsertAfter("filter", "cache")),
    "what is so already": ("import tensorflow as tf\nds = ds.map(f, num_parallel_calls=tf.data.AUTOTUNE)\n", PARALLEL),
}  # fmt: skip


@pytest.mark.parametrize(("text", "edit"), NOT_PLAIN.values(), ids=NOT_PLAIN)
def test_nothing_is_guessed(text, edit):
    assert rewritten(text, edit) is None


def test_a_file_that_has_changed_since_is_left_alone():
    before = "ds = ds.map(f)\n"
    calls = calls_in(before)
    assert rewrite("\n" + before, fix(CACHE), calls) is None
    assert rewrite("ds = ds.zap(f)\n", fix(CACHE), calls) is None
    assert rewrite("ds = ds .map(f)\n", fix(CACHE), calls) is None
    assert rewrite("ds = ds.map(f\n", fix(CACHE), calls) is None
