"""What `advisor fix` prints and writes as JSON, of made-up proofs."""

from __future__ import annotations

import dataclasses
import io
import json
from html import unescape

import pytest
from rich.console import Console

from advisor.model.finding import Prediction, Safety
from advisor.model.outcome import Comparison, FixOutcome, Gain, Interval
from advisor.model.proof_result import FixedNumbers, Phase, Proof, Side
from advisor.model.untried import NextStep, UntriedFix, Why
from advisor.report.html import report_to_html
from advisor.report.progress import show_budget
from advisor.report.proof_text import print_proof
from advisor.report.report_json import report_to_bytes
from tests.report.made_reports import EVIL, slow_report

GIB = 1 << 30


def proved(**changes):
    report = slow_report()
    site = report.findings[0].site
    fixes = (
        FixOutcome("repeated-work", site, Prediction(3, 2, 4), Interval(6.1, 5.8, 6.3), Safety.EXACT, Safety.EXACT,
                   "faster", True, "Cache behind map(decode)", "", GIB, 2 * GIB, proved_on="training",
                   pipeline=Gain(Prediction(6, 5, 7), Interval(6.1, 5.8, 6.3)),
                   step=Gain(Prediction(3, 2, 4), Interval(2.9, 2.7, 3.1))),
        FixOutcome("serial-map", site, None, None, Safety.EXACT, Safety.CHANGES, "broken", False, "Parallelise map(f)",
                   "Claimed to be exact, but the elements show changes."),
    )  # fmt: skip
    proof = Proof(
        "faster", "A training step is 2.9x (2.7x to 3.1x) faster.",
        Side(122.0, 23.6e6, 0.69, GIB), Side(800.0, 8.1e6, 0.03, 2 * GIB), 14, 8, 6,
        "--- a/train.py\n+++ b/train.py\n@@ -1 +1 @@\n-ds\n+ds.cache()\n", ("Shuffle less: would reorder.",),
        ("/tmp/checkpoint",), (), ("A note.",), 150.0, "training", "faster",
        (Phase("analysis", 14.0, 1), Phase("trials", 40.0), Phase("whole script", 90.0, 12)),
    )  # fmt: skip
    comparison = Comparison(122.0, 800.0, Interval(6.5, 6.1, 6.9), Interval(2.9, 2.7, 3.1), 0.69, 0.03)
    return dataclasses.replace(report, fixes=fixes, comparison=comparison, proof=dataclasses.replace(proof, **changes))


def printed(report, width=100):
    out = io.StringIO()
    print_proof(report, Console(file=out, width=width, highlight=False, markup=False, emoji=False))
    return out.getvalue()


@pytest.mark.parametrize(
    ("together", "words"),
    [(Safety.RERANDOMIZED, "rerandomized, with the changes before it"), (Safety.EXACT, "rerandomized, not exact"),
     (None, "rerandomized, not exact")],
)  # fmt: skip
def test_what_an_earlier_change_does_to_the_data_is_not_laid_to_a_later_one(together, words):
    report = proved()
    first = dataclasses.replace(report.fixes[0], safety_seen=Safety.RERANDOMIZED, claimed_together=together)
    assert words in " ".join(printed(dataclasses.replace(report, fixes=(first,))).split())


@pytest.mark.parametrize("width", [60, 100, 200])
def test_everything_is_said(width):
    text = " ".join(printed(proved(), width).split())
    for part in ("2.9x (2.7x to 3.1x)", "23.6 ms", "8.1 ms", "800 elements/s", "69 %", "3 %", "+ds.cache()", "/tmp/checkpoint",
                 "would reorder", "A note.", "run 14 times", "6 alternating pairs of runs", "broken",
                 "(analysis 14 s for 1 run, trials 40 s, whole script 1.5 min for 12 runs)"):  # fmt: skip
        assert part in text, part


@pytest.mark.parametrize("width", [60, 80, 100, 160, 200])
def test_prediction_and_measurement_of_a_change_are_of_the_same_quantity(width):
    lines = printed(proved(), width).splitlines()
    text = "\n".join(lines[lines.index("Changes tried") : lines.index("Before and after")])
    figures = ["6.0x (5.0x to 7.0x)", "6.1x (5.8x to 6.3x)", "3.0x (2.0x to 4.0x)", "2.9x (2.7x to 3.1x)"]
    places = [text.index(figure) for figure in figures]
    assert places == sorted(places)
    assert text.index("pipeline alone") < text.index("training step")
    if width < 160:
        flat = " ".join(text.split())
        assert "pipeline alone: predicted 6.0x (5.0x to 7.0x), measured 6.1x (5.8x to 6.3x)" in flat
        assert "training step: predicted 3.0x (2.0x to 4.0x), measured 2.9x (2.7x to 3.1x)" in flat


