"""The verdict where there is little to judge: which of the reasons is said."""

from __future__ import annotations

from dataclasses import replace

from advisor.graph import analyse
from advisor.model.recording import Call, Consumer, Host, Recording, ScriptExit, StepSeries, Window

MS = 1_000_000
STARTS = tuple(range(0, 40 * MS, 4 * MS))
RECORDED = Recording(
    target="train.py",
    host=Host("h", 2.0, 2, 8 << 30, 4 << 30),
    script_exit=ScriptExit("finished"),
    calls=(Call("c0", "range", None),),
    consumers=(Consumer("k0", "c0", "for", None, is_main=True),),
    steps=(StepSeries("k0", STARTS),),
    window=Window(0, 40 * MS, 2, 10, "steps"),
)
ENDED = "TensorFlow's profiler could not be started (AlreadyExistsError: Another profiler is running.)."


def sentence_of(recording: Recording) -> str:
    verdict = analyse(None, recording, "train.py").verdict
    assert verdict.level == "unknown" and verdict.input_wait_share is None
    return verdict.sentence


def test_a_profiler_that_could_not_start_is_the_reason_whether_or_not_a_window_opened():
    """Neither that the script ended too early, nor that no iterator ran, is true then."""
    for window in (RECORDED.window, None):
        sentence = sentence_of(replace(RECORDED, unprofiled=ENDED, window=window))
        assert sentence == (
            f"No profile was taken, so nothing can be said about waiting for input. {ENDED} 9 steps were seen, 4 ms in the "
            "median."
        )


def test_other_reasons_stay():
    assert "ended before anything could be profiled" in sentence_of(replace(RECORDED, window=None))
    assert "No tf.data iterator ran" in sentence_of(RECORDED)
    assert "makes no tf.data dataset" in sentence_of(replace(RECORDED, calls=()))
