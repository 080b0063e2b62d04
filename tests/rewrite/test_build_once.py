"""What makes a dataset moves before the loop, byte for byte; where a later epoch may make another one, nothing moves."""
# ruff: noqa: E501 - whole scripts, a line each

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.model import catalog
from advisor.model.calls import Call, Site
from advisor.model.edits import BuildOnce, InsertAfter, MoveAfter, SetArgument
from advisor.model.finding import Fix, Safety
from advisor.rewrite.cannot_rewrite import CannotRewriteError
from advisor.rewrite.source import rewritten

SOURCES = {"range", "from_tensor_slices", "from_tensors", "TFRecordDataset", "TextLineDataset", "list_files", "zip"}
READERS = {"fit", "evaluate", "iter", "enumerate"}
HEAD = "import tensorflow as tf\n"


def site_of(node, name="", file="train.py"):
    """The place of an expression as the recorder writes it; of a call, from the name of the method on."""
    line, start = node.lineno, node.col_offset
    if isinstance(node, ast.Call):
        line, start = node.func.end_lineno, node.func.end_col_offset - len(name)
    return Site(file, line, start + 1, node.end_lineno, node.end_col_offset + 1)


def name_of(node):
    return getattr(node.func, "attr", getattr(node.func, "id", "")) if isinstance(node, ast.Call) else ""


def recorded(text):
    """The calls of tf.data in a text, by id, and the last place that reads a dataset."""
    nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call | ast.For)]
    nodes.sort(key=lambda node: (node.lineno, node.col_offset))
    made = [node for node in nodes if name_of(node) in SOURCES | set(catalog.TRANSFORMATIONS) - {"enumerate"}]
    made = [node for node in made if isinstance(node.func, ast.Attribute)]
    made.sort(key=lambda node: (node.end_lineno, node.end_col_offset))
    calls = {}
    for number, node in enumerate(made):
        method = name_of(node)
        explicit = tuple(f"arg{i}" for i in range(len(node.args) + len(node.keywords)))
        calls[f"c{number}"] = Call(f"c{number}", method, site_of(node, method), explicit=explicit)
    iterated = [node.iter for node in nodes if isinstance(node, ast.For)]
    reading = [node for node in nodes if name_of(node) in READERS and node not in iterated]
    reader = max([*iterated, *reading], key=lambda node: (node.lineno, node.col_offset))
    return calls, site_of(reader, name_of(reader))


def once(text, method=None, *more):
    """The text after the edit; `method` ends the dataset, else the call that ends last before the reader's end."""
    calls, reader = recorded(text)
    ends = [call for call in calls.values() if method in (None, call.method)]
    return rewritten(text, (BuildOnce(ends[-1].id, reader), *more), calls)


HELPER = """
def make_dataset(count):
    \"\"\"Rows in batches.\"\"\"
    rows = tf.data.Dataset.range(count)
    return rows.shuffle(8).batch(4)

"""