@pytest.mark.parametrize("width", range(60, 240, 20))
def test_long_texts_beside_a_change_leave_it_readable(width):
    report = proved()
    fixes = tuple(
        dataclasses.replace(fix, safety_claimed=Safety.RERANDOMIZED, safety_seen=Safety.CHANGES, proved_on="pipeline")
        for fix in report.fixes
    )
    text = printed(dataclasses.replace(report, fixes=fixes), width)
    assert any("Cache behind map(decode)" in line for line in text.splitlines())


def test_lines_have_no_blanks_at_their_ends():
    assert all(line == line.rstrip() for line in printed(proved()).splitlines())


def test_strangers_text_cannot_harm_the_terminal():
    report = proved(sentence=EVIL, diff=f"+{EVIL}\n", left_out=(EVIL,), written_files=(EVIL,), notes=(EVIL,))
    report = dataclasses.replace(
        report, fixes=tuple(dataclasses.replace(fix, title=EVIL, note=EVIL) for fix in report.fixes)
    )
    text = printed(report)
    assert not {"\x1b", "\x07", "\r", "\x9b", "\u202e", "\x00"} & set(text)
    assert "[bold red]" in text  # shown, not obeyed


def test_json_is_the_contracts(validate):
    data = json.loads(report_to_bytes(proved()))
    validate(data)
    assert data["fixes"][0] == {
        "rule": "repeated-work",
        "site": data["findings"][0]["site"],
        "predicted_speedup": {"value": 3, "low": 2, "high": 4},
        "measured": {"speedup": 6.1, "low": 5.8, "high": 6.3},
        "safety_claimed": "exact",
        "safety_seen": "exact",
        "verdict": "faster",
        "applied": True,
        "proved_on": "training",
    }
    assert data["comparison"] == {
        "pipeline": {"before": 122.0, "after": 800.0, "speedup": 6.5, "low": 6.1, "high": 6.9},
        "end_to_end": {"value": 2.9, "low": 2.7, "high": 3.1},
        "input_wait_share": {"before": 0.69, "after": 0.03},
    }
    assert data["proof"]["fixes"][0]["memory_bytes"] == {"before": GIB, "after": 2 * GIB}
    assert data["proof"]["before"]["step_time_ms"] == 23.6


@pytest.mark.parametrize("is_chosen", [False, True])
def test_numbers_compared_with_autotune_are_in_every_report(is_chosen, validate):
    speed = (0.99, 0.97, 1.01) if is_chosen else None
    numbers = FixedNumbers(4, 1, 20_000_000, GIB, GIB // 4, 3 * GIB, speed, is_chosen, 12.5, 16)
    report = proved(fixed_numbers=numbers)
    begin = "num_parallel_calls=4 and prefetch(1) instead of AUTOTUNE" if is_chosen else "AUTOTUNE is kept instead of"
    text = " ".join(printed(report, 200).split())
    assert begin in text and "256 MiB instead of 1 GiB" in text
    data = json.loads(report_to_bytes(report))
    validate(data)
    assert data["proof"]["fixed_numbers"]["chosen"] is is_chosen
    assert (data["proof"]["fixed_numbers"]["parallel_calls"], data["proof"]["fixed_numbers"]["autotune_calls"]) == (
        4,
        16,
    )
    for text in (" ".join(printed(report).split()), report_to_html(data).decode()):
        assert "256 MiB instead of 1 GiB with up to 4 instead of 16 threads per call" in text
    assert data["proof"]["fixed_numbers"]["speed"] == (
        {"speedup": 0.99, "low": 0.97, "high": 1.01} if is_chosen else None
    )
    assert data["proof"]["phases"][2] == {"name": "whole script", "seconds": 90.0, "runs": 12}
    page = report_to_html(data).decode()
    assert begin in page and "whole script 1.5 min for 12 runs" in page


@pytest.mark.parametrize("width", [60, 100, 200])
def test_where_it_was_proved_is_said_in_words(width):
    on_training = " ".join(printed(proved(changed_files=("train.py",)), width).split())
    assert "proved on the training, kept" in on_training
    assert "Written, proved on the training" in on_training
    report = proved(proved_on="pipeline", training="not measured", changed_files=("train.py",))
    fixes = (dataclasses.replace(report.fixes[0], proved_on="pipeline"), *report.fixes[1:])
    comparison = dataclasses.replace(report.comparison, end_to_end=None)
    report = dataclasses.replace(report, fixes=fixes, comparison=comparison)
    alone = " ".join(printed(report, width).split())
    assert "proved on the pipeline alone, kept" in alone
    assert "training: not measured" in alone
    assert "Written, proved on the pipeline alone" in alone
    assert "Not measured - Shuffle less: would reorder." in alone
    for text in (on_training, alone):
        assert "faster, kept" not in text


@pytest.mark.parametrize(
    ("proved_on", "is_applied", "fail_on", "code"),
    [
        ("training", True, ("any",), 0),
        ("pipeline", True, ("any",), 4),
        ("pipeline", False, ("any",), 1),  # the training contradicts it, or was not measured for lack of time
        (None, False, ("any",), 1),
        (None, False, (), 0),
        ("pipeline", True, (), 0),
    ],
)
def test_exit_codes_tell_where_it_was_proved(proved_on, is_applied, fail_on, code):
    from advisor.commands.fix import exit_code_of

    report = proved(proved_on=proved_on)
    fixes = tuple(dataclasses.replace(fix, is_applied=is_applied, proved_on=proved_on) for fix in report.fixes)
    assert exit_code_of(dataclasses.replace(report, fixes=fixes), fail_on) == code


def test_nothing_to_fix_is_short():
    report = dataclasses.replace(
        proved(diff="", left_out=(), written_files=(), notes=(), sentence="Nothing to fix."), fixes=(), comparison=None,
        rule_errors=(),
    )  # fmt: skip
    lines = [line for line in printed(report).splitlines() if line]
    assert lines[0] == "Nothing to fix."
    assert len(lines) <= 5


def test_budget_bar_shows_what_is_being_tried_and_is_gone_afterwards():
    from advisor.capture.request import Progress

    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=100)
    with show_budget(console, is_quiet=False, budget_s=300.0) as show:
        show(Progress("proving", 1, None, "Cache behind map(decode)"))
    assert "trying (Cache behind map(decode))" in out.getvalue()
    assert "5 min" in out.getvalue()
    quiet = io.StringIO()
    with show_budget(Console(file=quiet), is_quiet=False, budget_s=300.0) as show:
        show(Progress("proving"))
    assert quiet.getvalue() == ""


