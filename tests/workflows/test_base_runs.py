"""Base against head: which side each text runs on, when the runs end, and what cannot be compared."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from advisor.gate.base_revision import BaseTexts
from advisor.model.calls import Site
from advisor.model.errors import ScriptFailed
from advisor.model.settings import Settings
from advisor.prove.measure import end_to_end
from advisor.prove.measure.run_steps import LoopSteps, RunSteps
from advisor.workflows.analyze import Request
from advisor.workflows.base_runs import compare_with_base
from tests.gate.made_runs import MS, made_report


@pytest.fixture
def texts(tmp_path):
    """The script differs, one module exists only in the base."""
    (tmp_path / "train.py").write_text("head")
    files = {tmp_path / "train.py": (b"head", b"base"), tmp_path / "gone.py": (b"", b"gone")}
    return BaseTexts("main", "0" * 40, tmp_path, files, (tmp_path / "gone.py",))


@pytest.fixture
def compare(monkeypatch, texts):
    """Compare with runs that take these times, each `(base ms, head ms)` in turn."""

    def run(pairs, limit=1.1, **steps):
        seen = []
        times = [itertools.cycle(side) for side in zip(*pairs, strict=True)]

        def time_run(request, on_progress, is_with_gaps=False):
            overlay = {path.name: text.read_bytes() for path, text in request.overlay}
            is_base = overlay["train.py"] == b"base"
            seen.append(overlay)
            given = {name: value[0 if is_base else 1] for name, value in steps.items()}
            return RunSteps(
                next(times[0 if is_base else 1]) * MS, None, 50, given.get("rss"), rows=given.get("rows"),
                other_loops=given.get("loops", ()),
            )  # fmt: skip

        monkeypatch.setattr(end_to_end, "time_run", time_run)
        request = Request(path=texts.top / "train.py")
        compared = compare_with_base(request, texts, made_report(), limit, Settings(), lambda progress: None)
        return compared, seen

    return run


def test_each_side_runs_its_own_text(compare):
    compared, seen = compare([(10, 10), (10.1, 10), (10, 10.1)], limit=1.5)
    assert {tuple(sorted(overlay.items())) for overlay in seen} == {
        (("gone.py", b"gone"), ("train.py", b"base")),
        (("train.py", b"head"),),
    }
    assert compared.files == ("gone.py", "train.py") and compared.turns == 3


@pytest.mark.parametrize(
    ("head_ms", "limit", "is_below"),
    [(10, 1.5, True), (20, 1.5, False), (10, 1.1, True), (12, 1.1, False), (10.8, 1.3, True)],
)
def test_the_runs_end_when_the_side_of_the_limit_is_clear(compare, head_ms, limit, is_below):
    compared, seen = compare([(10, head_ms), (10.05, head_ms), (10, head_ms * 1.004)], limit)
    ratio = compared.step_ratio
    assert ratio.low <= ratio.value == pytest.approx(head_ms / 10, rel=0.01) and ratio.value <= ratio.high
    assert ratio.high <= limit if is_below else ratio.low > limit
    assert len(seen) == 2 * compared.turns < 16


def test_the_runs_go_on_while_the_limit_is_inside_the_interval(compare):
    """After three pairs it is clear that the head is slower, but not whether by more than the limit."""
    compared, _ = compare([(10, 11.76), (10, 12), (10, 12.24), (10, 12)], limit=1.3)
    assert compared.turns == 4
    assert compared.step_ratio.low > 1 and compared.step_ratio.high <= 1.3


def test_noise_leaves_it_open(compare):
    compared, _ = compare([(10, 14), (14, 10), (10, 10), (9, 13)], 1.1)
    assert compared.step_ratio.low < 1.1 < compared.step_ratio.high


@pytest.mark.parametrize(("head_ms", "is_below"), [(10, True), (10.45, False)])
def test_runs_that_are_close_to_the_limit_go_on(compare, head_ms, is_below):
    """After three pairs the interval holds the limit, and all of it is within 5 % of it; eight pairs decide."""
    noise = [0.994, 1.006, 1.0, 0.997, 1.003, 1.0, 0.998, 1.002]
    compared, _ = compare([(10, head_ms * ratio) for ratio in noise], limit=1.02)
    ratio = compared.step_ratio
    assert compared.turns > 3
    assert ratio.high <= 1.02 if is_below else ratio.low > 1.02


def test_memory_is_compared_too(compare):
    compared, _ = compare([(10, 10), (10.1, 10), (10, 10.1)], 1.5, rss=(100, 150))
    assert compared.memory_ratio.low == compared.memory_ratio.high == pytest.approx(1.5)


def test_other_loops_are_told_apart_by_kind_and_order(compare):
    def validation(ms, line, number=0):
        return LoopSteps("for", number, Site("/a/train.py", line, 1, line, 9), ms * MS)

    loops = (validation(10, 30),), (validation(30, 33), validation(5, 40, number=1))
    compared, _ = compare([(10, 10), (10.1, 10), (10, 10.1)], 1.5, loops=loops)
    (loop,) = compared.loops  # the base has no second one
    assert loop.name == "train.py:33 (for)" and loop.step_ratio.value == pytest.approx(3)
    compared, _ = compare([(10, 10), (10.1, 10), (10, 10.1)], 1.5)
    assert compared.loops == ()


def test_steps_of_other_batch_sizes_are_not_compared(compare):
    compared, _ = compare([(10, 20), (10.1, 20), (10, 20.1)], rows=(32, 64))
    assert compared.step_ratio is None and "32 elements in main and 64 now" in compared.note


def test_a_base_that_fails_is_no_verdict(compare, monkeypatch):
    def fail(*args, **named):
        raise ScriptFailed("train.py failed: NameError.")

    monkeypatch.setattr("advisor.workflows.base_runs.measure_end_to_end", fail)
    compared, _ = compare([(10, 10)])
    assert compared.step_ratio is None and compared.note == "Its script fails: train.py failed: NameError."


def test_nothing_runs_if_no_text_differs_or_the_script_is_new(texts, monkeypatch):
    monkeypatch.setattr(end_to_end, "time_run", None)
    request = Request(path=Path("train.py"))
    same = BaseTexts("main", "0" * 40, texts.top, {})
    assert compare_with_base(request, same, made_report(), 1.1, Settings(), print).is_same_text
    new = BaseTexts("main", "0" * 40, texts.top, {}, has_script=False)
    compared = compare_with_base(request, new, made_report(), 1.1, Settings(), print)
    assert not compared.is_same_text and compared.note == "train.py does not exist there."
