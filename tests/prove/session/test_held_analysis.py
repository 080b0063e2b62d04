"""A script that is held after the window of its analysis, and trials in its process."""

from __future__ import annotations

import os
import signal
import textwrap
import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from advisor.capture.instrument.consumers import ConsumerSteps
from advisor.capture.request import CaptureRequest
from advisor.host.calibration.window import IDLE_STEPS
from advisor.model.calls import Call
from advisor.model.codec import decode
from advisor.model.edits import InsertAfter
from advisor.model.errors import AdvisorError, OutOfTime, ScriptFailed
from advisor.model.finding import Safety
from advisor.model.recording import Recording
from advisor.prove.session.held_analysis import HeldAnalysis
from advisor.prove.session.proof_session import ProofSession
from advisor.prove.trial.runs.analysed_run import may_release, release_iterators
from advisor.prove.trial.trial_result import FASTER
from advisor.workflows.saved_recording import read_recording

pytestmark = [pytest.mark.tensorflow, pytest.mark.long]

HEAD = """
import atexit, os, time
import tensorflow as tf
folder = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(folder, "starts"), "a") as file:
    file.write(f"{os.getpid()}\\n")
atexit.register(lambda: open(os.path.join(folder, "ended"), "w").close())
def slow(x):
    y = tf.cast(x, tf.float32) * tf.ones([120, 120])
    for _ in range(3):
        y = tf.linalg.matmul(y, y) / 1e3
    return tf.reduce_sum(y)
"""
LOOP = (
    HEAD
    + """
peeked = next(iter(tf.data.Dataset.range(3)))
data = tf.data.Dataset.range(96).map(slow).batch(8)
for epoch in range(10_000):
    for batch in data:
        time.sleep(0.002)
"""
)
FIT = (
    HEAD
    + """
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
model.compile("sgd", "mse")
data = tf.data.Dataset.range(96).map(lambda x: (tf.fill([4], slow(x)), [1.0])).batch(8)
valid = tf.data.Dataset.range(16).map(lambda x: (tf.fill([4], 1.0), [1.0])).batch(8)
model.fit(data, epochs=10_000, validation_data=valid, verbose=0)
"""
)
PEEKED = (
    HEAD
    + """
data = tf.data.Dataset.range(96).map(slow).batch(8)
shape = next(iter(data)).shape
valid = tf.data.Dataset.range(16).map(slow).batch(8)
for epoch in range(10_000):
    for batch in data:
        time.sleep(0.002)
    for batch in valid:
        pass
"""
)
GENERATED = (
    HEAD
    + """
numbers = tf.data.Dataset.range(10**9).map(lambda x: x + 1)
def generate():
    for number in numbers.as_numpy_iterator():
        yield number
data = tf.data.Dataset.from_generator(generate, output_signature=tf.TensorSpec([], tf.int64)).map(slow).batch(8).prefetch(2)
for batch in data:
    time.sleep(0.002)
"""
)
DECAYING = (
    HEAD
    + """
scale = 1.0
def scaled(x):
    return slow(x) * scale
data = tf.data.Dataset.range(96).map(scaled).batch(8)
for epoch in range(10_000):
    for batch in data:
        time.sleep(0.002)
    scale *= 0.9  # no effect: the function was traced once
"""
)
CLEARING_UP = (
    HEAD
    + """
data = tf.data.Dataset.range(96).map(slow).batch(8)
try:
    for epoch in range(10_000):
        for batch in data:
            time.sleep(0.002)
finally:
    time.sleep(60)
"""
)
RETRYING = (
    HEAD
    + """
data = tf.data.Dataset.range(96).map(slow).batch(8).repeat()
batches = iter(data)
while True:
    try:
        batch = next(batches)
        time.sleep(0.002)
    except BaseException:
        batches = iter(data)
"""
)
REBUILT = (
    HEAD
    + """
for epoch in range(10_000):
    for batch in tf.data.Dataset.range(96).map(slow).batch(8):
        time.sleep(0.002)
"""
)


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str], Path]:
    def written(text: str) -> Path:
        path = tmp_path / "train.py"
        path.write_text(textwrap.dedent(text))
        return path

    return written


@pytest.fixture
def analysis() -> Iterator[HeldAnalysis]:
    with HeldAnalysis() as analysis:
        yield analysis


