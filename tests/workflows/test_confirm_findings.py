"""New findings with --against: they count if the base revision lacks them and a second run of the working tree has them."""

from __future__ import annotations

import pytest

from advisor.capture import launch
from advisor.gate.base_revision import BaseTexts
from advisor.model.check_result import BaseComparison
from advisor.model.errors import ScriptFailed
from advisor.model.settings import Settings
from advisor.workflows import check as workflow
from advisor.workflows import confirm_findings
from advisor.workflows.analyze import Request
from advisor.workflows.check import CheckRequest, check
from advisor.workflows.confirm_findings import SecondLook, look_again
from tests.gate.made_runs import made_report

OLD, NEW = ("serial-map", ".map(decode)"), ("repeated-work", ".map(load)")


@pytest.fixture
def texts(tmp_path):
    (tmp_path / "train.py").write_text("head")
    files = {tmp_path / "train.py": (b"head", b"base"), tmp_path / "gone.py": (b"", b"gone")}
    return BaseTexts("main", "0" * 40, tmp_path, files, (tmp_path / "gone.py",))


@pytest.fixture
def check_against(monkeypatch, tmp_path, texts):
    """Check with a baseline that holds `OLD`; each run has the given findings."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "advisor-baseline.json").write_text(
        '{"generator": "advisor check", "schema_version": 1, "scripts": '
        '{"train.py": [{"rule": "serial-map", "call": ".map(decode)", "count": 1}]}}'
    )

    def run(first, again):
        asked = CheckRequest(Request(path=tmp_path / "train.py"), against="main")
        looks = []
        monkeypatch.setattr(workflow, "read_base", lambda *args: texts)
        monkeypatch.setattr(workflow, "_analyze_all", lambda *args: (made_report(*first, target="train.py"),))
        monkeypatch.setattr(workflow, "compare_with_base", lambda *args: BaseComparison("main", "0" * 40))
        monkeypatch.setattr(workflow, "look_again", lambda *args: looks.append(args) or again)
        return check(asked, (), Settings(), lambda progress: None).check, len(looks)

    return run


@pytest.mark.parametrize(
    ("head", "base", "is_new"),
    [
        ((OLD, NEW), (OLD,), True),
        ((OLD,), (OLD,), False),  # it came and went
        ((OLD, NEW), (OLD, NEW), False),  # the base has it, too
        ((OLD, NEW), None, True),
        (None, None, True),  # nothing refutes it
    ],
)
def test_a_new_finding_counts_if_it_is_confirmed(check_against, head, base, is_new):
    reports = [None if findings is None else made_report(*findings) for findings in (head, base)]
    result, _ = check_against((OLD, NEW), SecondLook(*reports))
    assert result.is_passed is not is_new
    assert [finding.rule for finding in result.new_findings] == ["repeated-work"] * is_new
    assert (
        any("repeated-work at .map(load) is not in the baseline, but does not count" in note for note in result.notes)
        is not is_new
    )


def test_a_check_without_new_findings_runs_nothing_more(check_against):
    result, looks = check_against((OLD,), SecondLook())
    assert result.is_passed and looks == 0


def test_a_second_finding_of_the_second_run_alone_does_not_count(check_against):
    other = ("late-filter", ".filter(keep)")
    result, _ = check_against((OLD, NEW), SecondLook(made_report(OLD, NEW, other), made_report(OLD)))
    assert [finding.rule for finding in result.new_findings] == ["repeated-work"]


def test_a_known_finding_on_an_edited_call_does_not_count(check_against):
    edited = ("serial-map", ".map(lambda x: decode(x))")
    result, _ = check_against((edited,), SecondLook(made_report(edited), made_report(OLD)))
    assert result.is_passed
    assert any("it was known at .map(decode), which is gone" in note for note in result.notes)


@pytest.mark.parametrize(
    "edited",
    [
        (OLD, ("serial-map", ".map(other)")),  # the old call still has it
        (("serial-map", ".map(one)"), ("serial-map", ".map(two)")),  # one more than before
        (("serial-map", ".interleave(decode)"),),  # on another method
        (("late-filter", ".map(lambda x: decode(x))"),),  # of another rule
    ],
)
def test_a_finding_that_no_vanished_one_explains_counts(check_against, edited):
    result, _ = check_against(edited, SecondLook(made_report(*edited), made_report(OLD)))
    assert not result.is_passed and len(result.new_findings) == 1


def test_each_side_is_analysed_with_its_own_text(monkeypatch, texts):
    seen = []

    def analyze(request, rules, settings, on_progress, capture):
        capture(confirm_findings_request(request), on_progress)
        return made_report(OLD)

    def run(request, on_progress):
        seen.append({path.name: text.read_bytes() for path, text in request.overlay})

    monkeypatch.setattr(confirm_findings, "analyze", analyze)
    monkeypatch.setattr(launch, "capture", run)
    looks = look_again(Request(path=texts.top / "train.py"), texts, (), Settings(), lambda progress: None)
    assert seen == [{"train.py": b"head"}, {"train.py": b"base", "gone.py": b"gone"}]
    assert looks.head is not None and looks.base is not None and looks.notes == ()


def test_a_base_that_fails_is_noted(monkeypatch, texts):
    def analyze(request, rules, settings, on_progress, capture):
        reports.append(request)
        if len(reports) == 2:
            raise ScriptFailed("train.py failed: NameError.")
        return made_report(OLD)

    reports = []
    monkeypatch.setattr(confirm_findings, "analyze", analyze)
    looks = look_again(Request(path=texts.top / "train.py"), texts, (), Settings(), lambda progress: None)
    assert looks.base is None and looks.notes == (
        "New findings could not be confirmed with main: train.py failed: NameError.",
    )


def confirm_findings_request(request):
    from advisor.capture.request import CaptureRequest

    return CaptureRequest(out=request.out, script=request.path)
