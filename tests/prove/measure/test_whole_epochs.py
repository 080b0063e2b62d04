"""Windows that hold whole epochs: recorded epochs, and real runs whose epochs begin with a long wait."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from advisor.capture.request import CaptureRequest
from advisor.model.recording import Recording, steps_in_whole_epochs
from advisor.prove.measure.end_to_end import record_run
from advisor.prove.measure.run_steps import main_series, steps_of
from advisor.prove.measure.whole_epochs import Epoch, epoch_of, in_whole_epochs, window_seconds
from tests.prove.run_recordings import recording

ASKED = CaptureRequest(Path("unused"), Path("train.py"), seconds=3.0)


def of_epochs(firsts: tuple[int, ...], first_step: int = 0, steps: int = 12) -> Recording:
    """A run with steps of 100 ms, of which those in `firsts` begin an epoch."""
    run = recording([100] * steps)
    return replace(run, steps=(replace(run.steps[0], epoch_firsts=firsts, first_step=first_step),))


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        (of_epochs((0, 5, 10)), Epoch(5, 0.5)),
        (of_epochs((0, 5, 10, 12)), Epoch(5, 0.5)),
        (of_epochs((0, 12)), None),
        (of_epochs((0,)), None),
        (of_epochs(()), None),
        (of_epochs((0, 5, 11)), None),
        (of_epochs((5, 4)), None),
        (of_epochs((102, 106, 110), first_step=100), Epoch(4, 0.4)),
    ],
    ids=[
        "two",
        "the last one has not begun",
        "one that has not ended",
        "a first one",
        "unknown",
        "unequal",
        "backwards",
        "later",
    ],
)
def test_an_epoch_is_known_once_the_next_one_has_begun(run: Recording, expected: Epoch | None) -> None:
    assert epoch_of(run) == expected


def test_steps_that_make_no_epoch_are_all_kept() -> None:
    assert [steps_in_whole_epochs(count, 5) for count in (0, 4, 5, 9, 10)] == [0, 4, 5, 5, 10]
    assert steps_in_whole_epochs(9, None) == 9


def test_short_epochs_make_a_window_whole() -> None:
    for seconds, steps in ((0.1, 20), (3.0, 20), (6.0, 20), (6.1, None)):
        assert in_whole_epochs(ASKED, Epoch(20, seconds)).epoch_steps == steps, seconds


def test_without_an_epoch_or_with_a_number_of_steps_the_window_stays() -> None:
    assert in_whole_epochs(ASKED, None) == ASKED
    by_steps = replace(ASKED, steps=50)
    assert in_whole_epochs(by_steps, Epoch(20, 1.0)) == by_steps


def test_a_window_is_expected_to_take_whole_epochs() -> None:
    whole = in_whole_epochs(ASKED, Epoch(20, 1.4))
    assert window_seconds(whole, Epoch(20, 1.4)) == pytest.approx(4.2)
    assert window_seconds(ASKED, Epoch(20, 1.4)) == 3.0
    assert window_seconds(replace(ASKED, seconds=None), None) is None


FILLED = """import time
import tensorflow as tf

def slow(x):
    return tf.py_function(lambda y: time.sleep(0.004) or y, [x], tf.int64)

data = tf.data.Dataset.range(100).map(slow).shuffle(100).batch(10)
{loop}
"""
LOOPS = {
    "for": "for epoch in range(10**6):\n    for batch in data:\n        time.sleep(0.01)",
    "keras": (
        "data = data.map(lambda x: (tf.reshape(tf.cast(x, tf.float32), [10, 1]), tf.zeros([10, 1])))\n"
        "model = tf.keras.Sequential([tf.keras.layers.Dense(1)])\nmodel.compile('sgd', 'mse')\n"
        "model.fit(data, epochs=10**6, verbose=0)"
    ),
}


@pytest.mark.tensorflow
@pytest.mark.parametrize("loop", LOOPS)
def test_each_epoch_of_a_window_begins_once_in_it(
    project: Callable[[str], Path], temporary: Path, home: Path, loop: str
) -> None:
    """Each epoch begins with a wait of 0.4 s for the shuffle buffer, and takes 0.1 s after it."""
    script = project(FILLED.format(loop=LOOPS[loop])) / "train.py"
    asked = CaptureRequest(Path("unused"), script, seconds=2.0, warmup=15)
    first = record_run(asked, lambda progress: None)
    epoch = epoch_of(first)
    assert epoch is not None and epoch.steps == 10
    run = record_run(in_whole_epochs(asked, epoch), lambda progress: None)
    window, series = run.window, main_series(run)
    assert window is not None and series is not None and window.closed_by == "seconds"
    assert window.steps % 10 == 0 and window.steps >= 10
    assert all(later - earlier == 10 for earlier, later in pairwise(series.epoch_firsts[:-1]))
    of_window = steps_of(run)
    assert of_window is not None and of_window.count == window.steps
