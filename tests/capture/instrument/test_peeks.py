"""A look at the first element is told from a loop by the text around it."""

from __future__ import annotations

import sys
import textwrap

import pytest

from advisor.capture.instrument.peeks import peek_at


@pytest.fixture
def peeks_in(tmp_path):
    """Runs a script that reads `data` and returns the line of the look of each iteration that begins; None: a loop."""

    def run(text: str, owner="user"):
        path = tmp_path / "train.py"
        path.write_text(textwrap.dedent(text))
        seen = []

        class Data:
            def __iter__(self):
                look = peek_at(sys._getframe(1), lambda file: owner if file == str(path) else None)
                seen.append(None if look is None else look[1])
                return iter([1, 2, 3])

            def as_numpy_iterator(self):
                return iter(self)

        exec(compile(path.read_text(), str(path), "exec"), {"data": Data(), "__name__": "__main__"})
        return seen

    return run


@pytest.mark.parametrize(
    "text",
    [
        "first = next(iter(data))",
        "first = next(data.as_numpy_iterator())",
        "first = next(\n    iter(data), None)",
        "first = iter(data).__next__()",
        "for batch in data:\n    print(batch)\n    break",
        "def shape():\n    for batch in data:\n        return batch\nshape()",
    ],
)
def test_a_look(peeks_in, text):
    (line,) = peeks_in(text)
    assert line is not None and text.splitlines()[line - 1].strip()


@pytest.mark.parametrize(
    "text",
    [
        "for batch in data:\n    print(batch)",
        "for batch in data:\n    if batch == 2:\n        break",
        "batches = iter(data)\nfirst = next(batches)",
        "rows = [batch for batch in data]",
        "rows = list(data)",
        "pairs = list(zip(data, next(iter([[1]]))))",
    ],
)
def test_a_loop(peeks_in, text):
    assert peeks_in(text) == [None]


def test_what_a_library_reads_is_no_look_of_the_script(peeks_in):
    assert peeks_in("first = next(iter(data))", owner="keras") == [None]
