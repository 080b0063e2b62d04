"""In twelve functions with a costly line, six of TensorFlow ops and six of Python, that line comes first."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.capture.launch import capture
from advisor.capture.request import CaptureRequest
from advisor.graph import analyse
from advisor.model.codec import decode
from advisor.model.pipeline import Analysis, LineCost
from advisor.model.recording import Recording
from advisor.profile import read_trace

# Beside three busy processes a cheap line came first in two of six runs: it had waited for a core.
pytestmark = [pytest.mark.tensorflow, pytest.mark.long, pytest.mark.timed]

SCRIPT = Path(__file__).parent / "scripts" / "planted_lines.py"
OPS = {
    "decode": "DecodeJpeg",
    "branch": "MatMul",
    "loop": "TopKV2",
    "helper": "TopKV2",
    "inner_function": "Conv2D",
    "text": "StaticRegexReplace",
}
LIBRARIES = {
    "pure_python": "",
    "numpy_sort": "numpy",
    "python_helper": "",
    "unpack": "zlib",
    "pillow": "PIL",
    "records": "",
}


def hot_lines() -> dict[str, int]:
    marked = (line.partition("# hot: ")[2] for line in SCRIPT.read_text().splitlines())
    return {name: number for number, name in enumerate(marked, 1) if name}


@pytest.fixture(scope="module")
def analysis(tmp_path_factory: pytest.TempPathFactory) -> Analysis:
    out = tmp_path_factory.mktemp("planted") / "run"
    capture(CaptureRequest(out=out, script=SCRIPT, seconds=6), lambda progress: None)
    recording = decode((out / "recording.json").read_bytes(), Recording)
    return analyse(read_trace(out), recording, "planted")


@pytest.fixture(scope="module")
def first_lines(analysis: Analysis) -> dict[int, LineCost]:
    """The first lines of all functions, by their numbers."""
    assert analysis.main is not None
    firsts = [iterator.lines[0] for iterator in analysis.main.iterators if iterator.lines]
    return {line.at.line: line for line in firsts}


def test_all_functions_are_marked() -> None:
    assert set(hot_lines()) == {*OPS, *LIBRARIES}


@pytest.mark.parametrize("name", OPS)
def test_the_costly_op(name: str, first_lines: dict[int, LineCost]) -> None:
    line = first_lines.get(hot_lines()[name])
    assert line is not None
    assert line.ops[0] == OPS[name]
    assert line.samples is None
    assert line.at.text.endswith(f"# hot: {name}")


@pytest.mark.parametrize("name", LIBRARIES)
def test_the_costly_line_of_python_code(name: str, first_lines: dict[int, LineCost]) -> None:
    line = first_lines.get(hot_lines()[name])
    assert line is not None
    assert line.samples is not None
    assert line.library == LIBRARIES[name]
    assert (line.native_share > 0.5) == bool(LIBRARIES[name])


def test_a_line_in_a_helper_names_the_line_that_led_there(first_lines: dict[int, LineCost]) -> None:
    lines = SCRIPT.read_text().splitlines()
    for name, text in (("helper", "    order = sorted_values(values)"), ("python_helper", "    total = row(")):
        via = first_lines[hot_lines()[name]].at.via
        assert lines[via - 1].startswith(text)
