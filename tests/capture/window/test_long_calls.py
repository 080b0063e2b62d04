"""Which calls into TensorFlow are running, which one is stopped, and how long it may take to return."""

from __future__ import annotations

import threading
import time

from advisor.capture.instrument.consumers import Consumers, LongCall
from advisor.capture.window.long_calls import LongCalls
from advisor.host.calibration.window import BLOCKED_S, LONG_LOOP_GRACE_S, LOOP_GRACE_S

HERE = threading.get_ident()


def test_the_training_loop_comes_first_and_is_stopped_first():
    consumers, calls = Consumers(), LongCalls()
    other, fit = consumers.at("reduce", None, None), consumers.at("keras.fit", None, None)
    calls.began(LongCall(other, HERE, 1))
    calls.began(LongCall(fit, -1, 2))
    assert [call.consumer for call in calls.now()] == [fit, other]
    assert calls.to_stop(fit).consumer is fit
    assert calls.to_stop(None).consumer is other, "without a measured consumer, the call of the main thread"
    assert calls.is_in(fit)
    calls.ended(-1)
    assert not calls.is_in(fit)


def test_a_call_that_runs_python_is_no_loop():
    calls = LongCalls()
    calls.began(LongCall(Consumers().at("reduce", None, None), HERE, 1))
    assert calls.loop(2) is None and calls.loop(2 + int(2e9 * BLOCKED_S.value)) is None


def test_a_loop_may_take_as_long_to_return_as_it_took_before():
    calls, consumer = LongCalls(), Consumers().at("reduce", None, None)
    call = LongCall(consumer, HERE, time.time_ns())
    assert calls.grace_s(call) == LOOP_GRACE_S.value
    for seconds, least, most in ((8.0, 12.0, 12.5), (3600.0, LONG_LOOP_GRACE_S.value, LONG_LOOP_GRACE_S.value)):
        calls.began(LongCall(consumer, HERE, time.time_ns() - int(seconds * 1e9)))
        calls.ended(HERE)
        assert least <= calls.grace_s(call) <= most
