"""`advisor.watch` and `advisor.AdvisorCallback` where things are not as in the examples."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

import advisor
from advisor.model.errors import AdvisorError
from tests.collecting import free_port, run_script

HEAD = """
import tensorflow as tf

def distort(index):
    return tf.sort(tf.random.normal((100, 100)), axis=0)[0]

def make():
    return tf.data.Dataset.range(10**6).map(distort).batch(4)
"""
KERAS = """
import keras
def pairs():
    return make().map(lambda x: (x, x[:, :1]))
model = keras.Sequential([keras.layers.Input((100,)), keras.layers.Dense(1)])
model.compile("sgd", "mse")
"""
SHORT = "warmup=5, steps=10"


def run(tmp_path, text, code=0):
    script = tmp_path / "train.py"
    script.write_text(textwrap.dedent(text))
    done = run_script(script)
    assert done.returncode == code, done.stderr
    return done


def test_importing_the_advisor_imports_and_hooks_nothing():
    program = (
        "import advisor, sys; advisor.analyze;"
        "print([m for m in ('tensorflow', 'numpy', 'rich', 'advisor.workflows.watch') if m in sys.modules], advisor.watch);"
        "print('tensorflow' in sys.modules, 'AfterImport' in repr(sys.meta_path));"
        "advisor.install(); print('tensorflow' in sys.modules, 'AfterImport' in repr(sys.meta_path));"
        "advisor.uninstall(); print('AfterImport' in repr(sys.meta_path))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert lines[0].startswith("[] <function watch") and lines[1:] == ["False False", "False True", "False"]


@pytest.mark.parametrize("make", ["watch", "AdvisorCallback"])
@pytest.mark.parametrize(("options", "words"), [({"steps": 0}, "steps"), ({"warmup": -1}, "warmup")])
def test_wrong_options_are_told_before_anything_runs(make, options, words):
    with pytest.raises(AdvisorError, match=words):
        getattr(advisor, make)(**options)


def test_a_logdir_that_is_a_file(tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(AdvisorError, match="is a file"):
        advisor.watch(tmp_path / "file" / "logs")


@pytest.mark.tensorflow
@pytest.mark.long
def test_loops_one_after_another_within_another_and_without_data(tmp_path):
    done = run(
        tmp_path,
        f"""
        import advisor
        from advisor import watch
        advisor.install()
        {textwrap.indent(HEAD, " " * 8)}
        dataset = make()
        iterator = iter(dataset)
        for _ in range(30): next(iterator)
        reports = []
        for _ in range(2):  # the iterator is older than the watch
            with watch("logs", {SHORT}, quiet=True) as run:
                for _ in range(40): next(iterator)
            reports.append(run)
        assert reports[0].folder != reports[1].folder and not reports[1].problem
        for watched in reports:
            assert watched.report.analysis.main.steps.count == 10, watched.report.analysis.main.steps
            (series,) = watched.report.analysis.recording.steps
            assert len(series.start_ns) == 40, "only the steps of this watch"
            assert watched.report.analysis.main.iterators[-1].long_name.endswith("Range")
            (site,) = [call.site for call in watched.report.analysis.calls if call.method == "map"]
            assert ".map(distort)" in open(__file__).readlines()[site.line - 1]
        with watch("logs", {SHORT}) as outer:
            with watch("logs") as inner:
                pass
            assert "Another part of this process" in inner.problem and inner.folder is None
        assert outer.report is None and "No dataset was consumed" in outer.problem
        try:
            with watch("logs", {SHORT}) as failing:
                for n, _ in enumerate(dataset):
                    if n == 40: raise ValueError("boom")
        except ValueError:
            pass
        assert failing.report.analysis.recording.script_exit.exception == "ValueError: boom"
        assert failing.report.analysis.recording.window.steps == 10
        tf.profiler.experimental.start("own")
        with watch("logs", {SHORT}, quiet=True) as blocked:
            for _ in range(40): next(iterator)
        tf.profiler.experimental.stop()
        assert "own profiler session" in blocked.report.analysis.verdict.sentence
        assert blocked.report.analysis.recording.window is None
        print("done")
        """,
    )
    assert "done" in done.stdout
    assert list((tmp_path / "own").glob("plugins/profile/*/*.xplane.pb")), "the program's own profile is whole"
    assert len(list((tmp_path / "logs").glob("advisor-*"))) == 4, "what measured nothing leaves no folder"


@pytest.mark.long
@pytest.mark.tensorflow
def test_a_capture_of_the_same_process_is_in_the_way(tmp_path):
    port = free_port()
    done = run(
        tmp_path,
        f"""
        import subprocess, sys, time
        from advisor import watch
        {textwrap.indent(HEAD, " " * 8)}
        tf.profiler.experimental.server.start({port})
        command = [sys.executable, "-m", "advisor", "capture", "localhost:{port}", "--no-report", "--out", "sampled"]
        with subprocess.Popen([*command, "--duration", "4s"]) as capture:
            time.sleep(2)
            with watch("logs", {SHORT}, quiet=True) as blocked:
                for _ in make().take(40): pass
        assert "being profiled already" in blocked.report.analysis.verdict.sentence
        tf.profiler.experimental.start("own")  # as if nothing had happened
        tf.profiler.experimental.stop()
        print("done")
        """,
    )
    assert done.stdout.endswith("done\n") and list((tmp_path / "sampled").rglob("*.xplane.pb"))


@pytest.mark.long
@pytest.mark.tensorflow
def test_keras_with_tensorboard_late_import_and_a_fit_that_fails(tmp_path):
    pytest.importorskip("tensorboard")
    done = run(
        tmp_path,
        f"""
        {textwrap.indent(HEAD + KERAS, " " * 8)}
        import advisor
        before = pairs()
        model.fit(before, steps_per_epoch=20, epochs=2, verbose=0, validation_data=pairs().take(2), callbacks=[
            advisor.AdvisorCallback("logs", {SHORT}), keras.callbacks.TensorBoard("logs", profile_batch=(2, 4))])
        advisor.install()
        class Fails(keras.callbacks.Callback):
            def on_train_batch_end(self, batch, logs=None):
                if batch == 40: raise ValueError("boom")
        caught = advisor.AdvisorCallback("logs", {SHORT}, quiet=True)
        try: model.fit(pairs(), steps_per_epoch=100, verbose=0, callbacks=[caught, Fails()])
        except ValueError: pass
        callback = advisor.AdvisorCallback("logs", {SHORT})
        class Check(keras.callbacks.Callback):
            def on_train_batch_begin(self, batch, logs=None):
                assert caught.report.analysis.main.steps.count == 10, "the next fit ends the watch of one that failed"
        print("second", flush=True)
        model.fit(pairs(), steps_per_epoch=100, verbose=0, callbacks=[callback, Check(), Fails()])
        """,
        code=1,
    )
    first, second = done.stdout.split("second\n")
    assert "made before `advisor.install()` was called" in first and "to avoid the script's session" in " ".join(
        first.split()
    )
    assert "the script's session" not in " ".join(second.split()), "what concerned the first fit only"
    assert "Measured: 10 steps" in first and "Measured: 10 steps" in second, "measured before it failed"
    assert "ValueError: boom" in done.stderr and "train.py" in second
    folders = sorted((tmp_path / "logs").glob("advisor-*"))
    recording = advisor.analyze(folders[0]).analysis.recording
    (main,) = [consumer for consumer in recording.consumers if consumer.is_main]
    assert main.kind == "keras.fit" and main.site.file.endswith("train.py") and recording.window.steps == 10
    assert list((tmp_path / "logs" / "train").glob("plugins/profile/*/*.xplane.pb")), (
        "TensorBoard's own profile is there"
    )


@pytest.mark.long
@pytest.mark.tensorflow
def test_under_analyze_it_stands_back(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(
        textwrap.dedent(f"""
        from advisor import watch
        {textwrap.indent(HEAD, " " * 8)}
        with watch("logs") as run:
            for _ in make().take(200): pass
        assert "already run by advisor" in run.problem
        """)
    )
    report = advisor.analyze(script, out=tmp_path / "run", steps=20, warmup=10, to_end=True)
    assert report.analysis.main.steps.count == 20 and report.analysis.recording.script_exit.kind == "finished"
    assert not (tmp_path / "logs").exists()
