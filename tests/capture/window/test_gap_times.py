"""The input wait that Python does not see, from gap times made here."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from advisor.capture.window.gap_times import MOST_KEPT, Gaps, LoopShare, LoopWait, TimedSteps, gaps_of, step_waits
from advisor.graph.analysis import analyse
from advisor.graph.gap_readings import gap_readings
from advisor.profile import read_trace

MS = 1_000_000
S = 1_000_000_000


class Loop:
    """A loop of Keras: each step requests an element at its start, waits for it, and computes."""

    def __init__(self) -> None:
        self.now, self.starts, self.ends, self.gaps, self.delivered, self.next_ns = S, [], [], [], 0, 0
        self.delivered_at = 0

    def request(self) -> None:
        """Begin a step with its request."""
        if self.next_ns:
            self.starts.append(self.next_ns)
            self.ends.append(self.now)
        self.next_ns = self.now
        if self.delivered and self.now - self.delivered_at < 10 * S:
            self.gaps = [*self.gaps, self.now - self.delivered_at][-MOST_KEPT:]

    def step(self, wait_ms, work_ms) -> None:
        """Make a step; it ends with the next one, or with `pause`."""
        self.request()
        self.now += wait_ms * MS
        self.delivered, self.delivered_at = self.delivered + 1, self.now
        self.now += work_ms * MS

    def pause(self, ms) -> None:
        """End the step, and do something else than training."""
        self.starts.append(self.next_ns)
        self.ends.append(self.now)
        self.next_ns = 0
        self.now += ms * MS

    def waits(self, unknown=(), first=0, iterator_first=0):
        """(number of the step, its wait in ms), oldest first."""
        steps = TimedSteps(first, self.starts[first:], self.ends[first:], self.next_ns)
        waits = step_waits(steps, iterator_first, Gaps(self.delivered, tuple(self.gaps)), unknown)
        return [(wait.number, wait.wait_ns // MS) for wait in reversed(waits)]


def looped(*steps):
    loop = Loop()
    for wait_ms, work_ms in steps:
        loop.step(wait_ms, work_ms)
    return loop


def test_a_step_waits_for_what_is_not_its_gap():
    loop = looped((13, 7), (2, 18), (0, 20), (5, 5))
    assert loop.waits() == [(0, 13), (1, 2), (2, 0)], "the gap after the latest step has not ended"
    loop.request()
    assert loop.waits() == [(0, 13), (1, 2), (2, 0), (3, 5)], "while it waits"


@pytest.mark.parametrize("is_waiting", [False, True])
def test_of_many_steps_the_latest_hundred_are_known(is_waiting):
    loop = looped(*((place % 7, 10) for place in range(250)))
    if is_waiting:
        loop.request()
    last = 250 if is_waiting else 249
    assert loop.waits() == [(place, place % 7) for place in range(last - 100, last)]


def test_only_the_steps_that_were_asked_about_are_told():
    assert looped(*[(3, 4)] * 10).waits(first=6) == [(6, 3), (7, 3), (8, 3)]


def test_a_pause_between_two_steps_is_no_wait():
    """As for a validation or a checkpoint, with the same iterator."""
    loop = looped((4, 6), (4, 6))
    loop.pause(3_000)
    assert loop.waits() == [(0, 4)], "the gap of the last step has not ended"
    loop.step(4, 6)
    loop.step(4, 6)
    assert loop.waits() == [(0, 4), (1, 4), (2, 4)]


def test_the_last_step_of_a_dataset_has_no_follower():
    """Keras notices the end of the dataset by one more request, and discards its step."""
    loop = looped((4, 6), (5, 6), (6, 7))
    loop.request()
    loop.next_ns = 0
    assert loop.waits() == [(0, 4), (1, 5)]


def test_a_checkpoint_inside_a_step_is_no_wait():
    loop = looped((4, 6), (4, 5_000), (4, 6), (4, 6))
    assert loop.waits() == [(0, 4), (1, 4), (2, 4)]


def test_a_gap_that_tf_data_leaves_out_is_not_taken_for_a_wait():
    loop = looped((4, 6), (4, 12_000), (4, 6), (4, 6), (4, 6))
    assert loop.waits() == [(2, 4), (3, 4)], "the gaps before the long step cannot be told apart from others"
    assert looped(*[(4, 12_000)] * 4).waits() == []


def test_a_step_that_waits_for_longer_than_that_is_known_if_no_gap_is_missing():
    loop = looped((11_000, 6), (12_000, 6))
    loop.request()
    assert loop.waits() == [(0, 11_000), (1, 12_000)]


def test_steps_of_earlier_iterators_are_not_known():
    """Keras makes an iterator per epoch, whose gaps begin anew."""
    loop = looped((4, 6), (4, 6), (4, 6))
    loop.pause(100)
    loop.delivered, loop.gaps = 0, []
    assert loop.waits(iterator_first=3) == []
    for _ in range(3):
        loop.step(8, 2)
    assert loop.waits(iterator_first=3) == [(3, 8), (4, 8)]


def test_the_first_step_of_fit_may_trace_before_it_requests():
    loop = looped((4_000, 6), (4, 6), (4, 6), (4, 6))
    assert loop.waits(unknown={0}) == [(1, 4), (2, 4)]


@pytest.mark.parametrize("per_step", [2, 4, 100])
def test_steps_that_take_several_elements_are_unknown(per_step):
    """Requests may run while an earlier element is computed on."""
    for made in (1, 2, 3, 30):
        loop = looped(*[(4, 6)] * (made + 1))
        loop.delivered, loop.gaps = (made + 1) * per_step, [MS] * 99
        assert loop.waits() == []


def test_no_wait_is_longer_than_its_step_or_negative():
    steps = TimedSteps(0, [0, 10, 20], [10, 20, 30], 30)
    assert [wait.wait_ns for wait in step_waits(steps, 0, Gaps(3, (50, 0, 4)))] == [6, 10, 0]


def test_a_model_without_gap_times_has_none():
    nodes = {1: SimpleNamespace(num_elements=7)}
    assert gaps_of(SimpleNamespace(output=1, nodes=nodes)) == Gaps(7, ())
    assert gaps_of(SimpleNamespace(output=1, nodes=nodes, gap_times=[3, 4])) == Gaps(7, (3_000, 4_000))
    assert gaps_of(SimpleNamespace(output=2, nodes=nodes, gap_times=[3])) == Gaps(0, (3_000,))


def looks(wait, *rows, iterator=1, running_since=1):
    """What the looks at these (second, elements delivered, latest gaps in ms) found."""
    return [
        wait.look(round(second * S), iterator, Gaps(delivered, tuple(round(gap * MS) for gap in gaps)), running_since)
        for second, delivered, gaps in rows
    ]


def test_a_loop_inside_a_tf_function_waits_for_what_is_not_a_gap():
    first, second, none, third = looks(
        LoopWait(), (1, 10, [60] * 9), (2, 20, [60] * 19), (3, 20, [60] * 19), (4, 30, [60] * 20 + [70] * 10)
    )
    assert first == LoopShare(10), "since when it has been running is unknown"
    assert (second.elements, second.length_ns, second.wait_ns) == (10, 100 * MS, 40 * MS)
    assert none == LoopShare(0)
    assert (third.elements, third.length_ns, third.wait_ns) == (10, 200 * MS, 130 * MS)


def test_of_more_elements_than_gaps_are_kept_the_latest_stand_for_all():
    _, share = looks(LoopWait(), (1, 1000, [0.6] * 100), (2, 2000, [0.6] * 100))
    assert (share.elements, share.length_ns, share.wait_ns) == (1000, MS, pytest.approx(0.4 * MS))


def test_a_long_element_that_ends_in_the_next_second_is_made_up_for():
    """Elements of 0.7 s, 0.6 s of which is a gap: one or two per look."""
    wait, shares = LoopWait(), []
    for second in range(1, 60):
        delivered = int(second / 0.7)
        shares += looks(wait, (second, delivered, [600] * min(100, max(0, delivered - 1))))
    known = [share for share in shares if share.wait_ns is not None]
    assert sum(share.wait_ns * share.elements for share in known) / sum(
        share.length_ns * share.elements for share in known
    ) == pytest.approx(0.1 / 0.7, abs=0.02)


@pytest.mark.parametrize("running_since", [0, 2 * S - 1])
def test_what_happens_between_two_calls_is_no_wait(running_since):
    wait = LoopWait()
    looks(wait, (1, 10, [60] * 9))
    assert looks(wait, (2, 20, [60] * 19), running_since=running_since) == [LoopShare(10)]
    (share,) = looks(wait, (3, 30, [60] * 29), running_since=2 * S - 1)
    assert share.wait_ns == 40 * MS


def test_a_new_iterator_begins_anew():
    wait = LoopWait()
    looks(wait, (1, 10, [60] * 9), (2, 20, [60] * 19))
    assert looks(wait, (3, 5, [60] * 4), iterator=2) == [LoopShare(5)]
    assert looks(wait, (4, 15, [60] * 14), iterator=2)[0].wait_ns == 40 * MS


def test_time_before_the_first_element_is_no_wait():
    """A tf.function is traced before its loop begins."""
    wait = LoopWait()
    assert looks(wait, (1, 0, []), (2, 0, []), (3, 5, [60] * 4)) == [LoopShare(0), LoopShare(0), LoopShare(5)]


def test_elements_of_which_a_gap_may_be_missing_have_a_length_and_no_wait():
    _, share = looks(LoopWait(), (1, 10, [60] * 9), (13, 11, [60] * 9))
    assert share == LoopShare(1, 12.0 * S, None)


@pytest.mark.timed
@pytest.mark.long
@pytest.mark.tensorflow
def test_the_profile_of_keras_shows_the_same_wait(watch):
    run = watch(
        """
        import time
        import keras, tensorflow as tf

        def slow(x):
            time.sleep(0.03)
            return x

        class Sleep(keras.callbacks.Callback):
            def on_train_batch_end(self, batch, logs=None): time.sleep(0.012)

        dataset = tf.data.Dataset.range(10**6).map(lambda x: tf.ensure_shape(tf.numpy_function(slow, [x], tf.int64), ()))
        dataset = dataset.map(lambda x: (tf.fill([8, 4], tf.cast(x % 7, tf.float32)), tf.ones([8, 1]))).prefetch(1)
        model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(1)])
        model.compile("sgd", "mse")
        model.fit(dataset, steps_per_epoch=2000, callbacks=[Sleep()], verbose=0)
        """
    )
    (waits,) = run.recording.gap_waits
    assert waits.consumer_id == run.main.id and len(waits.wait_ns) >= 20
    assert set(waits.start_ns) <= set(run.steps.start_ns), "they are steps of the consumer"
    readings = gap_readings(None, run.recording)
    verdict = analyse(read_trace(run.folder), run.recording, "train.py").verdict
    assert readings is not None and verdict.wait_steps == "estimated" and verdict.gaps is None
    assert verdict.input_wait_share == pytest.approx(readings.wait_share, abs=0.15)
    assert 0.1 < readings.wait_share <= 1 - 12e6 / readings.step_ns, "at least 12 ms of a step are in the callback"
