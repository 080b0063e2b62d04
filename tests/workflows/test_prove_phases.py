"""The phases of `advisor prove` with made-up runs and comparisons: what is asked of the runs, and what is told when."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

from advisor.capture.request import RESULT
from advisor.gate.changed_texts import ChangedTexts
from advisor.model.change_proof import ComparedDataset
from advisor.model.finding import Safety
from advisor.model.outcome import Interval
from advisor.model.settings import Settings
from advisor.model.termination import Terminated
from advisor.prove.measure.end_to_end_result import EndToEnd
from advisor.prove.measure.run_steps import RunSteps
from advisor.prove.texts.compare_texts import TextComparison
from advisor.report.change_json import change_of, document_of
from advisor.workflows import prove as workflow
from advisor.workflows.analyze import Request
from advisor.workflows.prove import prove
from advisor.workflows.prove_request import ProveRequest
from tests.prove.run_recordings import recording

RUN = RunSteps(1e7, 0.5, 50, 100)
FASTER = EndToEnd("faster", Interval(2.0, 1.9, 2.1), (RUN,) * 3, (RUN,) * 3)


class Comparison:
    """Everything that a test may set, and what was seen."""

    def __init__(self):
        self.safety, self.is_seeded = Safety.EXACT, True
        self.whole = FASTER
        self.asked, self.told = [], []

    def request(self, tmp_path):
        script = tmp_path / "train.py"
        return ProveRequest(
            Request(script), ChangedTexts("--with other.py", {script.resolve(): (b"x = 1\n", b"x = 2\n")})
        )

    def measure(self, *args, **options):
        self.asked.append(options)
        if isinstance(self.whole, BaseException):
            raise self.whole
        return self.whole

    def run(self, tmp_path):
        (tmp_path / "train.py").write_text("x = 1\n")
        return prove(self.request(tmp_path), Settings(), self.told.append)


@pytest.fixture
def made(monkeypatch):
    made = Comparison()

    @contextmanager
    def held(proving, sides, consumed, calls):
        proving._is_seeded = made.is_seeded
        yield None, None, None

    class Comparer:
        def __init__(self, *args):
            pass

        def compare(self):
            return TextComparison((ComparedDataset("the dataset", made.safety, 100, True),), (), None)

    monkeypatch.setattr(workflow, "record_run", lambda request, on_progress: recording([100] * 12))
    monkeypatch.setattr(workflow._Proving, "_held", held)
    monkeypatch.setattr(workflow, "TextComparer", Comparer)
    monkeypatch.setattr(workflow, "measure_end_to_end", made.measure)
    monkeypatch.setattr(workflow, "steps_of", lambda run: RUN)
    for name, value in (
        ("consumed_call", None), ("later_datasets", ""), ("loop_difference", ""), ("steps_until_steady", None),
    ):  # fmt: skip
        monkeypatch.setattr(workflow, name, lambda *args, value=value: value)
    return made


@pytest.mark.parametrize(("safety", "may_give_up"), [(Safety.EXACT, False), (Safety.CHANGES, True), (None, False)])
def test_runs_that_can_only_show_equal_speed_are_not_made_for_different_data(safety, may_give_up, made, tmp_path):
    made.safety = safety
    made.run(tmp_path)
    assert [options["may_give_up"] for options in made.asked] == [may_give_up]


@pytest.mark.parametrize(
    ("safety", "verdict", "words"),
    [
        (Safety.EXACT, "cannot tell", "equal. The elements are the same."),
        (Safety.CHANGES, "different data", "different. The elem"),
    ],
)
def test_the_data_are_told_at_once_and_kept_when_the_command_is_interrupted(safety, verdict, words, made, tmp_path):
    made.safety, made.whole = safety, KeyboardInterrupt()
    change = made.run(tmp_path)
    (line,) = [progress.text for progress in made.told if progress.phase == RESULT]
    assert f"Data: {words}" in line
    assert (change.verdict, change.speed, change.is_interrupted) == (verdict, "unknown", True)
    assert "interrupted" in change.sentence and change.datasets[0].safety is safety
    made.whole = Terminated(15)
    with pytest.raises(Terminated):
        made.run(tmp_path)


def test_the_phases_with_their_runs(made, tmp_path):
    change = made.run(tmp_path)
    assert [(phase.name, phase.runs) for phase in change.phases] == [("first runs", 2), ("whole script", 6)]
    assert sum(phase.runs for phase in change.phases) == change.runs
    assert change_of(document_of(change)) == change
    assert not change.is_interrupted