FORMS = {
    "a helper in the line of the loop": (
        HELPER + "\nfor epoch in range(3):\n    for batch in make_dataset(32):  # here\n        print(batch)\n",
        HELPER
        + "\ndataset = make_dataset(32)\nfor epoch in range(3):\n    for batch in dataset:  # here\n        print(batch)\n",
    ),
    "a name that is taken": (
        HELPER + "dataset = 3\nfor epoch in range(3):\n    for batch in make_dataset(32):\n        print(batch)\n",
        HELPER
        + "dataset = 3\ndataset_2 = make_dataset(32)\nfor epoch in range(3):\n    for batch in dataset_2:\n        print(batch)\n",
    ),
    "fit": (
        HELPER + "for _ in range(3):\n    model.fit(make_dataset(32), epochs=1)\n",
        HELPER + "dataset = make_dataset(32)\nfor _ in range(3):\n    model.fit(dataset, epochs=1)\n",
    ),
    "fit with a keyword": (
        HELPER + "for _ in range(3):\n    history = model.fit(epochs=1, x=make_dataset(32))\n",
        HELPER + "dataset = make_dataset(32)\nfor _ in range(3):\n    history = model.fit(epochs=1, x=dataset)\n",
    ),
    "enumerate": (
        HELPER + "for _ in range(3):\n    for step, batch in enumerate(make_dataset(32)):\n        print(step)\n",
        HELPER
        + "dataset = make_dataset(32)\nfor _ in range(3):\n    for step, batch in enumerate(dataset):\n        print(step)\n",
    ),
    "iter": (
        HELPER + "for _ in range(3):\n    batches = iter(make_dataset(32))\n    print(next(batches))\n",
        HELPER
        + "dataset = make_dataset(32)\nfor _ in range(3):\n    batches = iter(dataset)\n    print(next(batches))\n",
    ),
    "a chain": (
        "for _ in range(3):\n    for batch in tf.data.Dataset.range(9).batch(2):\n        print(batch)\n",
        "dataset = tf.data.Dataset.range(9).batch(2)\nfor _ in range(3):\n    for batch in dataset:\n        print(batch)\n",
    ),
    "a chain in parentheses": (
        "for _ in range(3):\n    for batch in (\n        tf.data.Dataset.range(9)\n        .batch(2)  # two\n    ):\n        print(batch)\n",
        "dataset = (\n        tf.data.Dataset.range(9)\n        .batch(2)  # two\n    )\nfor _ in range(3):\n    for batch in dataset:\n"
        "        print(batch)\n",
    ),
    "a chain in the parentheses of fit": (
        "for _ in range(3):\n    model.fit(tf.data.Dataset.range(9)\n              .batch(2))\n",
        "dataset = (tf.data.Dataset.range(9)\n              .batch(2))\nfor _ in range(3):\n    model.fit(dataset)\n",
    ),
    "one assignment": (
        HELPER + "for _ in range(3):\n    ds = make_dataset(32)\n    for batch in ds:\n        print(batch)\n",
        HELPER + "ds = make_dataset(32)\nfor _ in range(3):\n    for batch in ds:\n        print(batch)\n",
    ),
    "assignments with comments": (
        "for _ in range(3):\n    # All rows.\n    ds = tf.data.Dataset.range(9)  # nine\n    ds = (\n        ds.shuffle(9)\n        .batch(2)\n    )\n"
        "\n    # Train.\n    for batch in ds:\n        print(batch)\n",
        "# All rows.\nds = tf.data.Dataset.range(9)  # nine\nds = (\n    ds.shuffle(9)\n    .batch(2)\n)\nfor _ in range(3):\n"
        "    # Train.\n    for batch in ds:\n        print(batch)\n",
    ),
    "other lines before it stay": (
        "for epoch in range(3):\n    print(epoch)\n    ds = tf.data.Dataset.range(9).batch(2)\n    model.fit(ds)\n    model.evaluate(ds)\n",
        "ds = tf.data.Dataset.range(9).batch(2)\nfor epoch in range(3):\n    print(epoch)\n    model.fit(ds)\n    model.evaluate(ds)\n",
    ),
    "what it reads moves too": (
        "SIZE = 9\nfor _ in range(3):\n    rows = tf.data.Dataset.range(SIZE)\n    ds = rows.batch(2)\n    model.fit(ds)\n",
        "SIZE = 9\nrows = tf.data.Dataset.range(SIZE)\nds = rows.batch(2)\nfor _ in range(3):\n    model.fit(ds)\n",
    ),
    "in a function, with tabs and other line ends": (
        "def main():\r\n\tn = 0\r\n\twhile n < 3:\r\n\t\tds = tf.data.Dataset.range(9)\r\n\t\tds = ds.map(\r\n\t\t\tlambda x: x + 1)\r\n"
        "\t\tfor batch in ds:\r\n\t\t\tprint(batch)\r\n\t\tn += 1\r\n",
        "def main():\r\n\tn = 0\r\n\tds = tf.data.Dataset.range(9)\r\n\tds = ds.map(\r\n\t\tlambda x: x + 1)\r\n\twhile n < 3:\r\n"
        "\t\tfor batch in ds:\r\n\t\t\tprint(batch)\r\n\t\tn += 1\r\n",
    ),
    "inside an outer loop": (
        "for fold in range(5):\n    print(fold)\n    for epoch in range(3):\n        ds = tf.data.Dataset.range(9).batch(2)\n"
        "        for batch in ds:\n            print(batch)\n",
        "for fold in range(5):\n    print(fold)\n    ds = tf.data.Dataset.range(9).batch(2)\n    for epoch in range(3):\n"
        "        for batch in ds:\n            print(batch)\n",
    ),
    "a string over several lines": (
        'for _ in range(3):\n    ds = tf.data.TextLineDataset("""\n    a\n    """)\n    for batch in ds:\n        print(batch)\n',
        'ds = tf.data.TextLineDataset("""\n    a\n    """)\nfor _ in range(3):\n    for batch in ds:\n        print(batch)\n',
    ),
    "a dataset made before the loop": (
        "import tensorflow_datasets as tfds\nbase = tf.data.Dataset.range(9)\nbase = base.shuffle(9)\nwords = base.map(str)\n"
        "photos = tfds.load('flowers', split='train').take(3)\nbase.foo(words)\n\n"
        "for _ in range(3):\n    ds = tf.data.Dataset.zip((words.batch(2), photos))\n    for batch in ds:\n        print(batch)\n",
        "import tensorflow_datasets as tfds\nbase = tf.data.Dataset.range(9)\nbase = base.shuffle(9)\nwords = base.map(str)\n"
        "photos = tfds.load('flowers', split='train').take(3)\nbase.foo(words)\n\n"
        "ds = tf.data.Dataset.zip((words.batch(2), photos))\nfor _ in range(3):\n    for batch in ds:\n        print(batch)\n",
    ),
    "functions that only compute": (
        "import os\nROOT = 'data'\nARGS = parser.parse_args()\n\n\ndef scale(x):\n    parts = []\n    for i in range(2):\n"
        "        parts.append(tf.cast(x, tf.float32) / i)\n    return tf.stack(parts)\n\n\n"
        "for _ in range(ARGS.epochs):\n    ds = tf.data.TFRecordDataset(os.path.join(ROOT, 'a'))\n"
        "    ds = ds.map(scale).batch(ARGS.batch)\n    model.fit(ds)\n",
        "import os\nROOT = 'data'\nARGS = parser.parse_args()\n\n\ndef scale(x):\n    parts = []\n    for i in range(2):\n"
        "        parts.append(tf.cast(x, tf.float32) / i)\n    return tf.stack(parts)\n\n\n"
        "ds = tf.data.TFRecordDataset(os.path.join(ROOT, 'a'))\nds = ds.map(scale).batch(ARGS.batch)\n"
        "for _ in range(ARGS.epochs):\n    model.fit(ds)\n",
    ),
}


