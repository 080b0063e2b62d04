from __future__ import annotations

import io
from functools import partial

import pytest
from rich.console import Console

from advisor.capture.request import RESULT, Progress
from advisor.report.progress import describe, show_budget, show_progress, time_left


@pytest.mark.parametrize(
    ("progress", "text"),
    [
        (Progress("starting", text="train.py"), "starting TensorFlow"),
        (Progress("warming up", 7, 10), "warming up 7/10 steps"),
        (Progress("warming up", 7), "warming up 7 steps"),
        (Progress("profiling", 35), "profiling 35 steps 4.2 s"),
        (Progress("saving", 30), "saving the profile"),
        (Progress("profiling", 1, None, "ceiling"), "profiling 1 step 4.2 s (ceiling)"),
        (Progress("new \x1b[31m phase"), "new \\x1b[31m phase"),
    ],
)
def test_words(progress, text):
    assert describe(progress, 4_200_000_000) == text


@pytest.mark.parametrize(
    ("left_s", "text"), [(None, ""), (200.0, "about 3 min left"), (31.0, "about 1 min left"), (0.0, "under 1 min left")]
)
def test_the_time_left_is_shown_if_it_is_known(left_s, text, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    progress = Progress("warming up", 7, 10, left_s=left_s)
    assert time_left(progress) == text
    for show_it in (partial(show_progress, is_quiet=False), partial(show_budget, is_quiet=False, budget_s=600.0)):
        file = io.StringIO()
        with show_it(Console(file=file, force_terminal=True, width=120)) as show:
            show(progress)
        assert text in file.getvalue() and "warming up 7/10 steps" in file.getvalue()
        assert ("left" in file.getvalue()) == (left_s is not None)


@pytest.mark.parametrize("options", [{}, {"force_terminal": True, "is_quiet": True}])
def test_silent_where_nobody_looks(options):
    file = io.StringIO()
    is_quiet = options.pop("is_quiet", False)
    with show_progress(Console(file=file, **options), is_quiet) as show:
        show(Progress("profiling", 3))
    assert file.getvalue() == ""


def test_shown_on_a_terminal(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    file = io.StringIO()
    with show_progress(Console(file=file, force_terminal=True, width=40), is_quiet=False) as show:
        show(Progress("warming up", 7, 10))
    assert "warming up 7/10 steps" in file.getvalue()


@pytest.mark.parametrize("is_terminal", [False, True])
def test_results_stay_on_lines_of_their_own(is_terminal, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    file = io.StringIO()
    with show_budget(Console(file=file, force_terminal=is_terminal, width=60), False, 60.0) as show:
        show(Progress("proving", 1, text="Cache after batch"))
        show(Progress(RESULT, text="train.py:9 Cache\x1b[31m after batch: 3x"))
    lines = [line for line in file.getvalue().splitlines() if "after batch: 3x" in line]
    assert len(lines) == 1
    assert "train.py:9 Cache\\x1b[31m after batch: 3x" in lines[0]
    assert is_terminal or file.getvalue() == lines[0] + "\n"


def test_quiet_tells_no_results():
    file = io.StringIO()
    with show_budget(Console(file=file), True, 60.0) as show:
        show(Progress(RESULT, text="3x"))
    assert file.getvalue() == ""
