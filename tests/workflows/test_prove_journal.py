"""`advisor prove --journal` and `--resume` as a user runs them; the proof itself is replaced by its result."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from advisor.cli import main
from advisor.model.errors import AdvisorError, ChangeFailed, ScriptFailed
from advisor.model.termination import Terminated
from advisor.report.change_json import change_to_bytes
from advisor.workflows import prove_journal
from tests.gate.made_journal import PROOF

JOURNAL = "advisor-journal.jsonl"
OPTIONS = ["--journal", JOURNAL, "--hypothesis", "two  calls\nat once", "--with", "other.py", "--json", "-"]


@pytest.fixture
def proofs(tmp_path, monkeypatch):
    """The results of the next proofs, which are errors or verdicts; what is left in the list was not asked for."""
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text("x = 1\n")
    Path("other.py").write_text("x = 2\n")
    results = []

    def prove(request, settings, on_progress):
        result = results.pop(0)
        if isinstance(result, BaseException):
            raise result
        return replace(result, target=request.target, change=request.texts.label, files=request.files)

    monkeypatch.setattr(prove_journal, "prove", prove)
    return results


def lines():
    return [json.loads(line) for line in Path(JOURNAL).read_text().splitlines()]


def prove(*options):
    return main(["prove", *OPTIONS, *options, "train.py", "--fast"])


def test_both_lines_of_a_trial(proofs, capsys):
    proofs.append(PROOF)
    assert prove() == 0
    proof = json.loads(capsys.readouterr().out)
    began, judged = lines()
    assert (began["event"], judged["event"]) == ("began", "judged")
    same = ("trial", "base", "diff", "options", "hypothesis", "target", "change", "files")
    assert [began[name] for name in same] == [judged[name] for name in same]
    assert judged["hypothesis"] == "two calls at once" and judged["target"] == "train.py --fast"
    assert judged["proof"] == proof and proof["judged_before"] is None
    assert judged["verdict"] == "equal and faster" and judged["exit_code"] == 0 and judged["seconds"] == 21.5
    assert began["verdict"] is None and began["proof"] is None


@pytest.mark.parametrize(("options", "code"), [([], 0), (["--fail-on", "slower"], 0), (["--fail-on", "not-faster"], 1)])
def test_the_same_change_is_not_tried_twice(options, code, proofs, capsys):
    proofs.append(replace(PROOF, verdict="same", speed="same"))
    assert prove("--resume", *options) == code
    first = json.loads(capsys.readouterr().out)
    Path("other.py").write_text("# a comment\nx  =  2\n")
    assert prove("--resume", *options) == code
    captured = capsys.readouterr()
    second = json.loads(captured.out)
    assert second["judged_before"] == lines()[1]["time"]
    assert {**second, "judged_before": None} == first
    assert "nothing was run now" in captured.err and "will be run" not in captured.err
    assert len(lines()) == 2


def test_an_interrupted_trial_shows_what_is_known_and_is_tried_again(proofs, capsys):
    proofs += [replace(PROOF, verdict="cannot tell", speed="unknown", speedup=None, is_interrupted=True), PROOF]
    assert prove() == 130
    assert json.loads(capsys.readouterr().out)["is_interrupted"]
    assert [line["event"] for line in lines()] == ["began", "stopped"]
    assert prove("--resume") == 0 and not proofs


def test_without_resume_it_is_judged_again(proofs):
    proofs += [PROOF, PROOF]
    assert prove() == prove() == 0
    assert [line["event"] for line in lines()] == ["began", "judged"] * 2


def test_another_change_and_another_text_are_judged(proofs):
    proofs += [PROOF] * 3
    assert prove("--resume") == 0
    Path("other.py").write_text("x = 3\n")
    assert prove("--resume") == 0
    Path("train.py").write_text("x = 0\n")
    assert prove("--resume") == 0
    assert proofs == [] and len(lines()) == 6


def test_a_change_with_which_the_script_fails_is_not_tried_twice(proofs, capsys):
    proofs.append(ChangeFailed("With the change: train.py failed."))
    assert prove("--resume") == 3
    assert lines()[1]["event"] == "failed" and lines()[1]["exit_code"] == 3
    capsys.readouterr()
    assert prove("--resume") == 3
    captured = capsys.readouterr()
    assert captured.err.startswith("error: With the change: train.py failed (found at 20") and captured.out == ""
    assert len(lines()) == 2


@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [
        (KeyboardInterrupt(), 130, "Interrupted."),
        (Terminated(15), 143, "Terminated."),
        (AdvisorError("No time."), 2, "No time."),
        (ScriptFailed("train.py failed."), 3, "train.py failed."),
        (RuntimeError("a bug"), 2, "RuntimeError"),
    ],
)
def test_what_ended_without_a_result_is_tried_again(error, code, sentence, proofs):
    proofs += [error, PROOF]
    assert prove("--resume") == code
    assert (lines()[1]["event"], lines()[1]["exit_code"], lines()[1]["error"]) == ("stopped", code, sentence)
    assert prove("--resume") == 0
    assert proofs == []


def test_after_a_crash_the_trial_is_repeated_and_the_report_says_so(proofs, capsys):
    proofs += [PROOF, PROOF]
    assert prove() == 0
    whole = Path(JOURNAL).read_bytes()
    Path(JOURNAL).write_bytes(
        whole[: whole.index(b"\n") + 40]
    )  # as if it had been killed while writing the second line
    capsys.readouterr()
    assert prove("--resume") == 0
    captured = capsys.readouterr()
    notes = json.loads(captured.out)["notes"]
    assert any("has no end in the journal" in note for note in notes)
    assert any(f"Lines of {JOURNAL} that are incomplete were passed over: 2." == note for note in notes)
    assert proofs == []


def test_a_verdict_that_cannot_be_noted_is_shown_all_the_same(proofs, capsys, monkeypatch):
    def prove_and_remove(request, settings, on_progress):
        shutil.rmtree("notes")
        return PROOF

    monkeypatch.setattr(prove_journal, "prove", prove_and_remove)
    Path("notes").mkdir()
    args = ["--journal", "notes/journal.jsonl", "--with", "other.py", "--json", "-", "train.py"]
    assert main(["prove", *args]) == 2
    captured = capsys.readouterr()
    assert json.loads(captured.out)["verdict"] == "equal and faster"
    assert "cannot be written" in captured.err.splitlines()[-1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--resume"], "--resume needs --journal FILE"),
        (["--hypothesis", "x"], "--hypothesis needs --journal FILE"),
        (["--journal", "train.py"], "names a source file"),
        (["--journal", "notes.txt"], "is not an advisor journal"),
        (["--journal", "journal", "--hypothesis", "x" * 2001], "longer than 2000 characters"),
    ],
)
def test_mistakes_run_nothing_and_write_nothing(options, message, proofs, capsys):
    Path("notes.txt").write_text("mine\n")
    before = sorted(Path.cwd().iterdir())
    assert main(["prove", *options, "--with", "other.py", "train.py"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line
    assert sorted(Path.cwd().iterdir()) == before and Path("notes.txt").read_text() == "mine\n"


def test_the_options_may_follow_the_script(proofs):
    proofs.append(PROOF)
    args = ["train.py", "--with", "other.py", "--journal", JOURNAL, "--resume", "--hypothesis", "x", "--fast"]
    assert main(["prove", *args]) == 0
    assert lines()[0]["target"] == "train.py --fast"


def test_a_document_is_the_verdict_that_it_was_made_of():
    from advisor.report.change_json import change_of, document_of
    from tests.report.test_change_text import CHANGE

    assert change_of(document_of(CHANGE)) == CHANGE
    assert change_to_bytes(change_of(document_of(PROOF))) == change_to_bytes(PROOF)
