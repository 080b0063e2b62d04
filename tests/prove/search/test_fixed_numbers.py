"""Fixed numbers instead of AUTOTUNE: which, when they are taken, and that the rest of the proof still knows the change."""

from __future__ import annotations

import time

import pytest

from advisor.model.calls import Call
from advisor.model.edits import Code, InsertAfter, SetArgument
from advisor.model.errors import AdvisorError
from advisor.model.finding import Finding, Fix, Safety
from advisor.model.outcome import Interval
from advisor.prove.search.fixed_numbers import enough_calls, with_cheapest, with_numbers
from advisor.prove.search.loop_result import Attempt, LoopInterrupted, LoopResult
from advisor.prove.trial.messages import NumbersCompared
from advisor.prove.trial.trial_result import FASTER, SAME, Trial

AUTOTUNE = Code("tf.data.AUTOTUNE")
CALLS = {
    "map": Call("map", "map", None),
    "inner": Call("inner", "map", None, nested_in="read"),
    "read": Call("read", "interleave", None),
    "batch": Call("batch", "batch", None),
}
MIB = 1 << 20
MS = 1_000_000


def finding(*edits):
    return Finding("made-up", "Do it", "", fix=Fix(edits, Safety.EXACT, is_auto=True))


PARALLEL = finding(SetArgument("map", "num_parallel_calls", AUTOTUNE))
PREFETCH = finding(InsertAfter("batch", "prefetch", (("", AUTOTUNE),)))
OTHERS = (
    finding(SetArgument("read", "num_parallel_calls", AUTOTUNE)),
    finding(SetArgument("inner", "num_parallel_calls", AUTOTUNE)),
    finding(SetArgument("map", "num_parallel_calls", 3)),
    finding(InsertAfter("batch", "prefetch", (("", 2),))),
    finding(InsertAfter("map", "cache")),
    Finding("advice", "Think", ""),
)


class Held:
    def __init__(self, answer):
        self.answer, self.asked = answer, []

    def compare_numbers(self, edits, numbered, step_ns, seconds):
        self.asked.append((edits, numbered, step_ns))
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


def looped(*kept, left=()):
    attempts = [Attempt(finding, Trial(FASTER, rate_after=1000.0), is_kept=True) for finding in kept]
    attempts += [Attempt(finding, Trial(SAME, rate_after=1000.0), is_kept=False) for finding in left]
    return LoopResult(tuple(attempts), kept, attempts[0].trial if len(kept) == 1 else None)


def cheapest(held, loop, step_ns=10 * MS, cores=16, seconds=60.0, said=lambda progress: None):
    return with_cheapest(held, loop, CALLS, step_ns, cores, time.monotonic() + seconds, said)


def answer(saved_mib, ratio=None):
    speed = None if ratio is None else Interval(ratio, ratio - 0.01, ratio + 0.01)
    return NumbersCompared(500 * MIB, (500 - saved_mib) * MIB, 900 * MIB, saved_mib >= 90, speed)


@pytest.mark.parametrize(
    ("rate", "step_ms", "cores", "calls"),
    [
        (1000.0, 10, 16, 2),  # 16 calls make ten elements per step: one is wanted
        (200.0, 10, 16, 10),  # two per step, with a quarter in reserve
        (110.0, 10, 16, None),
        (1000.0, 10, 3, 2),
        (1000.0, 10, 2, None),
        (None, 10, 8, None),
        (1000.0, 0, 8, None),
    ],
)
def test_as_many_calls_as_the_training_needs(rate, step_ms, cores, calls):
    assert enough_calls(rate, step_ms * MS, cores) == calls


def test_only_free_numbers_are_replaced():
    assert with_numbers(PARALLEL, CALLS, 4).fix.edits == (SetArgument("map", "num_parallel_calls", 4),)
    assert with_numbers(PREFETCH, CALLS, 4).fix.edits == (InsertAfter("batch", "prefetch", (("", 1),)),)
    for other in OTHERS:
        assert with_numbers(other, CALLS, 4) is other


