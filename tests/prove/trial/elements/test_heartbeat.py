"""A slow comparison says that it goes on, and not too often."""

from __future__ import annotations

import pytest

from advisor.prove.trial.elements.heartbeat import Heartbeat


def test_one_message_per_second(monkeypatch: pytest.MonkeyPatch) -> None:
    now, told = 100.0, []
    monkeypatch.setattr("time.monotonic", lambda: now)
    heartbeat = Heartbeat(lambda: told.append(now))
    for _ in range(40):
        heartbeat()
        now += 0.125
    assert told == [100.0, 101.0, 102.0, 103.0, 104.0]
