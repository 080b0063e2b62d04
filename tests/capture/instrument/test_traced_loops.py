"""Steps and loops inside a `tf.function`, which Python does not see."""

from __future__ import annotations

import pytest

from tests.capture.instrument.loops import PIPE, SHORT

pytestmark = pytest.mark.tensorflow


@pytest.mark.long
def test_steps_inside_a_tf_function(watch):
    run = watch(
        PIPE
        + """
@tf.function
def step(iterator):
    return tf.reduce_sum(next(iterator))
it = iter(ds)
while True:
    step(it)
""",
        **SHORT,
    )
    assert run.main.kind == "tf.function" and run.main.call_id == run.call("batch").id
    assert run.recording.window.steps == 30 and run.steps.wait_ns == ()


GRADIENT = """
w = tf.Variable(tf.ones([30, 30]))

def gradient(batch):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(batch @ w)
    w.assign_sub(tape.gradient(loss, w))
    return loss
"""


@pytest.mark.long
def test_the_functions_that_take_gradients_in_the_steps_are_recorded(watch):
    run = watch(
        PIPE
        + GRADIENT
        + """
@tf.function
def first(batch):
    return gradient(batch)

@tf.function
def measure(batch):
    return tf.reduce_max(batch)

class Trainer:
    def __init__(self):
        self.run = tf.function(self.second)

    def second(self, batch):
        return gradient(batch)

    @tf.function
    def third(self, batch):
        return gradient(batch)

@tf.function
def warm_up(batch):
    return gradient(batch)

warm_up(tf.ones([4, 30, 30]))
trainer = Trainer()
for batch in ds:
    first(batch)
    measure(batch)
    trainer.run(batch)
    trainer.third(batch)
""",
        **SHORT,
    )
    lines = (run.folder.parent / "train.py").read_text().splitlines()
    functions = [(step.function, lines[step.line - 1].strip()) for step in run.main.graph_steps]
    assert functions == [
        ("first", "@tf.function"),
        ("second", "def second(self, batch):"),
        ("third", "@tf.function"),
    ]


@pytest.mark.long
def test_a_function_that_fetches_its_batches_is_no_step_of_a_loop(watch):
    run = watch(
        PIPE
        + GRADIENT
        + """
@tf.function
def step(iterator):
    return gradient(next(iterator))

it = iter(ds)
while True:
    step(it)
""",
        **SHORT,
    )
    assert run.main.kind == "tf.function" and run.main.graph_steps == ()


@pytest.mark.long
def test_a_whole_loop_inside_a_tf_function(watch):
    run = watch(
        PIPE
        + """
@tf.function
def train(d):
    total = 0.0
    for x in d:
        total += tf.reduce_sum(x)
    return total
train(ds.repeat())
""",
        seconds=2,
    )
    assert run.main.kind == "tf.function" and run.main.site.line == 10
    assert run.main.call_id == run.call("repeat").id
    window = run.recording.window
    assert window.steps == 0 and window.closed_by == "seconds" and 1.5e9 < window.end_ns - window.start_ns < 4e9
    assert len(run.profiles) == 1 and run.recording.script_exit.kind == "stopped"
    assert any("tf.function could not be interrupted" in w for w in run.recording.warnings)