@pytest.mark.parametrize(("before", "after"), FORMS.values(), ids=FORMS)
def test_it_moves_before_the_loop(before, after):
    assert once(HEAD + before) == HEAD + after


LOOP = "for epoch in range(3):\n"
READ = "    for batch in ds:\n        print(batch)\n"

REFUSED = {
    "the target of the loop": (LOOP + "    ds = tf.data.Dataset.range(epoch)\n" + READ, "epoch is assigned in the loop"),
    "a name that the loop binds": (
        "n = 1\n" + LOOP + "    ds = tf.data.Dataset.range(n)\n" + READ + "    n += 1\n", "n is assigned in the loop"),
    "a name that is deleted": ("n = 1\n" + LOOP + "    ds = tf.data.Dataset.range(n)\n" + READ + "    del n\n", "n is assigned"),
    "a list that grows": (
        "files = ['a']\n" + LOOP + "    ds = tf.data.TFRecordDataset(files)\n" + READ + "    files.append('b')\n",
        "files.append is called"),
    "a list that a function changes": (
        "files = ['a']\n\n\ndef more():\n    files.append('b')\n\n\n" + LOOP + "    ds = tf.data.TFRecordDataset(files)\n" + READ
        + "    more()\n", "files.append is called (line 6)"),
    "a list that is passed on": (
        "files = ['a']\n" + LOOP + "    ds = tf.data.TFRecordDataset(files)\n" + READ + "    more(files)\n", "files is passed to more"),
    "a list with another name": (
        "files = ['a']\nothers = files\n" + LOOP + "    ds = tf.data.TFRecordDataset(files)\n" + READ, "files is also used (line 3)"),
    "an item": (
        "sizes = [1]\n" + LOOP + "    ds = tf.data.Dataset.range(sizes[0])\n" + READ + "    sizes[0] += 1\n", "sizes is changed"),
    "an attribute": (
        "args = parser.parse_args()\n" + LOOP + "    ds = tf.data.Dataset.range(args.n)\n" + READ + "    args.n = 4\n",
        "args.n is changed"),
    "an object of a class": (
        "class Level:\n    @property\n    def size(self):\n        return next(self.sizes)\n\n\nlevel = Level()\n" + LOOP
        + "    ds = tf.data.Dataset.range(level.size)\n" + READ, "does not show that level holds a plain value"),
    "a dataset that is rebound": (
        "base = tf.data.Dataset.range(9)\n" + LOOP + "    ds = base.batch(2)\n" + READ + "    base = ds\n",
        "base is assigned in the loop"),
    "a dataset that a function rebinds": (
        "base = tf.data.Dataset.range(9)\n\n\ndef skip():\n    global base\n    base = base.skip(1)\n\n\n" + LOOP
        + "    ds = base.batch(2)\n" + READ + "    skip()\n", "base is declared global"),
    "what apply returns": (
        "base = tf.data.Dataset.range(9).apply(change)\n" + LOOP + "    ds = base.batch(2)\n" + READ, "does not show that base holds"),
    "all splits": (
        "import tensorflow_datasets as tfds\nbase = tfds.load('flowers')\n" + LOOP + "    ds = base['train'].batch(2)\n" + READ,
        "does not show that base holds"),
    "options, which can be changed": (
        "options = tf.data.Options()\n" + LOOP + "    ds = tf.data.Dataset.range(9).with_options(options)\n" + READ,
        "does not show that options holds"),
    "an object with the methods of a dataset": (
        "base = Data().batch(3)\n" + LOOP + "    ds = tf.data.Dataset.from_tensor_slices(base.batch(2))\n" + READ, "does not show that base holds"),
    "an object that its function uses": (
        "level = Level()\n\n\ndef crop(x):\n    return x[: level.next()]\n\n\n" + LOOP
        + "    ds = tf.data.Dataset.range(3).map(crop)\n" + READ, "level.next is called"),
    "global": (
        "n = 1\n\n\ndef raise_n():\n    global n\n    n += 1\n\n\n" + LOOP + "    ds = tf.data.Dataset.range(n)\n" + READ,
        "n is declared global"),
    "a helper that counts": (
        "calls = []\n\n\ndef make():\n    calls.append(1)\n    return tf.data.Dataset.range(len(calls))\n\n\n" + LOOP
        + "    ds = make()\n" + READ, "calls.append is called"),
    "print": (
        "def make():\n    print('made')\n    return tf.data.Dataset.range(3)\n\n\n" + LOOP + "    ds = make()\n" + READ, "print is called"),
    "random numbers": (
        "import random\n" + LOOP + "    ds = tf.data.Dataset.range(random.randint(1, 9))\n" + READ, "random.randint is called"),
    "numpy": ("import numpy as np\n" + LOOP + "    ds = tf.data.Dataset.from_tensor_slices(np.random.rand(3))\n" + READ, "is called"),
    "next": ("sizes = iter([1, 2])\n" + LOOP + "    ds = tf.data.Dataset.range(next(sizes))\n" + READ, "next is called"),
    "open": (LOOP + "    ds = tf.data.TFRecordDataset(open('list').read())\n" + READ, "is called"),
    "a glob": ("import glob\n" + LOOP + "    ds = tf.data.TFRecordDataset(glob.glob('*'))\n" + READ, "glob.glob is called"),
    "an unknown function": (LOOP + "    ds = tf.data.Dataset.range(size_of(3))\n" + READ, "size_of is called"),
    "a decorator": (
        "@cached\ndef make():\n    return tf.data.Dataset.range(3)\n\n\n" + LOOP + "    ds = make()\n" + READ, "make has a decorator"),
    "yield": (
        "def make():\n    yield tf.data.Dataset.range(3)\n\n\n" + LOOP + "    ds = make()\n" + READ, "not known to do the same"),
    "a method": (LOOP + "    ds = self.make().batch(3)\n" + READ, "self.make is called"),
    "conditional": (
        LOOP + "    if epoch:\n        ds = tf.data.Dataset.range(3)\n" + READ, "not only assigned by statements directly in the body"),
    "another one in the first epoch": (
        LOOP + "    ds = tf.data.Dataset.range(3)\n    if epoch:\n        ds = ds.batch(2)\n" + READ, "not only assigned by"),
    "after continue": (
        LOOP + "    if epoch == 1:\n        continue\n    ds = tf.data.Dataset.range(3)\n" + READ, "may leave the pass"),
    "in try": (
        LOOP + "    try:\n        ds = tf.data.Dataset.range(3)\n    finally:\n        pass\n" + READ, "not only assigned by"),
    "read before": (
        "ds = []\n" + LOOP + "    print(ds)\n    ds = tf.data.Dataset.range(3)\n" + READ, "ds is also read in line 4"),
    "read by a function": (
        "def show():\n    print(ds)\n\n\n" + LOOP + "    ds = tf.data.Dataset.range(3)\n" + READ, "ds is also read in line 3"),
    "from the last epoch": ("ds = tf.data.Dataset.range(3)\n" + LOOP + "    ds = ds.batch(2)\n" + READ, "ds is also read in line 4"),
    "assigned before the loop": ("ds = tf.data.Dataset.range(3)\n" + LOOP + READ, "ds is not assigned in a loop"),
    "a parameter": (
        "def train(size):\n    for epoch in range(3):\n        for batch in tf.data.Dataset.range(size):\n            print(batch)\n",
        "size is a parameter"),
    "a name of another module": (
        "from settings import SIZE\n" + LOOP + "    ds = tf.data.Dataset.range(SIZE)\n" + READ, "SIZE comes from another module"),
    "all names of another module": (
        "from settings import *\n" + LOOP + "    ds = tf.data.Dataset.range(3)\n" + READ, "imports all names of a module"),
    "globals": ("globals()['n'] = 3\n" + LOOP + "    ds = tf.data.Dataset.range(3)\n" + READ, "uses globals"),
    "a side effect while it is traced": (
        "import tensorflow as tf\n\n\ndef scale(x):\n    tf.random.set_seed(1)\n    return x\n\n\n" + LOOP
        + "    ds = tf.data.Dataset.range(3).map(scale)\n" + READ, "tf.random.set_seed is called"),
    "a list that a traced function extends": (
        "sizes = [1]\n\n\ndef grow(x, some):\n    some += [1]\n    return x + len(some)\n\n\ndef scale(x):\n    return grow(x, sizes)\n\n\n"
        + LOOP + "    ds = tf.data.Dataset.range(3).map(scale)\n" + READ, "`some += [1]`"),
    "a layer": (
        "layer = tf.keras.layers.RandomFlip()\n" + LOOP + "    ds = tf.data.Dataset.range(3).map(lambda x: layer(x))\n" + READ,
        "layer is called"),
    "the body of a class": (
        "class Training:\n    for epoch in range(3):\n        ds = tf.data.Dataset.range(3)\n        for batch in ds:\n            print(batch)\n",
        "body of a class"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "why"), REFUSED.values(), ids=REFUSED)
