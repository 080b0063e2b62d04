"""What the runs of a whole script are read for; the runs themselves are in tests/commands/test_fix.py."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from advisor.capture.request import CaptureRequest, Progress
from advisor.model.codec import decode
from advisor.model.edits import Code, InsertAfter, MoveAfter, SetArgument, SetOption
from advisor.model.finding import Finding, Fix, Safety
from advisor.model.outcome import Interval
from advisor.model.paired_test import PairedTest
from advisor.model.recording import Recording
from advisor.prove.measure import end_to_end
from advisor.prove.measure.compare_runs import compare_reports
from advisor.prove.measure.end_to_end import measure_end_to_end
from advisor.prove.measure.end_to_end_result import EarlyRun, EndToEnd
from advisor.prove.measure.run_steps import RunSteps, steps_of
from advisor.prove.measure.source_overlays import overlays
from advisor.prove.search.loop_result import Attempt
from advisor.prove.search.script_proof import needs_script
from advisor.prove.trial.trial_result import BROKEN, FASTER, REFUSED, SAME, SLOWER, Trial
from tests.prove.run_recordings import MS


def test_overlays_hold_both_sides_and_touch_nothing(tmp_path):
    path, other = tmp_path / "a.py", tmp_path / "b.py"
    base = {path: (b"old", b"middle")}
    patch = {path: (b"old", b"new"), other: (b"was", b"is")}
    with overlays(base, patch) as (before, after):
        assert {file: text.read_bytes() for file, text in before} == {path: b"middle", other: b"was"}
        assert {file: text.read_bytes() for file, text in after} == {path: b"new", other: b"is"}
        texts = [text for _, text in (*before, *after)]
    assert not any(text.exists() for text in texts)
    assert not path.exists()


def test_runs_by_turns_replace_the_windows_of_the_profiled_runs():
    from advisor.model.settings import Settings
    from advisor.workflows.analyze import analyze_run

    report = analyze_run(Path(__file__).parents[2] / "data/keras_fit", [], Settings())
    before = tuple(RunSteps(20.0 * MS, 0.6, 50, 100) for _ in range(6))
    after = tuple(RunSteps(10.0 * MS, 0.2, 50, 200) for _ in range(6))
    whole = EndToEnd("faster", Interval(2, 1.9, 2.1), before, after)
    comparison = compare_reports(report, report, whole)
    assert comparison.verdict == "faster"
    assert comparison.turns == 6
    assert (comparison.before.figures.step_ns, comparison.after.figures.step_ns) == (20 * MS, 10 * MS)
    assert (comparison.before.figures.wait_share, comparison.after.figures.peak_rss_bytes) == (0.6, 200)


def tried(verdict, *edits, is_replayable=True):
    made = Finding("made-up", "Do it", "", fix=Fix(edits, Safety.EXACT, is_auto=True))
    return Attempt(made, Trial(verdict, is_replayable=is_replayable), is_kept=verdict == FASTER)


PREFETCH = InsertAfter("c1", "prefetch", (("", Code("tf.data.AUTOTUNE")),))


@pytest.mark.parametrize(
    ("attempt", "expected"),
    [
        (tried(SAME, PREFETCH), True),
        (tried(SLOWER, PREFETCH), True),
        (tried(SAME, SetOption("c1", "autotune.enabled", None)), True),
        (
            tried(SAME, SetOption("c1", "autotune.enabled", value=False), SetArgument("c1", "num_parallel_calls", 4)),
            True,
        ),
        (tried(REFUSED, SetArgument("c1", "num_parallel_calls", 4), is_replayable=False), True),
        (tried(FASTER, PREFETCH), False),
        (tried(BROKEN, PREFETCH), False),
        (tried(REFUSED, PREFETCH), False),
        (tried(SAME, SetArgument("c1", "num_parallel_calls", 4)), False),
        (tried(SAME, PREFETCH, InsertAfter("c1", "cache")), False),
        (tried(SAME, SetOption("c1", "autotune.ram_budget", None)), False),
        (tried(SAME, MoveAfter("map", "shuffle")), True),
        (tried(SLOWER, MoveAfter("map", "shuffle")), True),
        (tried(SAME, MoveAfter("filter", "source")), False),
        (tried(SAME, MoveAfter("map", "shuffle"), MoveAfter("filter", "source")), False),
    ],
)
def test_what_only_overlaps_with_the_training_is_left_to_the_whole_script(attempt, expected):
    assert needs_script(attempt, {"c1": "map", "shuffle": "shuffle", "source": "range"}) is expected


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("keras_fit", 8),
        ("generator", 16),
        ("interleave_map", 4),
        ("mirrored", 8),
        ("model_bound", 2),
        ("short_steps", 32),
        ("zip_filter", 4),
    ],
)
def test_elements_per_step_are_those_of_the_analysis(name, rows):
    from advisor.model.settings import Settings
    from advisor.predict import rows_per_step
    from advisor.workflows.analyze import analyze_run

    report = analyze_run(Path(__file__).parents[2] / "data" / name, [], Settings())
    assert steps_of(report.analysis.recording).rows == rows_per_step(report.analysis) == rows


def test_a_loop_inside_a_function_has_no_steps_that_python_sees():
    recording = (Path(__file__).parents[2] / "data/tf_function_loop/recording.json").read_bytes()
    assert steps_of(decode(recording, Recording)) is None


@pytest.mark.parametrize(
    ("early", "order"),
    [
        ((), "BA AB BA"),
        (("after",), "B BA AB"),
        (("before",), "A AB BA"),
        (("before", "after"), "AB BA"),
    ],
)
def test_runs_that_were_made_before_are_those_of_the_first_turn(early, order, monkeypatch):
    """The sides still alternate in order, and each has a run in each turn."""
    made = []
    runs = {"before": RunSteps(20.0 * MS, None, 50, None), "after": RunSteps(10.0 * MS, None, 50, None)}

    def timed(request, on_progress, is_with_gaps):
        made.append(request.script.name)
        return runs["before" if request.script.name == "B" else "after"]

    monkeypatch.setattr(end_to_end, "time_run", timed)
    sides = (CaptureRequest(Path("unused"), Path(name)) for name in ("B", "A"))
    measurement = measure_end_to_end(
        *sides, lambda progress: None, early={name: EarlyRun(runs[name], 5.0) for name in early}
    )
    assert "".join(made) == order.replace(" ", "")
    assert (measurement.verdict, len(measurement.before), len(measurement.after)) == (FASTER, 3, 3)
    assert measurement.test == PairedTest("clear", 3, 8)  # three pairs have no exact interval


def test_a_run_without_timed_steps_is_too_short(monkeypatch):
    monkeypatch.setattr(end_to_end, "time_run", lambda request, on_progress, is_with_gaps: None)
    sides = (CaptureRequest(Path("unused"), Path(name)) for name in ("B", "A"))
    measurement = measure_end_to_end(*sides, lambda progress: None)
    assert measurement.is_run_too_short and measurement.verdict == REFUSED


@pytest.mark.parametrize(
    ("run_s", "usual_end", "pairs", "verdict"),
    [
        (20.0, None, 6, FASTER),
        (20.0, 1240.0, 6, FASTER),  # six pairs of 40 s
        (20.0, 1180.0, 6, FASTER),  # four pairs end in time; the next look is a minute late, and would decide
        (20.0, 1179.0, 4, REFUSED),
        (20.0, 1159.0, 3, REFUSED),  # the look at four pairs would not decide
        (20.0, 1000.0, 3, REFUSED),  # however little time there is, there is one look
    ],
)
def test_what_is_not_clear_after_the_usual_time_stays_undecided(run_s, usual_end, pairs, verdict, monkeypatch):
    """The clock is made up. Three and four pairs vary too much for a verdict, six do not."""
    now, made = [1000.0], []

    def timed(request, on_progress, is_with_gaps):
        now[0] += run_s
        made.append(request.script.name)
        ratio = (1.12, 1.4, 1.12, 1.4, 1.26, 1.26)[made.count("B") - 1]
        return RunSteps((10.0 * ratio if request.script.name == "B" else 10.0) * MS, None, 50, None)

    monkeypatch.setattr(end_to_end, "time_run", timed)
    monkeypatch.setattr(end_to_end, "time", SimpleNamespace(monotonic=lambda: now[0]))
    sides = (CaptureRequest(Path("unused"), Path(name)) for name in ("B", "A"))
    whole = measure_end_to_end(*sides, lambda progress: None, 1e9, usual_end=usual_end)
    assert (len(whole.before), whole.verdict, whole.is_out_of_time) == (pairs, verdict, verdict == REFUSED)
    assert ("the usual time was used up" in whole.note) is (verdict == REFUSED)


@pytest.mark.parametrize(("deadline", "expected"), [(None, [None, 50, 40, 30, 20, 10]), (1045.0, [None, 35, 25, 15])])
def test_the_time_until_the_next_look_follows_from_the_runs_so_far(deadline, expected, monkeypatch):
    """Each run takes 10 s; the clock is made up."""
    now = [1000.0]

    def timed(request, on_progress, is_with_gaps):
        on_progress(Progress("starting"))
        now[0] += 10.0
        on_progress(Progress("saving"))
        return RunSteps((20.0 if request.script.name == "B" else 10.0) * MS, None, 50, None)

    monkeypatch.setattr(end_to_end, "time_run", timed)
    monkeypatch.setattr(end_to_end, "time", SimpleNamespace(monotonic=lambda: now[0]))
    sides = (CaptureRequest(Path("unused"), Path(name)) for name in ("B", "A"))
    told = []
    measure_end_to_end(*sides, told.append, deadline)
    left = [progress.left_s for progress in told if progress.phase == "starting"]
    assert left == expected
    assert all(progress.left_s >= 0 for progress in told if progress.left_s is not None)
