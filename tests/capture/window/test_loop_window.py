"""Windows on loops whose steps Python does not see."""

from __future__ import annotations

import pytest

from advisor.capture.instrument.consumers import Tracks
from advisor.capture.window.loop_window import LoopWindow, shows_iterators
from advisor.host.calibration.window import LOOP_SECONDS, MAX_LOOP_SECONDS


@pytest.fixture
def track():
    """A consumer whose iterator Python does not hold."""
    return Tracks().at("reduce", None, None)


def profile(folder, content):
    path = folder / "plugins" / "profile" / "now" / "host.xplane.pb"
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    return folder


@pytest.mark.parametrize(
    ("content", "shown"), [(b"\x0a\x12Iterator::Root::Map", True), (b"matmul", False), (b"", True)]
)
def test_a_profile_shows_iterators_by_the_names_of_their_events(content, shown, tmp_path):
    assert shows_iterators(profile(tmp_path, content)) is shown


def test_without_a_profile_nothing_is_known(tmp_path):
    assert shows_iterators(tmp_path)


def test_a_window_without_iterators_is_followed_by_longer_ones_up_to_a_limit(track, tmp_path):
    profile(tmp_path, b"matmul")
    window, lengths = LoopWindow(track, None), []
    while window is not None:
        lengths.append(window.least_s)
        window = window.longer(tmp_path)
    assert lengths[0] == LOOP_SECONDS.value and lengths[-1] == MAX_LOOP_SECONDS.value
    assert lengths == sorted(set(lengths)) and len(lengths) <= 4


def test_the_limit_of_the_user_is_kept(track, tmp_path):
    window = LoopWindow(track, 2.0)
    assert not window.is_over(1.9) and window.is_over(2.0)
    assert window.longer(profile(tmp_path, b"matmul")) is None


def test_without_an_iterator_in_python_the_shortest_window_is_enough(track):
    window = LoopWindow(track, None)
    assert not window.is_over(LOOP_SECONDS.value - 0.1) and window.is_over(LOOP_SECONDS.value)


SLOW_STEPS = """
    import atexit, time
    import numpy as np
    import tensorflow as tf

    def work(x):
        time.sleep({step_s})
        return x

    @tf.function
    def train(data):
        for x in {data}:
            tf.ensure_shape(tf.numpy_function(work, [x], tf.int64), ())

    atexit.register(print, "exit handlers ran")
    dataset = tf.data.Dataset.range(1000).map(lambda x: x * 2, num_parallel_calls=2).prefetch(4)
    """


@pytest.mark.tensorflow
@pytest.mark.long
def test_the_window_waits_for_elements_of_an_iterator_that_python_holds(watch):
    """After 4 s it has seen about 5 of them."""
    text = SLOW_STEPS.format(step_s=0.8, data="tf.range(1000)").replace("for x", "for i").replace("[x]", "[next(data)]")
    run = watch(text + "train(iter(dataset))\n")
    window = run.recording.window
    assert window.closed_by == "seconds"
    (model,) = run.recording.models
    root = next(node for node in model.nodes if node.id == model.output)
    assert root.num_elements >= 12
    assert 8e9 < window.end_ns - window.start_ns < 30e9


@pytest.mark.tensorflow
@pytest.mark.long
def test_a_window_inside_one_long_step_is_followed_by_a_longer_one(watch):
    run = watch(SLOW_STEPS.format(step_s=7, data="data") + "train(dataset)\n")
    window = run.recording.window
    assert 15e9 < window.end_ns - window.start_ns < 25e9
    assert any(b"Iterator::" in path.read_bytes() for path in run.profiles) and len(run.profiles) == 1


@pytest.mark.tensorflow
@pytest.mark.long
def test_exit_handlers_run_if_the_outer_call_ends_as_it_did_before(watch):
    run = watch(
        SLOW_STEPS.format(step_s=0.25, data="data.take(32)") + "for epoch in range(100):\n        train(dataset)\n"
    )
    assert run.recording.window.closed_by == "seconds"
    assert "exit handlers ran" in run.out
    assert not any("could not be interrupted" in warning for warning in run.recording.warnings)