def test_it_stays_where_a_later_epoch_may_be_another_one(text, why):
    with pytest.raises(CannotRewriteError) as error:
        once(HEAD + text)
    assert why in str(error.value)


def test_a_loop_around_the_caller_is_none_around_the_line():
    text = (
        HEAD
        + "def train():\n    for batch in tf.data.Dataset.range(3):\n        print(batch)\n\n\n"
        + LOOP
        + "    train()\n"
    )
    calls, _ = recorded(text)
    reader = site_of(ast.parse(text).body[1].body[0].iter, "range")
    with pytest.raises(CannotRewriteError, match="not in a loop of its function"):
        rewritten(text, (BuildOnce("c0", reader),), calls)


def test_another_file_is_refused():
    text = HEAD + LOOP + "    ds = tf.data.Dataset.range(3)\n" + READ
    calls, reader = recorded(text)
    elsewhere = Site("data.py", reader.line, reader.column, reader.end_line, reader.end_column)
    with pytest.raises(CannotRewriteError, match="another file"):
        rewritten(text, (BuildOnce("c0", elsewhere),), calls)


def test_a_dataset_of_another_call_is_refused():
    text = HEAD + "other = tf.data.Dataset.range(9).skip(1)\n" + LOOP + "    ds = tf.data.Dataset.range(3)\n" + READ
    with pytest.raises(CannotRewriteError, match="does not show that the dataset comes from skip"):
        once(text, "skip")


