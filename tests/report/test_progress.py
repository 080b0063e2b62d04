from __future__ import annotations

import io

import pytest
from rich.console import Console

from advisor.capture.request import Progress
from advisor.report.progress import describe, show_progress


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
