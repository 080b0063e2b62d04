"""A change of the training step is judged by the runs of the script: its data, its loss, its speed per element, its errors."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from advisor.engine import load_rules
from advisor.engine.run import run_rules
from advisor.model.calls import Site
from advisor.model.edits import InsertAfter, SetBatchSize, SetCompileArgument, SetOption, SetPolicy, StepEdit
from advisor.model.finding import Finding, Fix, Safety
from advisor.model.outcome import Interval, Report
from advisor.model.settings import Settings
from advisor.prove.measure.end_to_end_result import EndToEnd
from advisor.prove.measure.losses import loss_deviation
from advisor.prove.measure.run_steps import RunSteps, as_much_as, steps_of
from advisor.prove.outcomes import ProofFacts, report_of
from advisor.prove.search.loop_result import Attempt, LoopResult
from advisor.prove.search.proved_text import with_proved_text
from advisor.prove.search.script_proof import needs_script, prove_on_script
from advisor.prove.search.step_trials import attempt_of, to_be_tried
from advisor.prove.texts.change_speed import speed_of_scripts
from advisor.prove.texts.text_check import TextVerdict
from advisor.prove.trial.trial_result import BROKEN, FASTER, REFUSED, SAME, Trial
from advisor.rewrite.patch import Patch
from advisor.testing import batch, map_, pipeline, source
from tests.prove.run_recordings import MS, recording

DATA = (("batch", "TensorSpec(shape=(8, 4), dtype=tf.float32)"),)
RUN = RunSteps(10.0 * MS, None, 50, 100, rows=8, data=DATA, losses=((1, 2.0), (2, 1.5), (4, 1.0)))
SITE = Site("train.py", 9, 7, 9, 20)
STEPS = SetCompileArgument(SITE, ".compile()", "steps_per_execution", 32)


def hint(edit: StepEdit = STEPS) -> Finding:
    return Finding(
        "short-steps", "Run several steps", "Because.", fix=Fix((), Safety.NUMERICS, False, step_edits=(edit,))
    )


def runs(verdict: str = FASTER, *after: RunSteps, note: str = "") -> EndToEnd:
    interval = None if verdict == BROKEN else Interval(1.5, 1.4, 1.6)
    return EndToEnd(verdict, interval, (RUN,) * 3, after or (RUN,) * 3, note=note)


def judged(whole: EndToEnd, edit: StepEdit = STEPS):
    (attempt,) = to_be_tried([hint(edit)])
    assert attempt.trial.verdict == REFUSED and needs_script(attempt, {})
    return attempt_of(attempt, whole)


def report(*hints: Finding) -> Report:
    made = pipeline(source(), map_("decode", ms=0.01), batch(8), consumer_ms=50)
    return replace(run_rules(made.analysis, load_rules([], Settings()), Settings()), hints=hints)


def test_a_faster_step_is_kept_and_its_data_are_untouched():
    attempt = judged(runs())
    assert (attempt.is_kept, attempt.is_end_to_end, attempt.trial.verdict) == (True, True, FASTER)
    assert attempt.trial.safety_seen is Safety.NUMERICS and not attempt.trial.is_undecided
    assert attempt.trial.note.startswith("The training reads the dataset of the same calls, ")
    assert (
        "The loss of the first 4 batches differs by up to 0 %; runs of the unchanged script differ by up to 0 %."
        in (attempt.trial.note)
    )


def test_the_loss_is_compared_where_both_sides_know_it():
    """A call of two batches tells the loss of every second one; the largest deviation counts, relative to the medians."""
    unchanged = [replace(RUN, losses=((1, 2.0), (2, value), (4, 1.0))) for value in (1.5, 1.47, 1.6)]
    changed = [replace(RUN, losses=((2, 1.53), (4, 1.02), (6, 9.0)))]
    deviation = loss_deviation(unchanged, changed)
    assert deviation.batches == 4
    assert deviation.relative == pytest.approx(0.02)
    assert deviation.between_runs == pytest.approx(0.1 / 1.5)
    assert loss_deviation(unchanged[:1], changed).between_runs is None


@pytest.mark.parametrize("losses", [(), ((3, 1.0),)])
def test_no_loss_in_common_is_no_comparison(losses):
    attempt = judged(runs(FASTER, *[replace(RUN, losses=losses)] * 3))
    assert attempt.trial.loss is None
    assert attempt.trial.note.endswith("as the runs do not show it.") and attempt.is_kept


def test_a_loss_that_is_no_number_any_more_is_no_gain():
    attempt = judged(runs(FASTER, *[replace(RUN, losses=((1, 2.0), (2, math.nan)))] * 3))
    assert (attempt.trial.verdict, attempt.is_kept) == (BROKEN, False)
    assert attempt.trial.note == "With the change, the loss is not a finite number."


def test_a_loss_that_moves_further_than_rounding_does_is_no_gain():
    attempt = judged(runs(FASTER, *[replace(RUN, losses=((1, 2.0), (2, 1.5), (4, 1.2)))] * 3))
    assert (attempt.trial.verdict, attempt.is_kept, attempt.trial.speedup) == (BROKEN, False, None)
    assert (
        "differs by up to 20 %; runs of the unchanged script differ by up to 0 %, which is more" in attempt.trial.note
    )
    assert judged(runs(FASTER, *[replace(RUN, losses=((1, 2.0), (2, 1.5), (4, 1.08)))] * 3)).is_kept


def test_a_loss_may_move_as_far_as_between_runs_of_the_unchanged_script():
    before = tuple(replace(RUN, losses=((4, value),)) for value in (1.0, 1.2, 0.9))
    after = (replace(RUN, losses=((4, 1.25),)),) * 3
    assert judged(EndToEnd(FASTER, Interval(1.5, 1.4, 1.6), before, after)).is_kept


def test_what_a_function_returns_need_not_be_the_loss_that_was_differentiated_without_it():
    other = replace(RUN, losses=((1, 2.0), (2, math.nan)), loss_source="returned")
    attempt = judged(runs(FASTER, *[other] * 3))
    assert attempt.is_kept and attempt.trial.loss is None


def test_a_policy_that_reaches_into_the_pipeline_is_broken():
    """`Rescaling` in a `map` computes in the type of the policy."""
    other = (("batch", "TensorSpec(shape=(8, 4), dtype=tf.bfloat16)"),)
    attempt = judged(runs(FASTER, *[replace(RUN, data=other)] * 3), SetPolicy("train.py", "mixed_bfloat16"))
    assert attempt.trial.verdict == BROKEN and attempt.trial.speedup is None
    assert (
        "batch of the training's dataset emits TensorSpec(shape=(8, 4), dtype=tf.bfloat16) instead"
        in attempt.trial.note
    )
    assert judged(runs(FASTER, *[replace(RUN, data=())] * 3)).trial.verdict == BROKEN


def test_larger_batches_have_other_shapes_and_losses():
    other = (("batch", "TensorSpec(shape=(16, 4), dtype=tf.float32)"),)
    attempt = judged(runs(FASTER, *[replace(RUN, data=other, rows=16)] * 3), SetBatchSize(SITE, ".batch(8)", 16))
    assert attempt.is_kept and attempt.trial.loss is None
    assert "The losses of different batches were not compared." in attempt.trial.note


@pytest.mark.parametrize(
    ("unchanged", "changed", "step_ns"),
    [
        ({"rows": 8, "batches": 1}, {"rows": 256, "batches": 32}, 10.0 * MS),  # 32 batches of a call
        ({"rows": None, "batches": 1}, {"rows": None, "batches": 32}, 10.0 * MS),
        ({"rows": 8, "batches": 1}, {"rows": 16, "batches": 1}, 160.0 * MS),  # a larger batch
        ({"rows": 8, "batches": 1}, {"rows": 8, "batches": 1}, 320.0 * MS),
    ],
)
def test_steps_of_other_sizes_are_compared_per_element(unchanged, changed, step_ns):
    before, after = replace(RUN, **unchanged), replace(RUN, step_ns=320.0 * MS, **changed)
    assert as_much_as(before, after).step_ns == step_ns


def test_a_run_knows_the_batches_of_a_step():
    made = recording([10] * 6)
    assert steps_of(made).batches == 1
    assert steps_of(replace(made, keras={"steps_per_execution": 32})).batches == 32
    assert steps_of(replace(made, losses=((32, 1.5),))).losses == ((32, 1.5),)


FAILED = "With the changes: train.py failed before anything was measured: ValueError: expected bfloat16."


@pytest.mark.parametrize(
    ("whole", "reason"),
    [
        (runs(BROKEN, note=FAILED), "the script fails with it: ValueError: expected bfloat16"),
        (replace(runs(SAME), speedup=Interval(1.01, 0.98, 1.03)), "measured on this machine: 1.01x (0.98x to 1.03x)"),
    ],
)
def test_what_was_tried_in_vain_is_rejected_with_the_reason(whole, reason):
    attempt = judged(whole)
    loop = LoopResult((attempt,))
    made = report_of(report(attempt.finding, hint(SetPolicy("train.py", "mixed_bfloat16"))), loop, None, ProofFacts())
    (entry,) = made.rejected
    assert (entry.rule, entry.change, entry.reason) == ("short-steps", "Run several steps", reason)
    assert [hint.fix.step_edits for hint in made.hints] == [(SetPolicy("train.py", "mixed_bfloat16"),)]
    assert not made.findings and not made.rule_errors
    assert made.fixes[0].verdict == attempt.trial.verdict and not made.fixes[0].is_applied


def test_what_is_proved_is_no_hint_any_more():
    attempt = judged(runs())
    made = report_of(
        report(attempt.finding), LoopResult((attempt,), (attempt.finding,)), runs(), ProofFacts(is_applied=True)
    )
    assert made.findings == (attempt.finding,) and not made.hints and not made.rejected
    (outcome,) = made.fixes
    assert (outcome.is_of_step, outcome.proved_on, outcome.loss.batches) == (True, "training", 4)
    assert made.proof.sentence.startswith("Proved on the training: a step is 1.50x")


class Script:
    """Measures the whole script, in the words of `WholeScript`."""

    def __init__(self, result):
        self.method_of, self.notes, self.result, self.measured = {}, [], result, []

    def measure(self, base, candidate, title):
        self.measured.append((tuple(base), tuple(candidate), title))
        return self.result


def test_only_the_whole_script_tries_them():
    script = Script(runs())
    loop, whole = prove_on_script(LoopResult(to_be_tried([hint()])), script)
    assert script.measured == [((), (hint(),), "Run several steps")]
    assert loop.kept == (hint(),) and whole is script.result


@pytest.mark.parametrize("is_beside", [False, True])
def test_what_saves_time_between_epochs_leaves_the_runs_to_kept_changes(is_beside):
    edit = SetOption("c1", "autotune.enabled", value=False)
    untuned = Finding("epoch-pauses", "End epochs", "Because.", fix=Fix((edit,), Safety.EXACT, is_auto=True))
    same = Attempt(untuned, Trial(SAME, safety_seen=Safety.EXACT), is_kept=False)
    script = Script(runs())
    loop, _ = prove_on_script(LoopResult((same,), (hint(),) if is_beside else ()), script)
    assert (untuned in loop.kept) is not is_beside
    assert any("Not measured beside other changes: End epochs" in note for note in script.notes) is is_beside


@pytest.mark.parametrize(("rows", "is_known"), [(256, True), (512, False)])
def test_a_referee_compares_calls_of_several_batches_and_no_other_batches(rows, is_known):
    """32 batches of 8 in one call are the same batches; 32 of 16 are others, and their speed is not compared."""
    speed = speed_of_scripts(runs(FASTER, *[replace(RUN, rows=rows, batches=32)] * 3))
    assert (speed.facts.speedup is not None) == is_known
    assert is_known or f"A step takes 8 elements without the change and {rows} with it" in speed.facts.reason


class Texts:
    """Counts the checks of changed texts; a text with a change of the step would not be what was proved."""

    def __init__(self):
        self.calls, self.checked = {}, []

    def patch(self, findings):
        return Patch(diff=" ".join(finding.title for finding in findings))

    def is_asked(self, finding):
        return False

    def check(self, edits, patch):
        self.checked.append(patch.diff)
        return TextVerdict(note="") if patch.diff == "Cache" else TextVerdict(True, "It makes other calls.")


def test_the_calls_of_the_text_are_checked_without_changes_of_the_step():
    cache = Finding("repeated-work", "Cache", "", fix=Fix((InsertAfter("map", "cache"),), Safety.EXACT, True))
    texts, notes = Texts(), []
    loop = LoopResult(kept=(cache, hint()))
    assert with_proved_text(loop, texts, texts, notes.append) is loop and texts.checked == ["Cache"]
    alone = LoopResult(kept=(hint(),))
    assert with_proved_text(alone, texts, texts, notes.append) is alone and texts.checked == ["Cache"]
    other = replace(cache, title="Shuffle")
    dropped = with_proved_text(LoopResult(kept=(other, hint())), texts, texts, notes.append)
    assert dropped.kept == (hint(),) and notes == ["Shuffle was reverted: It makes other calls."]