def test_other_changes_move_along():
    text = HEAD + LOOP + "    ds = tf.data.Dataset.range(3).map(lambda x: x)\n    ds = ds.batch(2)\n" + READ
    after = (
        HEAD
        + "ds = tf.data.Dataset.range(3).map(lambda x: x, num_parallel_calls=2)\nds = ds.batch(2).prefetch(1)\n"
        + LOOP
        + READ
    )
    assert (
        once(text, None, SetArgument("c1", "num_parallel_calls", 2), InsertAfter("c2", "prefetch", (("", 1),))) == after
    )


def test_a_cache_is_added_and_a_shuffle_moves_behind_it_while_the_statement_moves():
    chain = "tf.data.Dataset.range(3).shuffle(3).map(lambda x: x).batch(2)"
    text = HEAD + LOOP + f"    ds = {chain}\n" + READ
    after = HEAD + "ds = tf.data.Dataset.range(3).map(lambda x: x).cache().shuffle(3).batch(2)\n" + LOOP + READ
    assert once(text, None, MoveAfter("c1", "c2"), InsertAfter("c2", "cache")) == after


def test_a_shuffle_does_not_move_between_statements_that_move():
    text = HEAD + LOOP + "    ds = tf.data.Dataset.range(3).shuffle(3)\n    ds = ds.map(lambda x: x).batch(2)\n" + READ
    with pytest.raises(CannotRewriteError):
        once(text, None, MoveAfter("c1", "c2"), InsertAfter("c2", "cache"))


