"""How much time the runs of the whole script are left, and which kind of runs is made."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from advisor.capture.request import CaptureRequest
from advisor.model.calls import Site
from advisor.model.edits import BuildOnce, SetOption
from advisor.model.errors import ScriptFailed
from advisor.model.finding import Finding, Fix, Safety
from advisor.model.outcome import Interval
from advisor.model.untried import Why
from advisor.prove.measure.end_to_end_result import EndToEnd
from advisor.prove.measure.epoch_window import EpochWindow
from advisor.prove.measure.run_steps import RunSteps
from advisor.prove.measure.script_windows import ScriptWindow, ScriptWindows
from advisor.prove.outcomes import is_proved, sentence_of
from advisor.prove.search import whole_script
from advisor.prove.search.loop_result import Attempt, LoopResult
from advisor.prove.search.proposals import Proposals
from advisor.prove.search.script_proof import prove_on_script
from advisor.prove.search.whole_script import WholeScript
from advisor.prove.trial.trial_result import BROKEN, FASTER, Trial
from advisor.rewrite.patch import Patch
from advisor.testing import batch, map_, pipeline, source

RUN_S = 10 + 3 + 3 + 2
"""Start, warm-up, window and end of a run of a script that starts in 10 s."""


@pytest.mark.parametrize(
    ("left_s", "runs"),
    [
        (300, 8),  # the usual number
        (180, 6),  # fewer may decide, too, and some proof is better than none
        (150, 0),  # not even those: the trials take it all
    ],
)
def test_trials_leave_time_for_the_runs_that_the_budget_allows(left_s: float, runs: int) -> None:
    analysis = pipeline(source(), map_("decode", ms=5), batch(32), consumer_ms=5).analysis
    request = CaptureRequest(Path("unused"), Path("train.py"))
    whole = WholeScript(request, analysis, Proposals({}, None), 10.0, left_s, lambda progress: None, clock=lambda: 0.0)
    assert whole.seconds_to_reserve([]) == pytest.approx(runs * RUN_S)


@pytest.mark.parametrize(("left_s", "runs"), [(300, 8), (150, 6), (140, 0)])
def test_if_trials_are_short_the_whole_script_may_take_the_rest(left_s: float, runs: int) -> None:
    analysis = pipeline(source(), map_("decode", ms=5), batch(32), consumer_ms=5).analysis
    request = CaptureRequest(Path("unused"), Path("train.py"))
    whole = WholeScript(request, analysis, Proposals({}, None), 10.0, left_s, lambda progress: None, clock=lambda: 0.0)
    assert whole.seconds_to_reserve([], 40.0) == pytest.approx(runs * RUN_S)


@pytest.mark.parametrize(
    ("takes_turns", "epochs", "expected"),
    [(False, None, "fresh"), (True, None, "live"), (True, EpochWindow(60, 180, 3, 9.0), "fresh")],
)
def test_live_processes_are_used_if_the_request_asks_for_them(
    takes_turns: bool, epochs: EpochWindow | None, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time between epochs is never that of turns. How it was measured becomes a note."""
    made = []

    def measured(name: str) -> Callable[..., EndToEnd]:
        def measure(*args: object, **kwargs: object) -> EndToEnd:
            made.append(name)
            return EndToEnd("same", starts=2, how="As asked." if name == "live" else "")

        return measure

    monkeypatch.setattr(whole_script, "measure_live_pairs", measured("live"))
    monkeypatch.setattr(whole_script, "measure_end_to_end", measured("fresh"))
    request = CaptureRequest(Path("unused"), Path("train.py"), takes_turns=takes_turns)
    window = ScriptWindow(request, 10.0, epochs=epochs)
    monkeypatch.setattr(ScriptWindows, "of", lambda windows, edits, epoch_s=None: window)
    monkeypatch.setattr(ScriptWindows, "has_steps", True)
    analysis = pipeline(source(), map_("decode", ms=5), batch(32), consumer_ms=5).analysis
    whole = WholeScript(request, analysis, Proposals({}, None), 10.0, 1e12, lambda progress: None, clock=lambda: 0.0)
    assert whole.measure((), (), "nothing") is not None
    assert (made, whole.runs) == ([expected], 2)
    assert ("As asked." in whole.notes) is (expected == "live")


