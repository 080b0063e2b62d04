"""What a change gives a whole run, and not only its later passes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.model.edits import SetArgument
from advisor.model.finding import Finding, Fix, Prediction, Safety
from advisor.model.horizon import Horizon
from advisor.predict.run_gain import break_even_pass, run_gain, run_ratio, with_run_gains
from advisor.rewrite.fix_plan import make_plan
from tests.predict.simulated_passes import LOOP, script

CACHE = Prediction(71, 50, 90, first_pass=1.0)
"""As reported for a script with three epochs."""
THREE = Horizon("known", "epochs=3 of fit", 3, 10)
speedups = st.floats(1, 1e6)
passes = st.floats(0.01, 1e6)


def test_a_cache_gains_at_most_as_many_times_as_there_are_passes():
    gain = run_gain(CACHE, THREE, 1e6)
    assert gain.prediction.value == pytest.approx(3 / (1 + 2 / 71))
    assert gain.prediction.low < gain.prediction.value < gain.prediction.high < 3
    assert gain.break_even_pass == 2
    assert gain.sentence == (
        "Over the 3 epochs of this run (known: epochs=3 of fit) 2.9x (2.9x to 2.9x); 71x (50x to 90x) from the second epoch "
        "on; breaks even in epoch 2."
    )


def test_the_time_saved_is_that_of_the_run():
    gain = run_gain(CACHE, THREE, 1e6)
    assert gain.saved_per == "run"
    assert gain.saved_ns == pytest.approx(2 * 10 * 1e6 * (1 - 1 / 71))  # two of three passes, ten steps each


def test_if_the_passes_are_unknown_it_is_that_of_a_later_pass_or_step():
    gain = run_gain(CACHE, Horizon("unknown", "nobody counts", None, 10), 1e6)
    assert (gain.prediction, gain.saved_per) == (None, "pass")
    assert gain.saved_ns == pytest.approx(10 * 1e6 * (1 - 1 / 71))
    assert "71x (50x to 90x) from the second epoch on" in gain.sentence
    assert (
        "unknown (nobody counts): 1.97x over 2 epochs and 8.9x over 10 epochs; breaks even in epoch 2" in gain.sentence
    )
    assert run_gain(CACHE, Horizon("unknown", ""), 1e6).saved_per == "step"


def test_what_helps_from_the_first_element_gains_the_same_in_every_pass():
    own = Prediction(3, 2, 4)
    gain = run_gain(own, THREE, 1e6)
    assert gain.prediction == own and gain.break_even_pass is None and not gain.sentence


def test_a_run_within_the_first_pass_gains_nothing():
    gain = run_gain(CACHE, Horizon("known", "epochs=1 of fit", 0.5, 10), 1e6)
    assert gain.prediction.value == 1 and gain.saved_ns == 0
    assert gain.sentence.startswith("No gain: this run makes at most one pass")


def test_of_a_run_that_goes_on_the_gain_is_that_of_what_is_left():
    gain = run_gain(CACHE, Horizon("known", "epochs=3 of fit, of which 1 epoch is done", 2, 10, 10, is_rest=True), 1e6)
    assert gain.prediction.value == pytest.approx(2 / (1 + 1 / 71))
    assert gain.saved_ns == pytest.approx(10 * 1e6 * (1 - 1 / 71))
    assert gain.sentence.startswith(
        "Over the 2 epochs left of this run (known: epochs=3 of fit, of which 1 epoch is done) 1.97x"
    )
    last = run_gain(CACHE, Horizon("known", "epochs=3 of fit", 0.5, 10, 25, is_rest=True), 1e6)
    assert last.sentence.startswith("No gain: at most one pass over the data is left of this run")


def test_a_file_that_has_to_be_written_first_breaks_even_later():
    disk = Prediction(2, 2, 2, first_pass=0.4)  # the first pass takes 1.5 passes longer, each later one half of it less
    gain = run_gain(disk, Horizon("known", "", 4, 10), 1e6)
    assert gain.break_even_pass == 5
    assert gain.prediction.value == pytest.approx(4 / (2.5 + 3 / 2)) == 1.0


@given(passes, speedups)
def test_bounds(count, later):
    ratio = run_ratio(count, 1.0, later)
    assert 1 - 1e-9 <= ratio <= min(later, max(1.0, count)) * (1 + 1e-9)


@given(passes, passes, speedups)
def test_more_passes_gain_more(one, two, later):
    fewer, more = sorted((one, two))
    assert run_ratio(fewer, 1.0, later) <= run_ratio(more, 1.0, later) * (1 + 1e-9)


@given(passes, st.floats(0.01, 1), speedups, speedups)
def test_faster_later_passes_gain_more(count, first, one, two):
    slower, faster = sorted((one, two))
    assert run_ratio(count, first, slower) <= run_ratio(count, first, faster) * (1 + 1e-9)


@given(passes, speedups)
def test_the_same_speed_in_every_pass_is_that_of_the_run(count, speed):
    assert run_ratio(count, speed, speed) == pytest.approx(speed)


@given(st.floats(1.01, 1e4), st.floats(0.01, 1))
def test_break_even_is_the_first_pass_that_ends_earlier(later, first):
    number = break_even_pass(later, first)
    assert number >= 2
    assert run_ratio(number, first, later) > 1 - 1e-9
    assert run_ratio(number - 1, first, later) <= 1 + 1e-9


def finding(title, prediction):
    return Finding(title, title, "", prediction=prediction, fix=Fix((SetArgument("c0", title, 1),), Safety.EXACT, True))


@pytest.mark.parametrize(
    ("made", "first"),
    [
        (script(end="finished", iterators=2, steps=20), "parallel"),
        (script(end="finished", iterators=10, steps=100), "cache"),
        (script(loops=(LOOP,)), "parallel"),
        (script(), "cache"),
    ],
    ids=["two epochs", "ten epochs", "three epochs, assumed", "unknown"],
)
def test_fixes_are_tried_in_the_order_of_what_they_save_in_the_run(made, first):
    findings = [finding("cache", CACHE), finding("parallel", Prediction(4, 3, 5))]
    plan = make_plan(with_run_gains(made, findings), {call.id: call for call in made.calls})
    assert plan.findings[0].title == first and len(plan.findings) == 2


def test_of_equal_ones_what_helps_from_the_first_element_comes_first():
    findings = [finding("cache", Prediction(4, 3, 5, first_pass=1.0)), finding("parallel", Prediction(4, 3, 5))]
    plan = make_plan(with_run_gains(made := script(), findings), {call.id: call for call in made.calls})
    assert plan.findings[0].title == "parallel"
