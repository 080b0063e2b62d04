"""Samples as a script's process sends them."""

from __future__ import annotations

from advisor.model.live import LiveConsumer, LiveSample, LiveWindow, WindowFinding

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


def window(second, first_step, last_step, consumer_id="c1", writing_s=0.5, **others):
    """A window of two seconds, which takes a while to write."""
    start = START + second * S
    times = {"start_ns": start, "end_ns": start + 2 * S, "written_ns": start + 2 * S + round(writing_s * S)}
    given = {"folder": "/nowhere", "where": "train.py:7", "kind": "for", **times, **others}
    return LiveWindow(consumer_id=consumer_id, first_step=first_step, last_step=last_step, **given)


def finding(call="train.py:3 .map(load)", wait_share=0.7, **others):
    """What the analysis of a window found."""
    given = {"step_ns": 10.0 * MS, "steps": 50, "blame_share": 0.9, "cpu_ns": S, **others}
    return WindowFinding(wait_share=wait_share, bottleneck=call, is_input_bound=wait_share >= 0.05, **given)