def test_little_memory_is_no_reason_to_give_up_what_adapts():
    loop = looped(PARALLEL, left=(PREFETCH,))
    held = Held(answer(3))
    result = cheapest(held, loop)
    assert (result.kept, result.attempts) == (loop.kept, loop.attempts)
    numbers = result.fixed_numbers
    assert (numbers.parallel_calls, numbers.buffer_size, numbers.is_chosen) == (2, 1, False)
    assert numbers.sentence == (
        "AUTOTUNE is kept instead of num_parallel_calls=2 and prefetch(1): the pipeline would take 497 MiB instead of 500 MiB "
        "with up to 2 instead of 16 threads per call, at a peak of 900 MiB, which saves too little to justify a fixed value, "
        "which does not adapt to other machines."
    )
    ((edits, numbered, step_ns),) = held.asked
    assert step_ns == 10 * MS
    assert {edit.value for edit in edits if isinstance(edit, SetArgument)} == {AUTOTUNE}
    assert {edit.value for edit in numbered if isinstance(edit, SetArgument)} == {2}


def test_much_memory_at_the_same_speed_is_one():
    result = cheapest(Held(answer(400, 0.99)), looped(PARALLEL, left=(PREFETCH,)))
    assert result.fixed_numbers.is_chosen
    assert (result.fixed_numbers.parallel_calls, result.fixed_numbers.autotune_calls) == (2, 16)
    assert "as fast in steps of 10 ms (0.99x (0.98x to 1.00x))" in result.fixed_numbers.sentence
    parallel, prefetch = (attempt.finding for attempt in result.attempts)
    assert result.kept == (parallel,)
    assert result.kept[0] is parallel  # the loop drops findings by identity
    assert parallel.fix.edits == (SetArgument("map", "num_parallel_calls", 2),)
    assert prefetch.fix.edits == (InsertAfter("batch", "prefetch", (("", 1),)),)
    assert (parallel.as_proposed, prefetch.as_proposed) == (PARALLEL, PREFETCH)
    assert PARALLEL.as_proposed is PARALLEL


def test_the_rate_is_that_with_the_changes_that_are_kept():
    """Sixteen cores make 200 elements per second; a change that was dropped made 10 000."""
    kept = Attempt(PARALLEL, Trial(FASTER, rate_after=200.0), is_kept=True)
    dropped = Attempt(OTHERS[4], Trial(FASTER, rate_after=10_000.0), is_kept=False)
    result = cheapest(Held(answer(3)), LoopResult((kept, dropped), (PARALLEL,), None))
    assert result.fixed_numbers.parallel_calls == 10


def test_what_may_be_slower_is_not_taken():
    loop = looped(PARALLEL)
    result = cheapest(Held(answer(400, 0.95)), loop)
    assert result.kept == loop.kept
    assert not result.fixed_numbers.is_chosen
    assert "it may be slower (0.95x" in result.fixed_numbers.sentence


@pytest.mark.parametrize(
    ("loop", "options"),
    [
        (looped(PARALLEL), {"step_ns": 0}),
        (looped(PARALLEL), {"step_ns": 3000 * MS}),
        (looped(PARALLEL), {"seconds": 10.0}),
        (looped(PARALLEL), {"cores": 2}),
        (looped(*OTHERS[:3]), {}),
        (looped(PARALLEL, finding(InsertAfter("map", "cache"))), {}),
        (LoopResult(), {}),
    ],
)
def test_nothing_is_compared_that_could_not_be_decided(loop, options):
    held = Held(answer(400, 1.0))
    result = cheapest(held, loop, **options)
    assert held.asked == [] and result is loop


def test_a_comparison_that_fails_changes_nothing():
    loop, said = looped(PARALLEL), []
    assert cheapest(Held(AdvisorError("The pipeline has a cache.")), loop, said=said.append) is loop
    assert said[-1].text == "Fixed numbers were not compared with AUTOTUNE: The pipeline has a cache."


def test_interrupt_keeps_what_was_proved():
    loop = looped(PARALLEL)
    with pytest.raises(LoopInterrupted) as stop:
        cheapest(Held(KeyboardInterrupt()), loop)
    assert stop.value.result.kept == loop.kept
    assert stop.value.result.is_interrupted