@pytest.mark.parametrize(("value", "is_of_epochs"), [(False, True), (True, False)])
def test_runs_without_autotune_are_timed_over_whole_epochs(value: bool, is_of_epochs: bool) -> None:
    """Only the time between epochs shows what turning it off gains."""
    analysis = pipeline(source("Range", elements=320), batch(32), consumer_ms=5, epochs=50).analysis
    windows = ScriptWindows(CaptureRequest(Path("unused"), Path("train.py")), analysis, 10.0)
    window = windows.of((SetOption(analysis.calls[-1].id, "autotune.enabled", value),))
    assert (window.epochs is not None) is is_of_epochs


def test_on_top_of_other_changes_the_epochs_are_those_of_the_changed_script() -> None:
    """Ten steps of 5 ms take 0.05 s; with the changes, an epoch takes 1 s with its pause."""
    analysis = pipeline(source("Range", elements=320), batch(32), consumer_ms=5, epochs=50).analysis
    windows = ScriptWindows(CaptureRequest(Path("unused"), Path("train.py")), analysis, 10.0)
    untuned = (SetOption(analysis.calls[-1].id, "autotune.enabled", value=False),)
    usual, on_top = windows.of(untuned), windows.of(untuned, 1.0)
    assert usual.epochs is not None and on_top.epochs is not None
    assert (on_top.epochs.epochs, on_top.epochs.steps) == (3, 30) and usual.epochs.epochs > 10
    assert on_top.epochs.seconds == 1.0 * (on_top.epochs.warmup / 10 + 3)


