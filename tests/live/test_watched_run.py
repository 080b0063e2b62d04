"""A watched run: sums over all samples, and what is said about them."""

from __future__ import annotations

import pytest
from rich.console import Console

from advisor.live import watched_run
from advisor.live.view import line, summary, table
from advisor.live.watched_run import WatchedRun
from tests.live.samples import S, consumer, sample


def watched(*samples):
    run = WatchedRun()
    for new_sample in samples:
        run.add(new_sample)
    return run


def shown(run):
    console = Console(width=100, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(table(run))
    return console.export_text()


def test_the_whole_run_counts_every_step_once():
    run = watched(sample(0, consumer(10, 10, 30.0, 3.0)), sample(1, consumer(40, 30, 10.0, 5.0), cores=2.0))
    assert run.main.step_ns == pytest.approx(15e6)
    assert run.main.wait_share == pytest.approx((10 * 3 + 30 * 5) / (10 * 30 + 30 * 10))
    assert (run.elapsed_ns, run.cores) == (2 * S, 1.5)


def test_the_whole_run_is_shown_beside_the_last_second():
    run = watched(sample(0, consumer(10, 10, 30.0, 3.0)), sample(1, consumer(40, 30, 10.0, 5.0)))
    assert "10 ms per step (15 ms in the whole run), 50 % of it waiting for input (30 %)" in line(run)
    assert "10 ms (15 ms)" in shown(run) and "50 % (30 %)" in shown(run)


def test_pauses_between_epochs_are_shown():
    run = watched(
        sample(0, consumer(10, 10, 30.0, pauses=1, pause_ns=100_000_000)),
        sample(1, consumer(20, 10, 30.0, pauses=2, pause_ns=260_000_000)),
        sample(2, consumer(30, 10, 30.0, pauses=1, pause_ns=9_000_000_000), is_profiled=True),
    )
    assert "3 x 120 ms" in shown(run) and "pauses 3 x 120 ms" in line(run)
    assert "3 pauses between steps, 120 ms on average" in summary(run)[0]
    assert "pause" not in summary(watched(sample(0, consumer(10, 10, 30.0))))[0]


def test_the_training_loop_is_the_main_consumer_whatever_takes_more_steps():
    training = consumer(10, 10, 30.0)
    counting = consumer(5000, 5000, 0.1, consumer_id="c2", where="count.py:2", is_main=False)
    run = watched(sample(0, training, counting))
    assert run.main.latest is training
    assert summary(run)[0].startswith("train.py:7 for: 10 steps, 30 ms on average")


def test_steps_with_an_unknown_wait_do_not_count_as_steps_without_one():
    """As the first step of `fit`, and steps of 10 s and more."""
    run = watched(sample(0, consumer(1, 1, 900.0)), sample(1, consumer(11, 10, 10.0, 4.0)))
    assert run.main.wait_share == pytest.approx(0.4)
    assert "40 % of the time waiting for input" in summary(run)[0]


def test_a_wait_that_cannot_be_seen_is_not_given():
    run = watched(sample(0, consumer(10, 10, 30.0)))
    assert run.main.wait_share is None
    assert "waiting" not in line(run) + summary(run)[0]
    assert "train.py:7 for" in shown(run)


def test_a_line_for_logs():
    run = watched(sample(0, consumer(40, 40, 10.0, 5.0, buffered=3.0, buffer_size=4.0)))
    assert line(run) == (
        "1 s, train.py:7 for: 40 steps, 10 ms per step (10 ms in the whole run), 50 % of it waiting for input (50 %), "
        "buffer 3/4, 1.0 cores, 100 MiB"
    )


def test_a_slow_period_is_told_with_its_steps_and_its_reason():
    samples = [sample(n, consumer(50 * (n + 1), 50, 10.0, 1.0)) for n in range(20)]
    samples += [sample(20 + n, consumer(1000 + 50 * (n + 1), 50, 25.0, 15.5, passes=3)) for n in range(4)]
    run = watched(*samples)
    (text,) = [line for line in summary(run) if line.startswith("Between")]
    assert text.startswith("Between steps 950 and 1,050 (epoch 3, ")
    assert "a step became 2.5x as long: 25 ms instead of 10 ms; most of it is waiting for input (15.5 ms" in text
    assert "a step became 2.5x" in shown(run)


def test_steps_beside_the_profiler_are_no_slow_period():
    samples = [sample(n, consumer(50 * (n + 1), 50, 10.0)) for n in range(20)]
    samples += [sample(20 + n, consumer(1000 + 50 * (n + 1), 50, 25.0), is_profiled=True) for n in range(6)]
    run = watched(*samples)
    assert run.slow_periods == []
    assert run.main.timed_steps == 1300


def test_names_are_safe_for_a_terminal():
    run = watched(sample(0, consumer(1, 1, 1.0, where="\x1b[2Jtrain.py:1")))
    for text in (line(run), *summary(run), shown(run)):
        assert "\x1b" not in text


def test_consumers_are_limited(monkeypatch):
    monkeypatch.setattr(watched_run, "MAX_CONSUMERS", 3)
    run = watched(sample(0, *(consumer(1, 1, 1.0, consumer_id=f"c{n}") for n in range(5))))
    assert len(run.consumers) == 3
    assert run.is_incomplete and "in more places" in summary(run)[-1]


def test_before_the_first_step():
    run = watched(sample(0))
    assert run.main is None
    assert "no steps yet" in line(run) and "no steps yet" in shown(run)


def test_memory_in_profiled_seconds_is_not_that_of_the_script():
    run = WatchedRun()
    run.add(sample(1, consumer(10, 10, 5.0), rss_bytes=300 << 20))
    run.add(sample(2, consumer(20, 10, 5.0), rss_bytes=2 << 30, is_profiled=True))
    run.add(sample(3, consumer(30, 10, 5.0), rss_bytes=200 << 20))
    assert run.peak_rss_bytes == 300 << 20
