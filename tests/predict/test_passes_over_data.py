"""How often a run passes over its data, and how sure that is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from advisor.model.recording import Loop
from advisor.predict.passes_over_data import horizon
from advisor.testing import repeat, take
from tests.predict.simulated_passes import LOOP, STAGES, script

FIT = {"epochs": 3, "initial_epoch": 0, "steps_per_epoch": None, "fits": 1, "may_stop": False}


def passes(made):
    over = horizon(made, made.main)
    return over.passes, over.basis


def fit(*stages, finished=0, end="stopped", loops=None, goes_on=False, **facts):
    return script(
        *stages, kind="keras.fit", end=end, keras=FIT | facts, finished_epochs=finished, finished_steps=10 * finished,
        loops=loops, goes_on=goes_on,
    )  # fmt: skip


def test_the_epochs_of_fit_are_known():
    over = horizon(made := fit(), made.main)
    assert (over.passes, over.basis, over.why, over.steps_per_pass) == (3, "known", "epochs=3 of fit", 10)


def test_of_a_run_that_goes_on_only_the_rest_counts():
    over = horizon(made := fit(goes_on=True), made.main)
    assert (over.passes, over.basis, over.is_rest, over.steps_done) == (1.5, "known", True, 15)
    assert over.why == "epochs=3 of fit, of which 1.5 epochs are done"
    assert passes(fit(goes_on=True, epochs=None)) == (None, "unknown")  # it has made more than it was going to
    assert passes(script(loops=(LOOP,), goes_on=True, steps=10)) == (2, "assumed")
    assert passes(fit(*STAGES, repeat(), epochs=2, steps_per_epoch=25, goes_on=True)) == (3.5, "known")


def test_a_watch_that_writes_during_the_run_does_not_take_it_for_finished():
    assert passes(script(end="finished", iterators=1, goes_on=True)) == (None, "unknown")
    assert passes(fit(may_stop=True, finished=1, end="finished", goes_on=True)) == (1.5, "assumed")


def test_fit_starts_at_its_initial_epoch():
    assert passes(fit(initial_epoch=1)) == (2, "known")


def test_fit_without_epochs_makes_one():
    assert passes(fit(epochs=None)) == (1, "known")


def test_a_callback_may_end_fit_early():
    over = horizon(made := fit(may_stop=True), made.main)
    assert (over.passes, over.basis) == (3, "assumed") and "if no callback ends it earlier" in over.why


def test_what_fit_finished_counts_if_the_script_has_ended():
    assert passes(fit(may_stop=True, finished=2, end="finished")) == (2, "known")


def test_fit_in_a_loop():
    assert passes(fit(epochs=None, fits=2, loops=(LOOP,))) == (3, "assumed")
    assert passes(fit(fits=2, loops=(replace(LOOP, count=None),))) == (None, "unknown")


def test_recordings_of_earlier_versions_know_only_epochs():
    assert passes(script(kind="keras.fit", keras={"epochs": 5})) == (5, "assumed")
    assert passes(script(kind="keras.fit", keras={"epochs": None})) == (None, "unknown")


def test_a_repeat_multiplies_the_epochs():
    over = horizon(made := fit(*STAGES, repeat(4)), made.main)
    assert (over.passes, over.why) == (12, "epochs=3 of fit and repeat(4)")
    assert over.steps_per_pass == 10


def test_endless_data_is_read_for_the_steps_that_fit_makes():
    assert passes(fit(*STAGES, repeat(), epochs=2, steps_per_epoch=25)) == (5, "known")
    assert passes(fit(*STAGES, repeat(), epochs=1, steps_per_epoch=5)) == (0.5, "known")


def test_endless_data_that_a_take_ends():
    assert passes(script(*STAGES, repeat(), take(25), loops=(), end="stopped")) == (2.5, "assumed")
    assert passes(script(*STAGES, repeat(3), take(25), loops=(), end="stopped")) == (2.5, "assumed")


def test_endless_data_of_a_script_that_has_ended():
    assert passes(script(*STAGES, repeat(), end="finished", steps=40)) == (4, "known")


def test_endless_data_of_a_script_that_was_stopped():
    over = horizon(made := script(*STAGES, repeat(), loops=()), made.main)
    assert (over.passes, over.basis) == (None, "unknown")
    assert over.steps_done == 15


def test_a_script_that_has_ended_was_counted():
    assert passes(script(end="finished", iterators=4, steps=40)) == (4, "known")


@pytest.mark.parametrize("end", ["stopped", "failed", "interrupted"])
def test_a_script_that_has_not_ended_may_go_on(end):
    assert passes(script(end=end, iterators=4, steps=40)) == (None, "unknown")


def test_the_loops_of_the_script_are_an_assumption():
    over = horizon(made := script(loops=(LOOP,)), made.main)
    assert (over.passes, over.basis, over.why) == (3, "assumed", "the loop at train.py:10")
    assert passes(script(loops=(LOOP, replace(LOOP, count=2, line=8)))) == (6, "assumed")
    assert passes(script(loops=(LOOP, Loop(None)))) == (None, "unknown")
    assert passes(script(loops=())) == (1, "assumed")


def test_a_loop_that_also_makes_the_dataset_does_not_repeat_it():
    made = script(loops=(LOOP, Loop(5, "train.py", 1, 20)))
    assert made.calls[-1].site.line < 10
    assert passes(made) == (3, "assumed")


def test_more_passes_than_the_loop_makes_were_seen():
    assert passes(script(loops=(LOOP,), iterators=7)) == (7, "assumed")


def test_a_dataset_that_is_made_anew_is_not_read_again():
    made = script(loops=(LOOP,))
    again = replace(made.calls[0], id="another")
    assert passes(replace(made, calls=(*made.calls, again))) == (None, "unknown")


@pytest.mark.parametrize("end", ["stopped", "finished"])
def test_a_dataset_that_is_made_anew_is_read_as_often_as_the_loop_runs_once_it_is_made_before_it(end):
    made = script(loops=(Loop(5, "train.py", 1, 20),), iterators=5, end=end)
    again = replace(made.calls[0], id="another")
    made = replace(made, calls=(*made.calls, again))
    over = horizon(made, made.main, made.calls[0], makes_once=True)
    assert (over.passes, over.basis) == (5, "known" if end == "finished" else "assumed")
    assert horizon(made, made.main, made.calls[0]).passes is None


def test_the_fits_of_a_loop_read_a_dataset_that_is_made_before_it():
    made = fit(epochs=2, fits=2, loops=(LOOP,))
    again = replace(made.calls[0], id="another")
    made = replace(made, calls=(*made.calls, again))
    over = horizon(made, made.main, made.calls[0], makes_once=True)
    assert (over.passes, over.basis) == (6, "assumed")
    assert horizon(made, made.main, made.calls[0]).passes == 2


def test_what_is_made_before_the_loop_is_read_again_though_the_batches_are_made_anew():
    made = script(loops=(LOOP,))
    again = replace(made.calls[-1], id="another")
    made = replace(made, calls=(*made.calls, again))
    assert horizon(made, made.main, made.calls[0]).passes == 3
    assert horizon(made, made.main, made.calls[-2]).passes is None


def test_the_same_text_may_make_the_data_of_another_consumer():
    made = script(loops=(LOOP,))
    again = replace(made.calls[0], id="another")
    reader = replace(made.main.consumer, id="validation", call_id="another")
    recording = replace(made.recording, consumers=(*made.recording.consumers, reader))
    assert passes(replace(made, calls=(*made.calls, again), recording=recording)) == (3, "assumed")


@pytest.mark.parametrize("kind", ["tf.function", "keras.evaluate", "keras.predict"])
def test_loops_that_nobody_counts(kind):
    assert passes(script(kind=kind, loops=(LOOP,), end="finished")) == (None, "unknown")


def test_a_pipeline_in_isolation_has_no_horizon():
    made = script(end="finished", iterators=4)
    alone = replace(made, recording=replace(made.recording, is_pipeline_alone=True))
    assert passes(alone) == (None, "unknown")
    assert passes(replace(made, recording=None)) == (None, "unknown")
