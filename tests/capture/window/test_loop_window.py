"""Windows on loops whose steps Python does not see."""

from __future__ import annotations

import pytest

from advisor.capture.instrument.consumers import Consumers
from advisor.capture.window.loop_window import LoopWindow, requests_in
from advisor.host.calibration.window import (
    AFTER_WINDOW_S,
    BYTES_PER_EVENT,
    LOOP_ELEMENTS,
    LOOP_SECONDS,
    MAX_EVENTS,
    MAX_LOOP_SECONDS,
    SLOW_LOOP_ELEMENTS,
    SLOW_LOOP_SECONDS,
    VERDICT_SECONDS,
    VERDICT_STEPS,
)
from advisor.model.settings import Settings
from advisor.workflows.analyze import analyze_run


@pytest.fixture
def consumer():
    """A consumer whose iterator Python does not hold."""
    return Consumers().at("reduce", None, None)


def profile(folder, content):
    path = folder / "plugins" / "profile" / "now" / "host.xplane.pb"
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    return folder


@pytest.mark.parametrize(
    ("content", "number"),
    [
        (b"matmul", 0),
        (b"", None),
        pytest.param(b"Iterator:: of no profile", None, marks=pytest.mark.tensorflow),
    ],
)
def test_a_profile_without_iterators_shows_no_requests(content, number, tmp_path):
    assert requests_in(profile(tmp_path, content), 4) == number


def test_without_a_profile_nothing_is_known(tmp_path):
    assert requests_in(tmp_path, 4) is None


@pytest.mark.tensorflow
@pytest.mark.parametrize(("calls", "number"), [((3, 2), 3), ((1, 0), 1), ((9, 9), 4)])
def test_requests_are_those_of_the_busiest_root(calls, number, tmp_path):
    """The host's pipeline and the device's buffer of a distributed dataset have the same name."""
    pytest.importorskip("tensorflow")
    from tensorflow.tsl.profiler.protobuf import xplane_pb2

    space = xplane_pb2.XSpace()
    plane = space.planes.add(name="/host:CPU")
    for key, name in ((1, "Iterator::Root"), (2, "Iterator::Root::Map")):
        plane.event_metadata[key].name = name
    plane.stat_metadata[7].name = "id"
    for iterator_id, count in zip((2**63 + 5, 11), calls, strict=True):
        for _ in range(count):
            for key, number_of_stat in ((1, iterator_id), (2, 1)):
                plane.lines.add().events.add(metadata_id=key).stats.add(metadata_id=7, uint64_value=number_of_stat)
    assert requests_in(profile(tmp_path, space.SerializeToString()), 4) == number


def test_a_window_without_iterators_is_followed_by_longer_ones_up_to_a_limit(consumer, tmp_path):
    profile(tmp_path, b"matmul")
    window, lengths = LoopWindow(consumer, None), []
    while window is not None:
        lengths.append(window.least_s)
        window = window.longer(tmp_path)
    assert lengths[0] == LOOP_SECONDS.value and lengths[-1] == MAX_LOOP_SECONDS.value
    assert lengths == sorted(set(lengths)) and len(lengths) <= 4


