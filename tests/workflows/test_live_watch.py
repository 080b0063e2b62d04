"""Counters of a training program that watches itself: sinks, slow periods and windows, without the profiler unless asked for."""

from __future__ import annotations

import csv
import json
import textwrap
from statistics import median

import pytest

import advisor
from advisor.model.errors import AdvisorError
from tests.collecting import free_port, run_script

HEAD = """
import time
import tensorflow as tf
import advisor

def load(x):
    time.sleep(0.004)
    return x

def make():
    return tf.data.Dataset.range(10**9).map(lambda x: tf.numpy_function(load, [x], tf.int64))
"""
MAP_LINE = 10


def run(tmp_path, text):
    script = tmp_path / "train.py"
    script.write_text(HEAD.lstrip("\n") + textwrap.dedent(text))
    done = run_script(script)
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.parametrize("make", ["watch", "AdvisorCallback"])
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"sinks": ["nowhere"]}, "'nowhere' is not a sink"),
        ({"sinks": "wandb"}, "sinks is a list"),
        ({"windows_every": "often"}, "windows_every: 'often' is not a duration"),
        ({"windows_every": 5}, "windows_every is at least 60 s, not 5 s"),
        ({"logdir": "logs", "profile": False}, "logdir belongs to a profiled window"),
        ({"sinks": ["prometheus:0"], "steps": 10}, "steps belongs to a profiled window"),
    ],
)
def test_wrong_options_are_told_before_anything_runs(make, options, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(AdvisorError, match=words):
        getattr(advisor, make)(**options)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.tensorflow
@pytest.mark.long
def test_sinks_without_the_profiler(tmp_path):
    done = run(
        tmp_path,
        """
        import urllib.request
        starts = []
        original = tf.profiler.experimental.start
        tf.profiler.experimental.start = lambda *args, **kwargs: (starts.append(1), original(*args, **kwargs))

        class Own:
            name = "own"
            samples, is_closed = [], False
            def write(self, sample, changes): self.samples.append(sample)
            def close(self): self.is_closed = True

        own = Own()
        with advisor.watch(sinks=["jsonl:live.jsonl", "csv:live.csv", "prometheus:PORT", "tensorboard:logs", own]) as run:
            for step, x in enumerate(make().take(800)):
                time.sleep(0.001)
                if step == 500:
                    page = urllib.request.urlopen("http://127.0.0.1:PORT/metrics", timeout=10).read().decode()
        assert own.is_closed and own.samples and starts == []
        assert run.report is None and run.folder is None and run.problem == "", run.problem
        assert run.live.main.latest.steps == 800, run.live.main.latest
        assert 'tfdata_advisor_steps{consumer="train.py:' in page
        with advisor.watch(sinks=["jsonl:other.jsonl"], quiet=True): pass
        with advisor.watch(profile=False, quiet=True) as counted:
            for x in make().take(50): pass
        assert counted.live.main.latest.steps == 50
        """.replace("PORT", str(free_port())),
    )
    samples = [json.loads(line) for line in (tmp_path / "live.jsonl").read_text().splitlines()]
    assert sum(consumer["new_steps"] for sample in samples for consumer in sample.get("consumers", ())) == 800
    assert list(csv.DictReader((tmp_path / "live.csv").open()))[-1]["steps"] == "800"
    assert list((tmp_path / "logs").glob("*tfevents*"))
    assert "800 steps" in done.stdout and "waiting for input" in done.stdout and "profiled window" not in done.stdout
    assert not (tmp_path / "plugins").exists()


@pytest.mark.tensorflow
@pytest.mark.long
def test_a_report_and_sinks_and_a_second_block(tmp_path):
    done = run(
        tmp_path,
        """
        watch = advisor.watch("logs", warmup=5, steps=30, sinks=["csv:live.csv"])
        for _ in range(2):
            with watch as run:
                for x in make().take(300): pass
            assert run.report is not None and run.live.main.latest.steps == 300
        import socket
        taken = socket.create_server(("127.0.0.1", 0))
        with advisor.watch(sinks=[f"prometheus:{taken.getsockname()[1]}"]) as refused:
            for x in make().take(50): pass
        assert refused.live.main.latest.steps == 50
        """,
    )
    rows = list(csv.DictReader((tmp_path / "live.csv").open()))
    assert [row["steps"] for row in rows].count("300") == 2, "the second block is appended"
    assert done.stdout.count("for: 300 steps") == 2
    assert "cannot listen on 127.0.0.1:" in done.stderr and "name another port" in done.stderr


@pytest.mark.tensorflow
@pytest.mark.long
def test_windows_of_a_program_that_watches_itself(tmp_path):
    done = run(
        tmp_path,
        """
        import advisor.workflows.live_watch as live_watch
        from advisor.live.window_plan import WindowPlan
        live_watch.plan_of = lambda text: WindowPlan(3.0, max_share=1.0)  # seconds instead of minutes
        with advisor.install():
            data = make()
            with advisor.watch(windows_every="1min") as run:
                begun = time.time()
                for x in data:
                    time.sleep(0.001)
                    if time.time() - begun > 20: break
        assert run.live.bottlenecks.windows >= 1, run.live.bottlenecks.problems
        assert run.report is None and run.folder is None
        """,
    )
    assert f"train.py:{MAP_LINE}" in done.stdout and "Since step " in done.stdout, done.stdout + done.stderr
    assert "profiled window" in done.stdout


@pytest.mark.tensorflow
@pytest.mark.long
def test_the_keras_callback(tmp_path):
    done = run(
        tmp_path,
        """
        import keras
        def pairs():
            return make().map(lambda x: (tf.fill([4], tf.cast(x % 7, tf.float32)), tf.ones([1]))).batch(2)
        model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(1)])
        model.compile("sgd", "mse")
        callback = advisor.AdvisorCallback(sinks=["jsonl:live.jsonl"])
        for _ in range(2):
            model.fit(pairs(), steps_per_epoch=100, epochs=2, verbose=0, callbacks=[callback])
            assert callback.live.main.latest.steps == 200, callback.live.main.latest
            assert 0 < callback.live.main.wait_share < 1, "from tf.data's gap times"
            assert callback.report is None and callback.folder is None and callback.problem == ""
        """,
    )
    samples = [json.loads(line) for line in (tmp_path / "live.jsonl").read_text().splitlines()]
    assert sum(consumer["new_steps"] for sample in samples for consumer in sample.get("consumers", ())) == 400
    assert done.stdout.count("keras.fit: 200 steps") == 2, done.stdout


@pytest.mark.timed
@pytest.mark.tensorflow
@pytest.mark.long
@pytest.mark.slow
def test_the_wait_of_loops_whose_next_python_does_not_see(tmp_path):
    """Keras' `fit`, and a loop inside a tf.function. What is known: how long a step takes if its element is there."""
    done = run(
        tmp_path,
        """
        import keras
        import advisor.live.view
        def slow(x):
            time.sleep(0.02)
            return x
        def work(x):
            time.sleep(0.006)
            return x
        def make(get):
            return tf.data.Dataset.range(10**9).map(lambda x: tf.ensure_shape(tf.numpy_function(get, [x], tf.int64), ()))
        def pairs(get):
            return make(get).map(lambda x: (tf.fill([8, 4], tf.cast(x % 7, tf.float32)), tf.ones([8, 1]))).prefetch(1)
        class Sleep(keras.callbacks.Callback):
            def on_train_batch_end(self, batch, logs=None): time.sleep(0.005)
            def on_epoch_end(self, epoch, logs=None): time.sleep(0.3)
        model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(1)])
        model.compile("sgd", "mse")
        for name, get, steps in ("ready", lambda x: x, 160), ("slow", slow, 60):
            callback = advisor.AdvisorCallback(sinks=[f"jsonl:{name}.jsonl"])
            model.fit(pairs(get), steps_per_epoch=steps, epochs=2, verbose=0, callbacks=[Sleep(), callback])
        assert "% of the time waiting for input" in " ".join(advisor.live.view.summary(callback.live))
        total = tf.Variable(0, dtype=tf.int64)
        @tf.function
        def train(iterator):
            for _ in tf.range(150):
                total.assign_add(tf.ensure_shape(tf.numpy_function(work, [next(iterator)], tf.int64), ()))
        with advisor.watch(sinks=["jsonl:loop.jsonl"], quiet=True):
            train(iter(make(slow).prefetch(1)))
        """,
    )
    shares, lengths_ms = {}, {}
    for name in ("ready", "slow", "loop"):
        samples = [json.loads(text) for text in (tmp_path / f"{name}.jsonl").read_text().splitlines()][1:]
        seen = [
            consumer
            for sample in samples
            for consumer in sample.get("consumers", ())
            if consumer.get("wait_ns") is not None
        ]
        assert seen, (name, done.stdout)
        lengths_ms[name] = median(consumer["step_ns"] for consumer in seen) / 1e6
        shares[name] = median(consumer["wait_ns"] / consumer["step_ns"] for consumer in seen)
    # the first sample is left out: the first step traces
    assert shares["ready"] < 0.1, shares
    assert shares["slow"] == pytest.approx(1 - lengths_ms["ready"] / lengths_ms["slow"], abs=0.1), lengths_ms
    assert shares["loop"] == pytest.approx(1 - 6.3 / lengths_ms["loop"], abs=0.1), lengths_ms
