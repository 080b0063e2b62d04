"""Short ops, which TensorFlow's profiler leaves out after some hundred runs, get their part of the function's time."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.capture.launch import capture
from advisor.capture.request import CaptureRequest
from advisor.graph import analyse
from advisor.model.codec import decode
from advisor.model.recording import Recording
from advisor.profile import read_trace

SCRIPT = Path(__file__).parent / "scripts" / "short_ops.py"


@pytest.mark.tensorflow
@pytest.mark.long
def test_many_short_ops_come_before_few_longer_ones(tmp_path: Path) -> None:
    """The line of short ops costs twice as much, measured without the other one; a tenth of its runs is recorded."""
    out = tmp_path / "run"
    capture(CaptureRequest(out=out, script=SCRIPT, seconds=2), lambda progress: None)
    recording = decode((out / "recording.json").read_bytes(), Recording)
    main = analyse(read_trace(out), recording, "short ops").main
    assert main is not None
    (iterator,) = [iterator for iterator in main.iterators if iterator.lines]
    short, long = iterator.lines[:2]
    assert short.at.text.endswith("# short") and long.at.text.endswith("# long")
    assert short.unrecorded_ns > 0.5 * short.total_ns
    assert 0 < long.share < short.share < 1
