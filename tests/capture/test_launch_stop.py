"""What becomes of scripts after their window: stopped, left to finish, crashed or killed."""

from __future__ import annotations

import pytest

from tests.capture.conftest import LOOP


@pytest.mark.long
@pytest.mark.tensorflow
def test_the_script_is_stopped_after_the_window(watch):
    run = watch(
        LOOP
        + """
import atexit
atexit.register(print, "exit handler")
try:
    loop(60)
except Exception:
    print("swallowed")
finally:
    print("finally")
print("never")
"""
    )
    assert run.out == "finally\nexit handler\n" and "Traceback" not in run.err
    assert run.recording.script_exit.kind == "stopped"
    assert run.recording.window.closed_by in ("stable", "seconds", "steps", "events")
    starts = run.steps.start_ns
    inside = [s for s in starts if run.recording.window.start_ns <= s < run.recording.window.end_ns]
    assert len(inside) == run.recording.window.steps >= 20


@pytest.mark.long
@pytest.mark.tensorflow
def test_iterators_are_destroyed_before_the_interpreter_of_a_stopped_script_ends(watch):
    """Later, no thread of TensorFlow can enter Python any more, and a destructor that waits for one would wait for ever."""
    run = watch(
        """
        import atexit, time
        import tensorflow as tf

        def numbers():
            try:
                while True:
                    time.sleep(0.01)
                    yield 1
            finally:
                print("generator closed", flush=True)

        dataset = tf.data.Dataset.from_generator(numbers, output_signature=tf.TensorSpec((), tf.int64))
        iterator = iter(dataset.prefetch(2))
        atexit.register(lambda: print("exit handler reads", int(next(iterator))))
        while True:
            next(iterator)
    """,
        steps=20,
        warmup=5,
    )
    assert run.recording.script_exit.kind == "stopped"
    assert run.out == "exit handler reads 1\ngenerator closed\n"


@pytest.mark.long
@pytest.mark.tensorflow
def test_an_interpreter_that_does_not_end_is_ended(watch):
    """The alarm is sent at once here, in place of a minute after the script was stopped."""
    run = watch(
        LOOP + "import atexit, os, signal\natexit.register(os.kill, os.getpid(), signal.SIGALRM)\nloop(60)\n",
        steps=20,
        warmup=5,
    )
    assert run.recording.script_exit.kind == "stopped" and run.recording.window.steps == 20
    assert "The script did not end within 60 s of being stopped, so its process was ended." in run.recording.warnings


@pytest.mark.long
@pytest.mark.tensorflow
def test_to_end_lets_the_script_finish(watch):
    run = watch(LOOP + "loop(6)\nprint('end')\n", to_end=True, steps=20, warmup=5)
    assert run.out == "end\n" and run.recording.script_exit.kind == "finished"
    assert run.recording.window.steps == 20 and run.recording.window.warmup_steps == 5
    assert run.recording.window.closed_by == "steps"


@pytest.mark.long
@pytest.mark.tensorflow
def test_a_crash_after_the_window_keeps_the_window(watch, tmp_path):
    run = watch(LOOP + "loop(1)\nraise RuntimeError('later')\n")
    assert run.recording.script_exit.kind == "failed" and run.recording.script_exit.exception == "RuntimeError: later"
    assert run.recording.window.steps > 10 and len(run.profiles) == 1
    assert (
        run.err[run.err.index("Traceback") :].splitlines()[1]
        == f'  File "{tmp_path / "train.py"}", line 12, in <module>'
    )


@pytest.mark.long
@pytest.mark.tensorflow
def test_a_script_that_will_not_stop_is_ended(watch):
    run = watch(
        LOOP
        + """
while True:
    try:
        loop(60)
    except:
        print("caught", flush=True)
""",
        steps=20,
    )
    assert run.out.startswith("caught\n") and run.recording.script_exit.kind == "stopped"
    assert any("caught the exception that stops it" in w for w in run.recording.warnings)


@pytest.mark.long
@pytest.mark.tensorflow
def test_a_kill_after_the_window_keeps_the_window(watch):
    run = watch(
        LOOP
        + """
import os, signal
try:
    loop(60)
finally:
    os.kill(os.getpid(), signal.SIGKILL)
""",
        steps=20,
        warmup=5,
    )
    assert run.recording.script_exit.kind == "killed" and run.recording.script_exit.code == 137
    assert run.recording.window.steps == 20 and len(run.profiles) == 1