def capture(
    analysis: HeldAnalysis, path: Path, deadline_s: float = 200.0, *, is_without_input: bool = False
) -> Recording:
    request = CaptureRequest(
        path.parent / "run",
        path,
        seconds=2.0,
        in_place=True,
        reads_alone=is_without_input,
        deadline=time.monotonic() + deadline_s,
    )
    recording = read_recording(analysis.capture(request, lambda progress: None))
    assert recording is not None
    return recording


def session(path: Path, recording: Recording, analysis: HeldAnalysis) -> ProofSession:
    request = CaptureRequest(path.parent / "trials", path, in_place=True)
    consumed = consumed_call(recording)
    return ProofSession(request, consumed, 300.0, lambda progress: None, recording.calls, analysed=analysis.take())


def consumed_call(recording: Recording) -> Call:
    (call_id,) = (consumer.call_id for consumer in recording.consumers if consumer.is_main)
    return next(call for call in recording.calls if call.id == call_id)


def starts(path: Path) -> list[int]:
    return [int(word) for word in (path.parent / "starts").read_text().split()]


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


@pytest.mark.parametrize("text", [pytest.param(LOOP, id="loop", marks=pytest.mark.slow), pytest.param(FIT, id="Keras")])
def test_steps_without_input_are_in_the_recording_that_is_analysed(
    text: str, write: Callable[[str], Path], analysis: HeldAnalysis
) -> None:
    """They come after the window, whose recording is written when it ends."""
    path = write(text.replace("[120, 120]", "[400, 400]"))  # so slow that steps wait
    recording = capture(analysis, path, is_without_input=True)
    assert len(recording.idle_step_ns) == IDLE_STEPS.value
    (pid,) = starts(path)
    assert is_alive(pid), "held for trials all the same"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(LOOP, id="loop"),
        pytest.param(FIT, id="Keras", marks=pytest.mark.slow),
        pytest.param(PEEKED, id="a look before another dataset is made", marks=pytest.mark.slow),
    ],
)
def test_trials_need_no_other_run(text: str, write: Callable[[str], Path], analysis: HeldAnalysis) -> None:
    path = write(text)
    recording = capture(analysis, path)
    assert recording.script_exit.kind == "stopped"
    assert recording.window is not None and recording.window.steps > 0
    assert list((path.parent / "run").glob("plugins/profile/*/*.xplane.pb"))
    (pid,) = starts(path)
    assert is_alive(pid) and not (path.parent / "ended").exists()
    call = consumed_call(recording)
    with session(path, recording, analysis) as proof:
        trial = proof.try_fix((), (InsertAfter(call.id, "cache"),), Safety.EXACT)
        assert (trial.verdict, trial.safety_seen) == (FASTER, Safety.EXACT), trial
        folder = proof.profile((InsertAfter(call.id, "cache"),))
        profiled = decode((folder / "recording.json").read_bytes(), Recording)
        assert profiled.window is not None and profiled.window.steps > 20
        graph = proof.call_graph()
        assert proof.runs == 0
    assert not is_alive(pid) and (path.parent / "ended").exists()
    with session(path, recording, analysis) as again:  # nothing was left to take
        assert again.runs == 1
        assert again.call_graph() == graph  # so that a changed text is held at the same consumption
    assert len(starts(path)) == 2


@pytest.mark.slow
def test_a_script_that_makes_datasets_while_it_trains_is_not_held(
    write: Callable[[str], Path], analysis: HeldAnalysis
) -> None:
    path = write(REBUILT)
    recording = capture(analysis, path)
    assert recording.window is not None and len(recording.calls) > 3
    assert analysis.take() is None
    assert (path.parent / "ended").exists() and not is_alive(starts(path)[0])


def test_a_generator_that_reads_another_dataset_goes_on_while_the_script_is_stopped(
    write: Callable[[str], Path], analysis: HeldAnalysis
) -> None:
    """Its thread makes steps, too; the training waits for it, and so does the end of its iterator."""
    path = write(GENERATED)
    recording = capture(analysis, path)
    assert recording.script_exit.kind == "stopped" and recording.window is not None, recording.script_exit
    assert analysis.take() is None
    assert (path.parent / "ended").exists() and not is_alive(starts(path)[0])


