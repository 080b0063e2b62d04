"""What becomes of scripts that end by themselves, in every way a script can end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from advisor.capture.launch import capture
from advisor.capture.request import CaptureRequest
from advisor.model.errors import AdvisorError, ScriptFailed
from tests.capture.conftest import LOOP, plain, write


def test_a_script_without_tensorflow_never_loads_it(watch):
    run = watch(
        """
        import sys
        print("hello", sys.argv[1:], "tensorflow" in sys.modules, "numpy" in sys.modules)
    """,
        "--n",
        "3",
    )
    assert run.out == "hello ['--n', '3'] False False\n"
    assert run.recording.calls == () and run.recording.consumers == () and run.recording.window is None
    assert run.recording.script_exit.kind == "finished"
    assert run.recording.host.tensorflow_version == ""
    assert run.progress[0].phase == "starting" and run.progress[-1].phase == "finishing"


@pytest.mark.long
def test_the_script_sees_what_it_would_see_without_us(watch, tmp_path):
    text = """
        import os, sys, __main__
        print(sys.argv, sys.path[0], __file__, __name__, __spec__, __package__, os.getcwd(), __main__.__file__)
        print(sorted(n for n in globals() if n not in ("os", "sys", "__main__", "__annotations__")), type(__loader__).__name__)
        print(sys.stdin.read())
        if __name__ == "__main__":
            print("main")
    """
    run = watch(text, "a", "-m", "--out", "b")
    assert run.out == plain(tmp_path / "train.py", "a", "-m", "--out", "b").stdout


def test_exit_codes_are_kept(watch):
    assert watch("import sys; sys.exit(0)").recording.script_exit.kind == "exited"
    with pytest.raises(ScriptFailed, match="exit code 3"):
        watch("import sys; sys.exit(3)")


def test_a_failing_script_shows_its_own_traceback_only(watch, tmp_path, capsys):
    text = """
        def f(x):
            return 1 / x
        def g():
            try:
                f(0)
            except ZeroDivisionError as error:
                raise ValueError("first line\\nsecond line") from error
        g()
    """
    with pytest.raises(ScriptFailed, match="ValueError: first line"):
        watch(text)
    assert capsys.readouterr().err == plain(tmp_path / "train.py").stderr


@pytest.mark.tensorflow
@pytest.mark.long
def test_a_script_that_fails_after_the_measured_steps_is_reported(watch):
    """They may have been those of `adapt`, so that the training was never seen."""
    run = watch(LOOP + 'loop(3)\nraise ValueError("no model")\n')
    assert run.recording.window is not None
    warning = (
        "The script failed (ValueError: no model) after the measured steps: if these are not its training, correct it "
    )
    assert any(text.startswith(warning) for text in run.recording.warnings)


@pytest.mark.long
def test_a_syntax_error_looks_as_python_shows_it(watch, tmp_path, capsys):
    with pytest.raises(ScriptFailed, match="SyntaxError"):
        watch("x = (\n")
    assert capsys.readouterr().err == plain(tmp_path / "train.py").stderr


def test_a_missing_script_is_one_sentence(tmp_path):
    with pytest.raises(AdvisorError, match=r"no file .*nowhere\.py"):
        capture(CaptureRequest(out=tmp_path / "run", script=tmp_path / "nowhere.py"), lambda _: None)
    assert not (tmp_path / "run").exists()


def test_a_module_runs_as_with_dash_m(tmp_path, monkeypatch):
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "__init__.py").write_text("")
    (tmp_path / "pkg" / "part.py").write_text("value = 7")
    write(
        tmp_path / "pkg",
        """
        import sys
        from .part import value
        print(value, sys.argv, __name__, __spec__.name, __package__, sys.path[0])
    """,
        "train.py",
    )
    monkeypatch.chdir(tmp_path)
    out = capture(CaptureRequest(out=tmp_path / "run", module="pkg.train", args=("x",)), lambda _: None)
    expected = subprocess.run([sys.executable, "-m", "pkg.train", "x"], capture_output=True, text=True, check=True)
    assert (out / "script.out").read_text() == expected.stdout


@pytest.mark.long
def test_tensorflow_that_is_not_installed_is_one_sentence(watch):
    text = """
        import sys
        sys.modules["tensorflow"] = None
        import tensorflow
    """
    with pytest.raises(AdvisorError):
        watch(text)
    # the same words that Python says when the package is absent
    with pytest.raises(AdvisorError, match=r"pip install tensorflow .*tfdata-advisor\[tensorflow\]"):
        watch("""raise ModuleNotFoundError("No module named 'tensorflow'", name="tensorflow")""")


@pytest.mark.long
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_of_the_script_are_left_alone(watch, method):
    run = watch(f"""
        import multiprocessing as mp, os, sys
        print("top", __name__, flush=True)
        def work(x):
            return x * x
        if __name__ == "__main__":
            with mp.get_context("{method}").Pool(2) as pool:
                print(pool.map(work, range(5)))
    """)
    assert "[0, 1, 4, 9, 16]" in run.out
    tops = [line for line in run.out.splitlines() if line.startswith("top")]
    assert tops.count("top __main__") == 1
    assert set(tops[1:]) == ({"top __mp_main__"} if method == "spawn" else set())


@pytest.mark.long
def test_a_daemon_that_outlives_the_script_does_not_hold_us_up(watch):
    started = time.monotonic()
    watch("""
        import subprocess, sys
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(30)"], close_fds=False)
    """)
    assert time.monotonic() - started < 15


@pytest.mark.long
def test_the_working_folder_may_change(watch):
    run = watch("import os, tempfile; os.chdir(tempfile.gettempdir())")
    assert run.recording.script_exit.kind == "finished" and run.recording.cwd == str(run.folder.parent)


def test_ctrl_c_ends_the_script_and_leaves_nothing(tmp_path):
    script = write(
        tmp_path,
        """
        import time
        try:
            print("up", flush=True)
            time.sleep(60)
        finally:
            open("cleaned", "w").close()
    """,
    )
    program = (
        "from pathlib import Path; from advisor.capture.launch import capture;"
        "from advisor.capture.request import CaptureRequest as R;"
        f"capture(R(out=Path('run'), script=Path({str(script)!r}), in_place=True), lambda p: None)"
    )
    command = [sys.executable, "-c", program]
    parent = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, start_new_session=True)
    deadline = time.monotonic() + 20
    while not ((tmp_path / "run" / "script.out").exists() and (tmp_path / "run" / "script.out").read_text()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    os.killpg(parent.pid, signal.SIGINT)
    parent.wait(timeout=20)
    assert (tmp_path / "cleaned").exists()
    assert not (tmp_path / "run").exists()
    assert parent.returncode != 0


@pytest.mark.long
def test_show_output_goes_to_our_stderr(tmp_path):
    script = write(tmp_path, "import sys; print('to out'); print('to err', file=sys.stderr)")
    program = (
        "import sys; from pathlib import Path; from advisor.capture.launch import capture;"
        "from advisor.capture.request import CaptureRequest as R;"
        f"capture(R(out=Path('run'), script=Path({str(script)!r}), show_output=True), lambda p: None)"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "" and "to out" in done.stderr and "to err" in done.stderr


@pytest.mark.long
@pytest.mark.tensorflow
def test_a_script_that_ends_early_uses_what_there_is(watch):
    run = watch(LOOP + "loop(0.8)\nprint('end')\n")
    assert run.out.endswith("end\n")
    assert run.recording.script_exit.kind == "finished"
    window = run.recording.window
    assert window is not None and window.closed_by == "script ended" and window.steps > 20
    assert len(run.profiles) == 1


@pytest.mark.long
@pytest.mark.tensorflow
def test_one_step_gives_no_window_but_its_step(watch):
    run = watch(LOOP + "for x in ds.take(1): pass\n")
    assert run.recording.window is None and run.profiles == []
    assert len(run.steps.start_ns) == 1


@pytest.mark.long
@pytest.mark.tensorflow
def test_datasets_without_a_consumer(watch):
    run = watch("import tensorflow as tf\nds = tf.data.Dataset.range(3).batch(2)\n")
    assert [c.method for c in run.recording.calls] == ["range", "batch"]
    assert run.recording.consumers == () and run.recording.window is None


@pytest.mark.long
@pytest.mark.tensorflow
def test_a_crash_inside_a_map_function_shows_no_frame_of_ours(watch, tmp_path, capsys):
    with pytest.raises(ScriptFailed, match="NameError"):
        watch("""
            import tensorflow as tf
            def f(x):
                return undefined_name
            tf.data.Dataset.range(3).map(f)
        """)
    assert str(Path(__file__).parents[2] / "advisor") not in capsys.readouterr().err


@pytest.mark.long
@pytest.mark.tensorflow
def test_a_script_that_profiles_itself_goes_first(watch, tmp_path):
    run = watch(
        LOOP
        + """
loop(0.5)
tf.profiler.experimental.start("theirs")
loop(0.5)
tf.profiler.experimental.stop()
with tf.profiler.experimental.Profile("theirs2"):
    loop(0.3)
loop(60)
""",
        in_place=True,
    )
    assert list(tmp_path.glob("theirs/plugins/profile/*/*.xplane.pb"))
    assert list(tmp_path.glob("theirs2/plugins/profile/*/*.xplane.pb"))
    assert len(run.profiles) == 1 and run.recording.window.steps >= 20
    assert any("profiler itself" in w for w in run.recording.warnings)
