"""Samples as a script's process sends them."""

from __future__ import annotations

from advisor.model.live import LiveConsumer, LiveSample

MS = 1_000_000
S = 1_000_000_000
START = 1_700_000_000 * S


def consumer(steps, new, step_ms, wait_ms=None, consumer_id="c1", passes=1, **others):
    """One consumer's part of a sample."""
    given = {"kind": "for", "where": "train.py:7", "is_main": True, **others}
    return LiveConsumer(
        id=consumer_id,
        steps=steps,
        passes=passes,
        new_steps=new,
        step_ns=step_ms * MS,
        wait_ns=None if wait_ms is None else wait_ms * MS,
        **given,
    )


def sample(second, *consumers, cores=1.0, rss_bytes=100 << 20, is_profiled=False):
    """The sample of one second of the run."""
    return LiveSample(START + second * S, S, cores, rss_bytes, 100_000, is_profiled, tuple(consumers))