def test_a_longer_window_holds_no_more_events_than_any_other(consumer, tmp_path):
    most_bytes = int(MAX_EVENTS.value * BYTES_PER_EVENT.value)
    window = LoopWindow(consumer, None).longer(profile(tmp_path / "a", bytes(most_bytes // 2)))
    assert window is not None and window.least_s == pytest.approx(2 * LOOP_SECONDS.value, rel=0.01)
    assert LoopWindow(consumer, None).longer(profile(tmp_path / "b", bytes(most_bytes))) is None


def test_a_large_profile_is_not_read_in_the_script(consumer, tmp_path, monkeypatch):
    """Parsing takes several times its size in memory, which belongs to the training."""
    monkeypatch.setattr("advisor.capture.window.loop_window._count", lambda content, enough: pytest.fail("it was read"))
    large = profile(tmp_path, b"Iterator::Root" + bytes(int(MAX_EVENTS.value * BYTES_PER_EVENT.value)))
    assert LoopWindow(consumer, None).longer(large) is None


def test_the_limit_of_the_user_is_kept(consumer, tmp_path):
    window = LoopWindow(consumer, 2.0)
    assert not window.is_over(1.9) and window.is_over(2.0)
    assert window.longer(profile(tmp_path, b"matmul")) is None


def test_without_an_iterator_in_python_the_shortest_window_is_enough(consumer):
    window = LoopWindow(consumer, None)
    assert not window.is_over(LOOP_SECONDS.value - 0.1) and window.is_over(LOOP_SECONDS.value)


@pytest.mark.parametrize(
    ("taken", "seconds", "is_over"),
    [
        (LOOP_ELEMENTS.value, LOOP_SECONDS.value, True),
        (LOOP_ELEMENTS.value - 1, LOOP_SECONDS.value, False),
        (SLOW_LOOP_ELEMENTS.value, SLOW_LOOP_SECONDS.value - 2, False),
        (SLOW_LOOP_ELEMENTS.value, SLOW_LOOP_SECONDS.value, True),
        (SLOW_LOOP_ELEMENTS.value - 1, SLOW_LOOP_SECONDS.value, False),
        (0, MAX_LOOP_SECONDS.value, True),
    ],
)
def test_slow_steps_need_fewer_elements(taken, seconds, is_over, consumer, tmp_path, monkeypatch):
    counts = iter([(1, 100), (1, 100 + taken)])
    monkeypatch.setattr("advisor.capture.window.loop_window.elements_produced", lambda consumer: next(counts))
    window = LoopWindow(consumer, None)
    assert window.is_over(seconds) is is_over
    if seconds == MAX_LOOP_SECONDS.value:
        assert window.longer(profile(tmp_path, b"matmul")) is None, "it was as long as a window may be"


@pytest.mark.parametrize("is_model_seen", [True, False])
@pytest.mark.parametrize("age_s", [5.0, 25.0, 40.0])
@pytest.mark.parametrize("step_s", [0.1, 0.7, 1.5, 3.0, 4.5, 7.0, 12.0, 30.0])
def test_a_loop_has_a_verdict_after_a_minute_or_twelve_steps(
    step_s, age_s, is_model_seen, consumer, tmp_path, monkeypatch
):
    """Whether the iterator's elements are counted, or only the requests in a written profile."""
    now, opened = age_s, age_s

    def taken(since):
        return int(now / step_s) - int(since / step_s)

    monkeypatch.setattr(
        "advisor.capture.window.loop_window.elements_produced",
        lambda consumer: (1, int(now / step_s)) if is_model_seen else None,
    )
    monkeypatch.setattr(
        "advisor.capture.window.loop_window.requests_in", lambda folder, enough: min(enough, taken(opened))
    )
    window, requests = LoopWindow(consumer, None, age_s=age_s), 0
    while window is not None:
        opened = now
        while not window.is_over(now - opened):
            now += 0.2
        requests = taken(opened)
        now += 0.5  # the profile is written
        window = window.longer(tmp_path, now, 0.5)
    assert requests >= 2, "a whole step"
    limit_s = max(VERDICT_SECONDS.value, VERDICT_STEPS.value * step_s) + 3 * step_s
    shortest_s = age_s + 7 * step_s + AFTER_WINDOW_S.value  # of a script that starts too late
    assert now + AFTER_WINDOW_S.value <= max(limit_s, shortest_s) + 1
    if age_s == 5.0 and step_s <= 7.0:
        assert requests >= SLOW_LOOP_ELEMENTS.value, "there is time for more than the least"


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
@pytest.mark.slow
def test_a_window_inside_one_long_step_is_followed_by_a_longer_one(watch):
    run = watch(SLOW_STEPS.format(step_s=7, data="data") + "train(dataset)\n")
    window = run.recording.window
    assert 15e9 < window.end_ns - window.start_ns < 65e9
    assert requests_in(run.folder, SLOW_LOOP_ELEMENTS.value) == SLOW_LOOP_ELEMENTS.value
    assert any(b"Iterator::" in path.read_bytes() for path in run.profiles) and len(run.profiles) == 1


DISTRIBUTED = """
    import tensorflow as tf

    strategy = tf.distribute.MirroredStrategy(["/cpu:0"])
    dataset = tf.data.Dataset.range(1000).map(lambda x: x * 2, num_parallel_calls=2).batch(4)

    def step(batch):
        end = tf.timestamp() + {step_s}
        x = tf.eye(1000)  # few of these products, whose events fill the profile
        while tf.timestamp() < end:
            x = tf.linalg.matmul(x, x)
        tf.debugging.assert_all_finite(x, "")

    @tf.function
    def train_multiple_steps(iterator):
        for _ in tf.range(1000):
            with tf.name_scope(""):
                strategy.run(step, (next(iterator),))

    @tf.function
    def train(batches):
        for batch in batches:
            strategy.run(step, (batch,))

    distributed = strategy.experimental_distribute_dataset(dataset)
    """


@pytest.mark.tensorflow
@pytest.mark.long
@pytest.mark.parametrize(
    "loop", [pytest.param("train_multiple_steps(iter(distributed))", marks=pytest.mark.slow), "train(distributed)"]
)
def test_a_distributed_loop_with_steps_of_seconds_has_a_verdict(loop, watch):
    """The window goes on until there are whole steps, whether Python holds the iterator or not."""
    run = watch(DISTRIBUTED.format(step_s=3.0) + loop + "\n")
    window, verdict = run.recording.window, analyze_run(run.folder, [], Settings()).analysis.verdict
    assert verdict.steps is not None, verdict.sentence
    assert verdict.steps.count >= 3 and 2.9e9 < verdict.steps.median_ns < 9e9
    assert verdict.level == "none"
    assert window.end_ns - window.start_ns < 70e9


@pytest.mark.tensorflow
@pytest.mark.long
def test_exit_handlers_run_if_the_outer_call_ends_as_it_did_before(watch):
    run = watch(
        SLOW_STEPS.format(step_s=0.25, data="data.take(32)") + "for epoch in range(100):\n        train(dataset)\n"
    )
    assert run.recording.window.closed_by == "seconds"
    assert "exit handlers ran" in run.out
    assert not any("could not be interrupted" in warning for warning in run.recording.warnings)
