"""Edits on source text as people write it: what must change, and that nothing else does."""

from __future__ import annotations

import ast
import textwrap

import pytest

from advisor.model.finding import (
    Code,
    Edit,
    Fix,
    InsertAfter,
    MoveAfter,
    Remove,
    Safety,
    SetArgument,
    SetOption,
    Vectorize,
)
from advisor.model.recording import Call, Site
from advisor.rewrite.patch import diff_for
from advisor.rewrite.source import rewrite

AUTOTUNE = Code("tf.data.AUTOTUNE")
PARALLEL = SetArgument("map", "num_parallel_calls", AUTOTUNE)
CACHE = InsertAfter("map", "cache")
PREFETCH = InsertAfter("batch", "prefetch", (("", AUTOTUNE),))


def calls_in(text: str, file: str = "train.py") -> dict[str, Call]:
    """Calls as the recorder sees them: by method name, the last one of a name winning; columns in characters."""
    found = {}
    lines = text.splitlines(keepends=True)
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Call):
            continue
        function = node.func
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        line = function.end_lineno

        def character(line: int, column: int) -> int:
            return len(lines[line - 1].encode()[:column].decode())

        start = character(line, function.end_col_offset) - len(name)
        site = Site(file, line, start + 1, node.end_lineno, character(node.end_lineno, node.end_col_offset) + 1)
        found[name] = Call(name, name, site)
    return found


def fix(*edits: Edit) -> Fix:
    return Fix(edits, Safety.EXACT, is_auto=True)


def rewritten(text: str, *edits: Edit) -> str | None:
    return rewrite(text, fix(*edits), calls_in(text))


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
        "ds = ds.interleave(lambda f: tf.data.TFRecordDataset(f).map(decode, num_parallel_calls=tf.data.AUTOTUNE))",
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


VECTORIZE = (MoveAfter("map", "batch"), Vectorize("map"))


def test_a_vectorised_function_uses_names_that_the_file_does_not():
    script = "import tensorflow as tf\nrows = row = 3\nds = ds.map(f).batch(rows)\n"
    each = "lambda row_2: tf.function(f)(*row_2)"
    assert rewritten(script, *VECTORIZE) == script.replace(
        ".map(f).batch(rows)",
        f".batch(rows).map(lambda *rows_2: tf.vectorized_map({each}, rows_2, fallback_to_while_loop=False))",
    )


@pytest.mark.parametrize(
    "script",
    [
        "ds = ds.map(*functions).batch(4)",
        "ds = ds.map(**options).batch(4)",
        "ds = ds.map(f := make()).batch(4)",
        "async def run(ds):\n    return ds.map(await f()).batch(4)",
        "def run(ds):\n    return ds.map((yield)).batch(4)",
        "class Data:\n    def f(x): return x\n    ds = source.map(f).batch(4)",
        "ds = ds.map(lambda x: (\n    x  # as it is\n)).batch(4)",
        "ds = ds.map().batch(4)",
    ],
)
def test_a_function_that_means_something_else_in_a_lambda_is_not_vectorised(script):
    assert rewritten(f"import tensorflow as tf\n{script}\n", MoveAfter("map", "batch")) is not None
    assert rewritten(f"import tensorflow as tf\n{script}\n", *VECTORIZE) is None


def test_links_go_directly_behind_their_call_so_that_the_later_edit_comes_first():
    text = "ds = ds.shuffle(9).map(f)\n"
    edits = (MoveAfter("shuffle", "map"), InsertAfter("map", "repeat"), InsertAfter("map", "cache"))
    assert rewritten(text, *edits) == "ds = ds.map(f).cache().repeat().shuffle(9)\n"


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


def test_diff_is_one_small_hunk_with_paths_under_the_root(tmp_path):
    path = tmp_path / "src" / "train.py"
    path.parent.mkdir()
    text = "import tensorflow as tf\n\n\n\nds = tf.data.Dataset.range(9)\nds = ds.map(f)\n\nprint(ds)\n"
    path.write_text(text)
    assert diff_for(fix(CACHE), calls_in(text, str(path)), tmp_path) == (
        "--- a/src/train.py\n+++ b/src/train.py\n@@ -5,3 +5,3 @@\n ds = tf.data.Dataset.range(9)\n-ds = ds.map(f)\n"
        "+ds = ds.map(f).cache()\n \n"
    )
    assert path.read_text() == text


def test_diff_marks_a_missing_line_end_and_keeps_windows_ones(tmp_path):
    path = tmp_path / "train.py"
    text = "x = 1\r\nds = ds.map(f)"
    path.write_bytes(text.encode())
    diff = diff_for(fix(CACHE), calls_in(text, str(path)), tmp_path)
    assert diff is not None
    assert " x = 1\r\n" in diff
    assert diff.endswith("+ds = ds.map(f).cache()\n\\ No newline at end of file\n")


def test_diff_covers_several_files(tmp_path):
    calls = {}
    for name, method in (("a.py", "map"), ("b.py", "batch")):
        text = f"import tensorflow as tf\nds = ds.{method}(8)\n"
        (tmp_path / name).write_text(text)
        calls |= calls_in(text, str(tmp_path / name))
    diff = diff_for(fix(CACHE, PREFETCH), calls, tmp_path)
    assert diff is not None
    assert diff.index("+++ b/a.py") < diff.index("+++ b/b.py")


def test_files_that_are_not_the_users_are_left_alone(tmp_path):
    text = "ds = ds.map(f)\n"
    inside, outside = tmp_path / "project", tmp_path / "elsewhere.py"
    package = inside / "lib" / "site-packages" / "keras.py"
    package.parent.mkdir(parents=True)
    for path in (outside, package):
        path.write_text(text)
        assert diff_for(fix(CACHE), calls_in(text, str(path)), inside) is None
    assert diff_for(fix(CACHE), calls_in(text, str(inside / "absent.py")), inside) is None


def test_latin_1_source_is_read_in_its_own_encoding(tmp_path):
    path = tmp_path / "train.py"
    text = "# -*- coding: latin-1 -*-\nx = 'é'; ds = ds.map(f)\n"
    path.write_bytes(text.encode("latin-1"))
    diff = diff_for(fix(CACHE), calls_in(text, str(path)), tmp_path)
    assert diff is not None and "+x = 'é'; ds = ds.map(f).cache()" in diff
