"""TensorFlow's tf.data API recorded in this very process, for tests that replay."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from advisor.capture.instrument.call_sites import SiteFinder
from advisor.capture.instrument.dataset_ids import call_id_of
from advisor.capture.instrument.recorder import Recorder
from advisor.capture.instrument.replay_log import ReplayLog
from advisor.model.calls import Call
from advisor.model.edits import Edit
from advisor.replay.replay import AS_RECORDED, Replay

_recorders: list[Recorder] = []


class Recorded:
    """The calls made since it began."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.warnings: list[str] = []

    def call(self, method: str, index: int = -1) -> Call:
        """The last (or that) call of a method."""
        return [c for c in self.recorder.calls() if c.method == method][index]

    def replay(self, dataset: Any, *edits: Edit, seeding: str = AS_RECORDED, files: Any = None) -> Any:
        return self.replaying(dataset, *edits, seeding=seeding, files=files)[0]

    def replaying(
        self, dataset: Any, *edits: Edit, seeding: str = AS_RECORDED, files: Any = None
    ) -> tuple[Any, Replay]:
        call_id = call_id_of(dataset)
        assert call_id is not None
        work = Replay(self.recorder, edits, seeding, files)
        return work.dataset(call_id), work


@contextlib.contextmanager
def install() -> Iterator[Recorded]:
    """Record from here on; the wrappers are put in place once a process, and do nothing outside."""
    import tensorflow as tf

    from advisor.capture.instrument.dataset_api import record_dataset_api

    if not _recorders:
        _recorders.append(Recorder(SiteFinder(), lambda text: None))
        record_dataset_api(tf, _recorders[0], lambda text: None)
    recorder = _recorders[0]
    recorder._calls.clear()
    recorder.replay_log, recorder.is_open = ReplayLog(), True
    try:
        yield Recorded(recorder)
    finally:
        recorder.replay_log, recorder.is_open = None, False
