"""The recording of a run with steps of given lengths."""

from __future__ import annotations

from advisor.model.recording import Consumer, Host, Recording, ScriptExit, StepSeries, Window

HOST = Host("h", 2, 2, 1, 1)
MS = 1_000_000


def recording(durations_ms, waits_ms=(), warmup=2, steps=3, unprofiled=0):
    starts, now = [], 0
    for duration_ms in durations_ms:
        starts.append(now)
        now += duration_ms * MS
    ends = (*starts[1:], now)
    series = StepSeries("c0", tuple(starts), tuple(wait * MS for wait in waits_ms), ends)
    window = Window(0, now, warmup, steps, "steps", plain_steps=unprofiled)
    consumer = Consumer("c0", "tfadv_1", "for", None, is_main=True)
    return Recording("train.py", HOST, ScriptExit("stopped"), consumers=(consumer,), steps=(series,), window=window)
