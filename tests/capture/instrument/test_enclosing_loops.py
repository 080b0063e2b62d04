"""The loops of a script around a place, and how often they run."""

from __future__ import annotations

import sys
import textwrap
from types import SimpleNamespace

import pytest

from advisor.capture.instrument.enclosing_loops import enclosing_loops


@pytest.fixture
def loops_in(tmp_path):
    """Runs a script that calls `here()`, and returns what the first call sees: (count, line) of each loop."""

    def run(text: str, package_of=None, **names):
        path = tmp_path / "train.py"
        path.write_text(textwrap.dedent(text))
        seen = []

        def here():
            if not seen:
                frame = sys._getframe(1)
                known = package_of or (lambda file: "user" if file == str(path) else None)
                seen.append([(loop.count, loop.line) for loop in enclosing_loops(frame, known)])

        exec(compile(path.read_text(), str(path), "exec"), {"here": here, "__name__": "__main__", **names})
        return seen[0]

    return run


def test_no_loop(loops_in):
    assert loops_in("here()") == []


def test_a_loop_over_a_range(loops_in):
    assert loops_in("for epoch in range(3):\n    here()") == [(3, 1)]


@pytest.mark.parametrize(
    ("iterable", "count"),
    [
        ("range(2, 10, 3)", 3), ("range(EPOCHS)", 7), ("range(EPOCHS - 2)", 5), ("range(start, start + EPOCHS)", 7),
        ("range(args.epochs)", 4), ("range(2 * EPOCHS)", 14), ("tqdm(range(EPOCHS))", 7), ("tqdm.trange(EPOCHS)", 7),
        ("enumerate(range(3))", 3), ("range(config.train.epochs)", 5), ("range(-EPOCHS, 0)", 7),
        ("range(len(rows))", 2), ("rows", 2), ("enumerate(rows, 1)", 2), ("(1e-3, 1e-4, 1e-5)", 3), ("[1, *rows]", None),
        ("('train', 'valid')", None), ("splits", None), ("range(len(splits))", 2), ("range(len(datasets))", None),
        ("many", None), ("range(len(many))", None),
        ('range(settings["epochs"])', 6), ('range(settings["train"]["epochs"])', 8), ('range(int(settings["epochs"]))', 6),
        ("range(EPOCHS // 2)", 3), ("range(int(2.5))", None), ("range(len(config))", None), ("range(len('three'))", None),
        ("iter(range(3))", None), ("range(config.property)", None), ('range(config["epochs"])', None), ("config", None),
        ("(row for row in rows)", None), ("range(int('3'))", None),
        ("range(True + 2)", None), ("range(*[3])", None), ("zip(range(3), rows)", None),
    ],
)  # fmt: skip
def test_bounds_that_are_known(loops_in, iterable, count):
    class Config:
        train = SimpleNamespace(epochs=5)

        def __init__(self):
            self.asked = False

        def once(self):
            """By the script itself."""
            if self.asked:
                raise AssertionError("code of the script was run")
            self.asked = True
            return 2

        @property
        def property(self):
            return self.once()

        def __getitem__(self, key):
            return self.once()

        def __len__(self):
            return self.once()

        def __iter__(self):
            return iter([self.once()])

    def tqdm(iterable):
        return iterable

    tqdm.trange = range

    class Dataset:
        @property
        def element_spec(self):
            raise AssertionError("code of the script was run")

    text = f"start, rows, splits = 1, [1, 2], ['train', 'valid']\nfor epoch in {iterable}:\n    here()"
    settings = {"epochs": 6, "train": {"epochs": 8}}
    many = list(range(1001))
    loops = loops_in(text, EPOCHS=7, args=SimpleNamespace(epochs=4), config=Config(), settings=settings, tqdm=tqdm,
                     datasets=[Dataset(), Dataset()], many=many)  # fmt: skip
    assert loops == [(count, 2)]


def test_loops_around_the_calls_count_too(loops_in):
    text = """
    def epoch():
        here()

    def train(epochs):
        for number in range(epochs):
            epoch()

    for fold in range(5):
        train(3)
    """
    assert loops_in(text) == [(3, 6), (5, 9)]


def test_the_loop_whose_iterable_is_evaluated_does_not_count(loops_in):
    assert loops_in("for epoch in range(2):\n    for row in [here()]:\n        pass") == [(2, 1)]


def test_a_loop_beside_does_not_count(loops_in):
    assert loops_in("for row in range(9):\n    pass\nhere()") == []


@pytest.mark.parametrize(
    "text",
    ["while True:\n    here()\n    break", "[here() for epoch in range(3)]", "while True:\n    here(); break"],
)
def test_other_loops_have_no_known_count(loops_in, text):
    assert [count for count, _ in loops_in(text)][:1] == [None]


def test_a_function_inside_a_loop(loops_in):
    text = """
    for epoch in range(3):
        def one():
            here()
        one()
    """
    assert loops_in(text) == [(3, 2)]


def test_a_package_that_calls_back_may_have_a_loop(loops_in, tmp_path):
    text = """
    def on_epoch_end():
        here()

    list(map(call, [on_epoch_end]))
    """

    def call(function):
        function()

    def package_of(file):
        return "user" if file.endswith("train.py") else "keras"

    assert loops_in(text, package_of, call=call) == [(None, 0)]


def test_a_thread_may_run_in_a_loop(loops_in):
    text = """
    import threading

    thread = threading.Thread(target=lambda: here())
    thread.start()
    thread.join()
    """
    assert loops_in(text) == [(None, 0)]


def test_a_file_that_cannot_be_parsed(tmp_path):
    frame = sys._getframe()
    assert enclosing_loops(frame, lambda file: None)[-1].count is None
    assert enclosing_loops(None, lambda file: "user")[-1].count is None