@pytest.mark.parametrize(("usual_end", "is_measured"), [(59.0, False), (61.0, True), (None, True)])
def test_what_comes_last_is_only_measured_in_the_usual_time(
    usual_end: float | None, is_measured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = []

    def measured(*args: object, **kwargs: object) -> EndToEnd:
        told.append(kwargs["usual_end"])
        return EndToEnd("same")

    monkeypatch.setattr(whole_script, "measure_end_to_end", measured)
    request = CaptureRequest(Path("unused"), Path("train.py"))
    window = ScriptWindow(request, 10.0, epochs=EpochWindow(60, 180, 3, 9.0))
    monkeypatch.setattr(ScriptWindows, "of", lambda windows, edits, epoch_s=None: window)
    monkeypatch.setattr(ScriptWindows, "has_steps", True)
    analysis = pipeline(source(), map_("decode", ms=5), batch(32), consumer_ms=5).analysis
    script = WholeScript(
        request, analysis, Proposals({}, None), 10.0, 1e12, lambda progress: None, lambda: 0.0, usual_end=usual_end
    )
    finding = Finding("epoch-pauses", "End epochs", "Because.", fix=None)
    monkeypatch.setattr(script, "_edits_of", lambda findings: ())
    monkeypatch.setattr(script._proposals, "patch", lambda findings: Patch())
    assert (script.measure((finding,), (finding, finding), "End epochs", epoch_s=1.0) is not None) is is_measured
    assert told == ([usual_end] if is_measured else [])
    assert any("6 runs would take about 1 min more" in note for note in script.notes) is not is_measured


@pytest.mark.parametrize(
    ("edit", "verdict", "what"),
    [
        (SetOption("c1", "autotune.enabled", value=False), "faster", "TensorFlow destroys the iterator"),
        (BuildOnce("c1", Site("train.py", 4, 7, 4, 20)), BROKEN, "still reads another dataset in every epoch"),
    ],
)
def test_only_a_dataset_that_is_to_be_made_once_may_not_be_read_again(
    edit: SetOption | BuildOnce, verdict: str, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Turning AUTOTUNE off leaves the number of datasets as it is."""
    run = RunSteps(5e6, None, 30, None, datasets=3)
    faster = EndToEnd("faster", Interval(1.2, 1.1, 1.3), before=(run,), after=(run,))
    monkeypatch.setattr(whole_script, "measure_end_to_end", lambda *args, **kwargs: faster)
    request = CaptureRequest(Path("unused"), Path("train.py"))
    window = ScriptWindow(request, 10.0, epochs=EpochWindow(60, 180, 3, 9.0))
    monkeypatch.setattr(ScriptWindows, "of", lambda windows, edits, epoch_s=None: window)
    monkeypatch.setattr(ScriptWindows, "has_steps", True)
    analysis = pipeline(source(), map_("decode", ms=5), batch(32), consumer_ms=5).analysis
    script = WholeScript(request, analysis, Proposals({}, None), 10.0, 1e12, lambda progress: None, lambda: 0.0)
    finding = Finding("a-rule", "Do it", "Because.", fix=Fix((edit,), Safety.EXACT, is_auto=True))
    monkeypatch.setattr(script._proposals, "patch", lambda findings: Patch())
    measured = script.measure((), (finding,), "Do it")
    assert measured is not None and measured.verdict == verdict
    (note,) = script.notes
    assert what in note


@pytest.mark.parametrize(("base", "expected"), [(0, 1000.0), (1, 1000.0 - 2 * 3 * 10.0)])
def test_a_change_on_top_of_others_leaves_time_for_the_measurement_of_all(
    base: int, expected: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = []

    def measured(*args: object, **kwargs: object) -> EndToEnd:
        told.append(kwargs["usual_end"])
        return EndToEnd("same")

    monkeypatch.setattr(whole_script, "measure_end_to_end", measured)
    request = CaptureRequest(Path("unused"), Path("train.py"))
    monkeypatch.setattr(ScriptWindows, "of", lambda windows, edits, epoch_s=None: ScriptWindow(request, 10.0))
    monkeypatch.setattr(ScriptWindows, "has_steps", True)
    analysis = pipeline(source(), map_("decode", ms=5), batch(32), consumer_ms=5).analysis
    script = WholeScript(
        request, analysis, Proposals({}, None), 10.0, 1e12, lambda progress: None, lambda: 0.0, usual_end=1000.0
    )
    finding = Finding("serial-map", "Parallelise", "Because.", fix=None)
    monkeypatch.setattr(script, "_edits_of", lambda findings: ())
    monkeypatch.setattr(script._proposals, "patch", lambda findings: Patch())
    script.measure((finding,) * base, (finding,) * (base + 1), "Parallelise")
    assert told == [expected]


def test_a_run_of_the_unchanged_script_that_fails_ends_the_proof_and_keeps_what_is_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It had been analysed before, so it fails now and then; nothing is written, and the command does not fail."""

    def fails(*args: object, **kwargs: object) -> EndToEnd:
        error = ScriptFailed("train.py failed (exit code 1).")
        error.runs = 3
        raise error

    monkeypatch.setattr(whole_script, "measure_end_to_end", fails)
    request = CaptureRequest(Path("unused"), Path("train.py"))
    monkeypatch.setattr(ScriptWindows, "of", lambda windows, edits, epoch_s=None: ScriptWindow(request, 10.0))
    monkeypatch.setattr(ScriptWindows, "has_steps", True)
    analysis = pipeline(source(), map_("decode", ms=5), batch(32), consumer_ms=5).analysis
    script = WholeScript(request, analysis, Proposals({}, None), 10.0, 1e12, lambda progress: None, clock=lambda: 0.0)
    finding = Finding("serial-map", "Parallelise", "Because.", fix=None)
    monkeypatch.setattr(script, "_edits_of", lambda findings: ())
    monkeypatch.setattr(script._proposals, "patch", lambda findings: Patch())
    kept = LoopResult((Attempt(finding, Trial(FASTER, Interval(2.0, 1.9, 2.1)), is_kept=True),), (finding,))
    loop, whole = prove_on_script(kept, script)
    assert whole is not None and whole.is_script_failing and not is_proved(whole)
    assert (loop.why, loop.kept, script.runs) == (Why.SCRIPT_UNSTABLE, (finding,), 3)
    assert script.notes == [
        "The whole script was not measured: without the changes, a run of it failed. train.py failed (exit code 1)."
    ]
    verdict, sentence = sentence_of(loop, whole)
    assert verdict == FASTER and "as the unchanged script failed in a later run of the training" in sentence