def test_a_link_at_the_end_of_a_line_that_reads_is_refused():
    text = HEAD + LOOP + "    for batch in tf.data.Dataset.range(3).batch(2):\n        print(batch)\n"
    with pytest.raises(CannotRewriteError, match="changed otherwise at the same time"):
        once(text, None, InsertAfter("c1", "prefetch", (("", 1),)))


def test_twice_is_once():
    text = HEAD + LOOP + "    ds = tf.data.Dataset.range(3)\n" + READ
    calls, reader = recorded(text)
    twin = {**calls, "again": Call("again", "range", calls["c0"].site, explicit=("arg0",))}
    edits = (BuildOnce("c0", reader), BuildOnce("again", reader))
    assert rewritten(text, edits, twin) == rewritten(text, edits[:1], calls)
    assert Fix(edits, Safety.EXACT, is_auto=True).edits == edits


NAMES = ("SIZE", "STEP", "epoch", "count", "last")
CHANGING = {"epoch", "count", "last"}


@given(
    st.lists(st.sampled_from(NAMES), min_size=1, max_size=4),
    st.lists(st.sampled_from(["+", "*", "//"]), min_size=3, max_size=3),
    st.booleans(),
    st.booleans(),
    st.sampled_from(["    ", "\t", "  "]),
)
def test_what_depends_on_the_loop_never_moves(names, operators, is_inline, is_helper, indent):
    expression = names[0] + "".join(f" {operator} {name}" for operator, name in zip(operators, names[1:], strict=False))
    making = f"tf.data.Dataset.range({expression}).batch(2)"
    head = HEAD + "SIZE = 9\nSTEP = 2\ncount = 1\nlast = 1\n"
    if is_helper:
        head += f"\n\ndef make(given):\n{indent}return tf.data.Dataset.range(given).batch(2)\n\n\n"
        making = f"make({expression})"
    lines = (
        [f"{indent}for batch in {making}:"] if is_inline else [f"{indent}ds = {making}", f"{indent}for batch in ds:"]
    )
    body = [*lines, f"{indent}{indent}last = 3", f"{indent}count += 1"]
    text = head + "for epoch in range(5):\n" + "\n".join(body) + "\n"
    if CHANGING & set(names):
        with pytest.raises(CannotRewriteError):
            once(text)
        return
    after = once(text)
    tree = ast.parse(after)
    loop = next(node for node in tree.body if isinstance(node, ast.For))
    assert "tf.data" not in ast.unparse(loop) and "make(" not in ast.unparse(loop)
    assert len(after.splitlines()) == len(text.splitlines()) + is_inline
