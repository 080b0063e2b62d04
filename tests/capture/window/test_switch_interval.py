"""The switch interval is short only while it is wanted, and the program's own value is kept."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

import pytest

from advisor.capture.window.switch_interval import SwitchInterval

USUAL_S, SHORT_S = 0.005, 0.0005


@pytest.fixture(autouse=True)
def _usual_interval() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(USUAL_S)
    yield
    sys.setswitchinterval(before)


def test_it_is_shortened_and_restored() -> None:
    interval = SwitchInterval(SHORT_S)
    interval.install()
    assert not interval.is_short
    interval.shorten()
    assert interval.is_short
    assert sys.getswitchinterval() == pytest.approx(SHORT_S)
    interval.restore_until(time.monotonic())
    assert not interval.is_short
    assert sys.getswitchinterval() == USUAL_S
    interval.shorten()
    interval.uninstall()
    assert sys.getswitchinterval() == USUAL_S


def test_nothing_changes_it_after_the_end() -> None:
    interval = SwitchInterval(SHORT_S)
    interval.install()
    interval.uninstall()
    interval.shorten()
    assert sys.getswitchinterval() == USUAL_S


def test_a_value_that_the_program_sets_meanwhile_is_kept() -> None:
    interval = SwitchInterval(SHORT_S)
    interval.install()
    interval.shorten()
    sys.setswitchinterval(0.002)
    interval.shorten()
    interval.uninstall()
    assert sys.getswitchinterval() == 0.002


def test_it_may_be_forbidden() -> None:
    interval = SwitchInterval(None)
    interval.install()
    interval.shorten()
    assert interval.is_short  # as short as it may be: nobody needs to wait for more
    interval.uninstall()
    assert sys.getswitchinterval() == USUAL_S


@pytest.mark.tensorflow
def test_a_call_of_a_python_function_shortens_it_when_it_is_due() -> None:
    import numpy as np
    import tensorflow as tf
    from tensorflow.python.ops.script_ops import FuncRegistry

    seen: list[float] = []

    def note(number: np.int64) -> np.int64:
        seen.append(sys.getswitchinterval())
        return number

    options = tf.data.Options()
    options.experimental_optimization.inject_prefetch = False  # each call belongs to the element that is asked for
    dataset = tf.data.Dataset.range(100).map(lambda number: tf.numpy_function(note, [number], tf.int64))
    elements = iter(dataset.with_options(options))
    original = FuncRegistry.__call__
    interval = SwitchInterval(SHORT_S)
    interval.install()
    try:
        next(elements)
        interval.restore_until(time.monotonic() + 0.2)
        next(elements)
        time.sleep(0.3)
        next(elements)
    finally:
        interval.uninstall()
    assert seen[:2] == [USUAL_S, USUAL_S]
    assert seen[2] == pytest.approx(SHORT_S)
    assert FuncRegistry.__call__ is original
    next(elements)
    assert seen[3] == USUAL_S