def test_html_and_markdown_say_of_which_quantity_a_gain_is():
    from advisor.export.markdown import report_to_markdown
    from advisor.report.html import report_to_html
    from advisor.report.report_json import report_to_dict

    report = proved()
    report = dataclasses.replace(report, fixes=(dataclasses.replace(report.fixes[0], rule="serial-map"),))
    for text in (report_to_markdown(report_to_dict(report)), report_to_html(report_to_dict(report)).decode()):
        assert "pipeline alone: predicted 6.0x (5.0x to 7.0x), measured 6.1x (5.8x to 6.3x)" in text
        assert "training step: predicted 3.0x (2.0x to 4.0x), measured 2.9x (2.7x to 3.1x)" in text


def test_the_next_command_is_shown_everywhere(validate):
    command = "advisor fix --budget 20min 'my train.py' --long=" + "x" * 200
    other = "advisor fix --only late-shuffle 'my train.py'"
    untried = (
        UntriedFix("late-shuffle", "Shuffle earlier", None, Why.CONFLICT, "Conflicts.", other),
        UntriedFix("serial-map", "Parallelise", None, Why.TRIALS_OUT_OF_TIME, "No time.", command),
    )
    step = NextStep(Why.TRIALS_OUT_OF_TIME, "There was no time to try everything.", command)
    report = proved(next=step, untried=untried)
    data = json.loads(report_to_bytes(report))
    validate(data)
    proof = data["proof"]
    assert (proof["next_why"], proof["next_step"], proof["next_command"]) == (str(step.why), step.sentence, command)
    assert [entry["command"] for entry in proof["untried"]] == [other, command]
    lines = printed(report, width=60).splitlines()
    assert f"    {command}" in lines, "on one line, so that it can be copied"
    assert lines.count(f"    {command}") == 1
    assert f"    {other}" in lines
    assert "Next: There was no time to try everything." in lines
    html = unescape(report_to_html(data).decode())
    assert html.count(command) == 2 and other in html and step.sentence in html
    assert json.loads(report_to_bytes(proved()))["proof"]["next_command"] is None


def test_a_change_that_is_made_by_hand_says_so_before_its_command(validate):
    command, other = "advisor prove --with train_changed.py train.py", "advisor fix --only late-shuffle train.py"
    untried = (
        UntriedFix("rebuilt-every-epoch", "Use one iterator", None, Why.ADVICE_ONLY, "Advice only.", command),
        UntriedFix("scalar-map", "Batch first", None, Why.CANNOT_REWRITE, "A macro makes it.", command),
        UntriedFix("late-shuffle", "Shuffle earlier", None, Why.CONFLICT, "Conflicts.", other),
    )
    data = json.loads(report_to_bytes(proved(untried=untried)))
    validate(data)
    assert [entry["by_hand"] for entry in data["proof"]["untried"]] == [True, True, False]
    lines = [line.strip() for line in printed(proved(untried=untried)).splitlines()]
    by_hand = "(make the change in a copy of the script first):"
    start = lines.index(f"Use one iterator {by_hand}")
    assert lines[start + 1 : start + 4] == [f"Batch first {by_hand}", command, "Shuffle earlier:"]
    assert unescape(report_to_html(data).decode()).count("make the change in a copy of the script first") == 2
