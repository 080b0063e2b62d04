"""Runs small scripts under capture in a folder of their own."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from advisor.capture.launch import capture
from advisor.capture.request import CaptureRequest, Progress
from advisor.model.calls import Call
from advisor.model.codec import decode
from advisor.model.recording import Consumer, Recording, StepSeries

LOOP = """
import time
import tensorflow as tf
ds = tf.data.Dataset.range(100_000).map(lambda i: tf.random.normal([20, 20])).batch(4)
def loop(seconds):
    end = time.time() + seconds
    for x in ds:
        time.sleep(0.002)
        if time.time() > end:
            return
"""
"""A loop over random tensors, for so many seconds."""


@dataclass
class Run:
    """A run folder with its recording."""

    folder: Path
    recording: Recording
    progress: list[Progress] = field(default_factory=list)

    @property
    def profiles(self) -> list[Path]:
        return sorted(self.folder.glob("plugins/profile/*/*.xplane.pb"))

    @property
    def out(self) -> str:
        return (self.folder / "script.out").read_text()

    @property
    def err(self) -> str:
        return (self.folder / "script.err").read_text()

    @property
    def main(self) -> Consumer:
        return next(c for c in self.recording.consumers if c.is_main)

    @property
    def steps(self) -> StepSeries:
        return next(s for s in self.recording.steps if s.consumer_id == self.main.id)

    def calls(self, method: str) -> list[Call]:
        return [c for c in self.recording.calls if c.method == method]

    def call(self, method: str) -> Call:
        """The one call of that method that the script itself made."""
        (call,) = (c for c in self.calls(method) if c.made_by is None and c.library is None)
        return call


def write(folder: Path, text: str, name: str = "train.py") -> Path:
    path = folder / name
    path.write_text(textwrap.dedent(text))
    return path


@pytest.fixture
def watch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Run]:
    """Write a script, run it under capture from its own folder, read the recording."""
    monkeypatch.chdir(tmp_path)

    def run(text: str, *args: str, **options: object) -> Run:
        script = write(tmp_path, text)
        progress: list[Progress] = []
        out = capture(
            CaptureRequest(out=tmp_path / "run", script=script, args=args, **options),
            progress.append,  # type: ignore[arg-type]
        )
        return Run(out, decode((out / "recording.json").read_bytes(), Recording), progress)

    return run


def plain(script: Path, *args: str) -> subprocess.CompletedProcess[str]:
    """The same script without the tool."""
    return subprocess.run([sys.executable, str(script), *args], capture_output=True, text=True, check=False)