@pytest.mark.slow
def test_a_function_that_would_be_traced_with_other_values_is_not_traced_again(
    write: Callable[[str], Path], analysis: HeldAnalysis
) -> None:
    path = write(DECAYING)
    recording = capture(analysis, path)
    call = consumed_call(recording)
    with session(path, recording, analysis) as proof:
        trial = proof.try_fix((), (InsertAfter(call.id, "cache"),), Safety.EXACT)
        assert (trial.verdict, trial.safety_seen) == (FASTER, Safety.EXACT), trial
        assert proof.runs == 1
    assert len(starts(path)) == 2


@pytest.mark.slow
def test_the_end_of_a_held_script_keeps_to_the_deadline(write: Callable[[str], Path]) -> None:
    path = write(CLEARING_UP)
    deadline = time.monotonic() + 60
    with HeldAnalysis(deadline) as analysis:
        capture(analysis, path, 50)
        (pid,) = starts(path)
        assert is_alive(pid)
        time.sleep(max(0.0, deadline - time.monotonic() - 1))
    assert time.monotonic() < deadline + 6
    assert not is_alive(pid)


@pytest.mark.slow
def test_trials_leave_the_recording_as_it_is(write: Callable[[str], Path], analysis: HeldAnalysis) -> None:
    """Even if the script catches what stops it, so that its process is ended."""
    path = write(RETRYING)
    recording = capture(analysis, path)
    before = (path.parent / "run" / "recording.json").read_bytes()
    with session(path, recording, analysis) as proof:
        assert proof.runs == 0
    assert not is_alive(starts(path)[0])
    assert (path.parent / "run" / "recording.json").read_bytes() == before


def test_the_iterators_of_the_training_end_with_their_threads() -> None:
    """A Python generator behind a prefetch is closed, although the script keeps the iterator."""
    import tensorflow as tf

    closed = []

    def numbers() -> Iterator[int]:
        try:
            yield from range(10**9)
        finally:
            closed.append(True)

    data = tf.data.Dataset.from_generator(numbers, output_signature=tf.TensorSpec([], tf.int64)).prefetch(4)
    kept = iter(data)
    next(kept)
    consumer = ConsumerSteps("c0", "for", None, None)
    consumer.iterator = weakref.ref(kept)
    assert may_release([consumer]) and not closed
    release_iterators([consumer])
    deadline = time.monotonic() + 20
    while not closed and time.monotonic() < deadline:
        time.sleep(0.05)
    assert closed

    strategy = tf.distribute.MirroredStrategy(["CPU:0"])
    distributed = iter(strategy.experimental_distribute_dataset(tf.data.Dataset.range(4).batch(2)))
    consumer.iterator = weakref.ref(distributed)
    assert not may_release([consumer])


def test_entering_that_fails_ends_the_held_process(write: Callable[[str], Path], analysis: HeldAnalysis) -> None:
    path = write(LOOP)
    recording = capture(analysis, path)
    (path.parent / "trials").write_text("a file where the folder should be\n")
    with pytest.raises(AdvisorError, match="Cannot write to"), session(path, recording, analysis):
        pass
    assert not is_alive(starts(path)[0])


@pytest.mark.slow
def test_a_held_process_that_was_killed_is_replaced(write: Callable[[str], Path], analysis: HeldAnalysis) -> None:
    path = write(LOOP)
    recording = capture(analysis, path)
    os.kill(starts(path)[0], signal.SIGKILL)
    with session(path, recording, analysis) as proof:
        assert proof.runs == 1
    assert len(starts(path)) == 2


def test_leaving_ends_the_script(write: Callable[[str], Path]) -> None:
    """One whose loop only reads, which is stopped after some seconds in which a training might have begun."""
    path = write(LOOP.replace("time.sleep(0.002)", "pass"))
    with HeldAnalysis() as analysis:
        capture(analysis, path)
        (pid,) = starts(path)
        assert is_alive(pid)
    assert not is_alive(pid) and (path.parent / "ended").exists()


@pytest.mark.slow
def test_a_script_that_fails_or_takes_too_long(write: Callable[[str], Path], analysis: HeldAnalysis) -> None:
    path = write("raise ValueError('no data')\n")
    with pytest.raises(ScriptFailed, match="failed before anything was measured: ValueError: no data"):
        capture(analysis, path)
    assert analysis.take() is None
    path = write("import time\ntime.sleep(600)\n")
    with pytest.raises(OutOfTime):
        capture(analysis, path, deadline_s=4.0)
    assert analysis.take() is None
