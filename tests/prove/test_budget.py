"""`--budget` is a bound: what is begun, stopped and refused. Clocks are made up; only the stopped script is real."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from advisor.capture.launch import capture
from advisor.capture.request import CaptureRequest
from advisor.cli import main
from advisor.host.calibration.proof import (
    DEFAULT_BUDGET_S,
    EXPECTED_PAIRS,
    LEAST_TRIAL_S,
    MIN_BUDGET_S,
    NUMBERS_S,
    TRIAL_S,
    TRIALS_S,
)
from advisor.model.errors import AdvisorError, OutOfTime
from advisor.model.finding import Safety
from advisor.model.outcome import Interval
from advisor.model.sequential_test import LOOKS, interval_at
from advisor.prove.budget import Budget, check_budget
from advisor.prove.measure import end_to_end
from advisor.prove.measure.compare_runs import verdict_of
from advisor.prove.measure.end_to_end import measure_end_to_end
from advisor.prove.measure.run_steps import RunSteps
from advisor.prove.outcomes import is_proved
from advisor.prove.search.greedy_loop import prove_fixes
from advisor.prove.search.result_lines import line_of_whole
from advisor.prove.session.proof_session import ProofSession
from advisor.prove.texts.change_speed import speed_of_scripts
from advisor.prove.trial.messages import Tried
from advisor.prove.trial.trial_result import FASTER, REFUSED, SAME, Trial
from advisor.workflows.analyze import Request
from advisor.workflows.fix_request import FixRequest
from tests.prove.search.test_greedy_loop import CACHE, FETCH, MAP, Arithmetic, Report, kept

STUBBORN = """import os, signal, sys, time
signal.signal(signal.SIGINT, signal.SIG_IGN)
open(sys.argv[1], "w").write(str(os.getpid()))
time.sleep(600)
"""


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.mark.parametrize("seconds", [0.5, 14, MIN_BUDGET_S.value - 1])
def test_a_budget_in_which_nothing_can_be_proved_is_refused_with_the_least_one(seconds):
    with pytest.raises(AdvisorError, match=r"too short, so nothing was run.* at least 30 s"):
        check_budget(seconds)
    check_budget(MIN_BUDGET_S.value)


def test_refused_before_the_script_is_run(tmp_path, capsys):
    script = tmp_path / "train.py"
    script.write_text("open('ran', 'w')")
    assert main(["fix", "--budget", "14s", str(script)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "--budget 14 s is too short" in line
    assert {path.name for path in tmp_path.iterdir()} == {"train.py"}


@pytest.mark.parametrize("seconds", [30, 60, 120, 600, 3600])
def test_phases_end_early_enough_to_stop_them_and_to_write_the_report(seconds):
    budget = Budget(seconds, 100.0, Clock())
    assert 100 < budget.analysis_end < budget.end < 100 + seconds
    assert 100 + seconds - budget.end >= 2.4  # seconds: 1.5 for the script's `finally`, the rest for the report


def test_without_time_for_one_trial_the_least_budget_is_named():
    clock = Clock()
    budget = Budget(40, 100.0, clock)
    clock.now = 100 + 20
    end = budget.pipeline_end(0.0, startup_s=6)
    sentence = budget.why_no_trial(end, startup_s=6)
    assert "the analysis took 20 s of the budget of 40 s" in sentence
    assert sentence.endswith("needs at least --budget 60s.")
    clock.now = 100 + 9
    assert budget.why_no_trial(end, startup_s=6) == ""


def test_the_whole_script_keeps_its_share_unless_that_leaves_no_trial():
    budget = Budget(600, 100.0, Clock())
    assert budget.pipeline_end(200, startup_s=5) == budget.end - 5 - 200
    assert budget.pipeline_end(590, startup_s=5) == budget.end - 5


def test_trials_end_early_if_no_budget_was_asked_for():
    clock = Clock()
    budget = Budget(300, 100.0, clock, trials_s=75)
    clock.now = 130
    assert budget.trials_end(250.0, startup_s=5) == 130 + 75
    assert budget.trials_end(180.0, startup_s=5) == 180
    assert budget.trials_end(250.0, startup_s=70) == 250  # not even one trial would fit
    assert Budget(300, 100.0, clock).trials_end(250.0, startup_s=5) == 250


def test_the_usual_time_is_never_longer_than_the_budget():
    assert Budget(600, 100.0, Clock(), usual_s=290).usual_end == 390
    assert Budget(100, 100.0, Clock(), usual_s=290).usual_end == Budget(100, 100.0, Clock()).end
    assert Budget(600, 100.0, Clock()).usual_end == Budget(600, 100.0, Clock()).end


def test_the_usual_budget_holds_the_whole_proof_of_a_script_that_starts_in_five_seconds():
    """Analysis 30 s, trials, numbers, and six pairs of runs of 12 s; trials leave time for eight runs by themselves."""
    budget = Budget(DEFAULT_BUDGET_S.value, 0.0, lambda: 30.0, trials_s=TRIALS_S.value)
    pipeline_end = budget.pipeline_end(2 * EXPECTED_PAIRS.value * 12.0, startup_s=5)
    trials_end = budget.trials_end(pipeline_end, startup_s=5)
    assert trials_end == 30 + TRIALS_S.value
    assert trials_end + NUMBERS_S.value <= pipeline_end
    assert trials_end + NUMBERS_S.value + 2 * 6 * 12.0 <= budget.end


class Clocked:
    """Answers what a held script is asked, and notes how long a trial may take."""

    def __init__(self):
        self.seconds = []

    def ask(self, request, wanted, silence_s):
        self.seconds.append(request.seconds)
        return Tried(Trial(SAME))


def test_a_trial_takes_no_longer_than_the_trials_may(tmp_path):
    session = ProofSession(CaptureRequest(tmp_path, Path("train.py")), None, 1000.0, lambda progress: None)
    session._deadline, session._process = time.monotonic() + 1000, Clocked()
    session.try_fix((), (), Safety.EXACT)
    session.trials_end = time.monotonic() + 40
    session.try_fix((), (), Safety.EXACT)
    usual, short = session._process.seconds
    assert usual == TRIAL_S.value and 30 < short <= 40


@pytest.mark.parametrize(("options", "seconds", "trials_s"), [([], 600.0, 110.0), (["--budget", "5min"], 300.0, None)])
def test_a_budget_that_is_given_is_divided_as_before(options, seconds, trials_s, tmp_path, monkeypatch):
    asked = []

    def fix(request, *rest):
        asked.append(request)
        raise AdvisorError("Enough.")

    monkeypatch.setattr("advisor.workflows.fix.fix", fix)
    script = tmp_path / "train.py"
    script.write_text("")
    assert main(["fix", "--quiet", *options, str(script)]) == 2
    assert [(request.budget_s, request.trials_s) for request in asked] == [(seconds, trials_s)]


def test_the_command_to_go_on_with_repeats_what_was_asked_for():
    script = Request(path=Path("my train.py"), args=("--epochs", "3"), allow=("reordered",))
    request = FixRequest(script, 300, trials_s=75, only=("serial-map",))
    assert request.commands.longer() == (
        "advisor fix --budget 10min --allow reordered --only serial-map 'my train.py' --epochs 3"
    )
    assert "--budget 15min" in request.commands.longer(missing_s=600)
    assert "--budget" not in request.commands.again()
    assert FixRequest(Request(module="pkg.train"), 45).commands.again() == "advisor fix --budget 50s -m pkg.train"


def prove(session, clock, seconds):
    proposed = {frozenset(): [CACHE, MAP, FETCH], frozenset({"cache"}): [MAP, FETCH]}

    def propose(report, kept):
        return proposed.get(frozenset(finding.rule for finding in kept), [])

    report = Report(None)
    return prove_fixes(session, report, {}, propose, lambda path: report, clock.now + seconds, lambda progress: None,
                       least_trial_s=LEAST_TRIAL_S.value, clock=clock)  # fmt: skip


class Slow(Arithmetic):
    """Each trial takes 20 s of a made-up clock; past `ends` the session stops it."""

    def __init__(self, rate, clock, ends):
        super().__init__(rate)
        self.clock, self.ends = clock, ends

    def _trial(self, before, after, claimed):
        self.clock.now += 20
        if self.clock.now > self.ends:
            raise OutOfTime("stopped")
        return super()._trial(before, after, claimed)


def test_no_trial_begins_that_would_not_end_in_time():
    clock = Clock()
    result = prove(Slow(lambda on: 1.0, clock, clock.now + 1000), clock, seconds=50)
    assert [attempt.finding.rule for attempt in result.attempts] == ["cache", "map"]
    assert clock.now == 140
    assert (
        result.stopped_because == "The time for trials was used up; not tried: Do fetch. A longer budget allows more."
    )


class Reading(Slow):
    """The first trial also reads the unchanged pipeline, which takes 40 s."""

    def _trial(self, before, after, claimed):
        is_first = self.clock.now == Clock().now
        self.clock.now += 40 * is_first
        return replace(super()._trial(before, after, claimed), original_s=40.0 * is_first)


def test_what_only_the_first_trial_has_to_read_does_not_keep_another_one_from_beginning():
    clock = Clock()
    result = prove(Reading(lambda on: 1.0, clock, clock.now + 1000), clock, seconds=85)
    assert [attempt.finding.rule for attempt in result.attempts] == ["cache", "map"]
    assert clock.now == 180


def test_time_is_kept_to_measure_all_changes_together():
    clock = Clock()
    session = Slow(lambda on: 1.0 + len(on), clock, clock.now + 1000)
    result = prove(session, clock, seconds=75)  # the cache, the map, both together: 60 s; then nothing more begins
    assert kept(result) == ["cache", "map"]
    assert result.total is not None
    assert clock.now == 160
    clock = Clock()
    result = prove(Slow(lambda on: 1.0 + len(on), clock, clock.now + 1000), clock, seconds=55)
    assert kept(result) == ["cache"]  # the map would fit, but not both together behind it


def test_a_trial_that_is_stopped_costs_nothing_that_is_proved():
    clock = Clock()
    session = Slow(lambda on: 1.0 + len(on), clock, ends=clock.now + 35)
    result = prove(session, clock, seconds=75)
    assert kept(result) == ["cache"]
    assert result.total is not None and result.total.verdict == FASTER
    assert [(attempt.finding.rule, attempt.trial.verdict) for attempt in result.attempts] == [
        ("cache", FASTER),
        ("map", REFUSED),
    ]
    assert result.stopped_because == "The budget was used up during a trial; not tried: Do fetch."


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().split(") ")[1][0] not in "ZX"
    except OSError:
        return False


def test_a_script_is_stopped_at_the_deadline_whatever_it_does(tmp_path):
    script, pid = tmp_path / "train.py", tmp_path / "pid"
    script.write_text(STUBBORN)

    class Deadline(float):
        """Passed once the script sleeps."""

        def __le__(self, now):
            return pid.exists() and pid.read_text() != ""

    request = CaptureRequest(
        tmp_path / "run", script, args=(str(pid),), in_place=True, deadline=Deadline(time.monotonic())
    )  # in place: the test reads what the script writes
    with pytest.raises(OutOfTime):
        capture(request, lambda progress: None)
    assert not is_alive(int(pid.read_text()))
    assert os.getpid() != int(pid.read_text())


RUN = RunSteps(10.0, 0.5, 50, 100)


def out_of_time(monkeypatch, stopped_in, before_ms=(10.0,)):
    """The result of runs of which one is stopped at the deadline; the other side always takes 10 ms."""
    runs, deadlines = [], []

    def time_run(request, on_progress, is_with_gaps):
        runs.append(request.script)
        deadlines.append(request.deadline)
        if len(runs) == stopped_in:
            raise OutOfTime("stopped")
        is_before = request.script.name == "before.py"
        return replace(RUN, step_ns=before_ms[(len(runs) - 1) // 2 % len(before_ms)]) if is_before else RUN

    monkeypatch.setattr(end_to_end, "time_run", time_run)
    far = time.monotonic() + 1e9
    sides = [CaptureRequest(Path("unused"), Path(name)) for name in ("before.py", "after.py")]
    whole = measure_end_to_end(sides[0], sides[1], lambda progress: None, far)
    assert set(deadlines) == {far}
    assert len(runs) == stopped_in
    assert (whole.verdict, whole.is_out_of_time) == (REFUSED, True)
    return whole


@pytest.mark.parametrize("stopped_in", [1, 2, 5])
def test_a_run_that_is_stopped_is_lack_of_time_and_no_verdict(monkeypatch, stopped_in):
    whole = out_of_time(monkeypatch, stopped_in)
    assert whole.speedup is None and not whole.is_undecided
    assert "not measured: the budget was used up after" in whole.note


@pytest.mark.parametrize(("stopped_in", "pairs", "at_look"), [(8, 3, 3), (10, 4, 4), (12, 5, 4)])
def test_pairs_that_were_finished_in_time_are_reported_as_undecided(monkeypatch, stopped_in, pairs, at_look):
    times = 11.0, 11.4, 12.0, 10.2, 10.0
    whole = out_of_time(monkeypatch, stopped_in, times)
    look = next(look for look in LOOKS if look.pairs == at_look)
    assert whole.speedup == interval_at([ms / 10.0 for ms in times[:at_look]], look.error)
    assert whole.speedup.low < 1 < whole.speedup.high and whole.is_undecided
    assert f"the budget was used up after {pairs} of up to 8 pairs of runs" in whole.note
    assert not is_proved(whole)
    assert (whole.test.ended_because, whole.test.pairs) == ("out of time", pairs)
    told = line_of_whole("all changes", whole)
    assert "undecided" in told and "not measured" not in told
    facts = speed_of_scripts(whole).facts
    assert (facts.state, facts.speedup) == ("unknown", whole.speedup) and "of up to 8 pairs" in facts.reason
    assert verdict_of(whole) == "unknown"
    assert verdict_of(replace(whole, speedup=Interval(1.0, 0.95, 1.1))) == SAME  # it excludes anything else
