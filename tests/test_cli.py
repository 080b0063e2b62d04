from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from advisor.cli import COMMANDS, main

DATA = Path(__file__).parent / "data"
RUN = DATA / "keras_fit"
HEALTHY = DATA / "model_bound"
HEAVY = (
    "tensorflow",
    "keras",
    "numpy",
    "networkx",
    "rich",
    "libcst",
    "google.protobuf",
    "msgspec",
    "platformdirs",
    "loky",
)


@pytest.fixture
def run(tmp_path):
    """A copy of a recorded run: analysing a run folder writes its report.json."""
    return Path(shutil.copytree(RUN, tmp_path / "run", ignore=shutil.ignore_patterns("report.json")))


def command(*args, **options):
    return subprocess.run([sys.executable, "-m", "advisor", *map(str, args)], capture_output=True, text=True, **options)


def imported(code):
    """The modules that stand in memory after `code`."""
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys; print('\\n'.join(sys.modules), file=sys.stderr)"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return {name for name in done.stderr.split() if name}


def test_help_imports_nothing_heavy():
    modules = imported("from advisor.cli import main; main(['--help'])")
    assert not modules & set(HEAVY)


def test_analysis_of_a_saved_run_imports_no_tensorflow(run):
    modules = imported(f"from advisor.cli import main; assert main(['analyze', {str(run)!r}]) == 0")
    assert "numpy" in modules
    assert not {name for name in modules if name.split(".")[0] in ("tensorflow", "keras", "tensorflow_datasets")}


@pytest.mark.timed
def test_help_is_instant():
    seconds = min(timed("--help") for _ in range(5))
    assert seconds < 0.5


def timed(*args):
    begin = time.perf_counter()
    assert command(*args).returncode == 0
    return time.perf_counter() - begin


def test_version():
    import advisor

    done = command("--version")
    assert (done.returncode, done.stdout) == (0, f"advisor {advisor.__version__}\n")


def test_only_what_exists_is_listed(capsys):
    assert main(["--help"]) == 0
    listed = [line.split()[0] for line in capsys.readouterr().out.partition("Commands:")[2].splitlines() if line]
    assert listed == list(COMMANDS)


def test_saved_run_gets_its_report(run, capsys):
    assert main(["analyze", str(run)]) == 0
    out, err = capsys.readouterr()
    assert "keras_fit.py:16 .map(augment)" in out
    assert err == ""
    assert json.loads((run / "report.json").read_text())["verdict"]["input_bound"] is True


def test_read_only_run_is_still_analysed(run, capsys):
    if os.geteuid() == 0:
        (run / "report.json").mkdir()  # root may write anywhere, but not over a folder
    else:
        run.chmod(0o500)
    assert main(["analyze", str(run)]) == 0
    assert "augment" in capsys.readouterr().out
    run.chmod(0o700)


def test_nothing_is_written_beside_somebody_elses_profile(run, tmp_path, capsys):
    (run / "recording.json").unlink()
    before = sorted(run.rglob("*"))
    assert main(["analyze", str(run)]) == 0
    (profile,) = run.rglob("*.xplane.pb*")
    assert main(["analyze", str(profile)]) == 0
    assert sorted(run.rglob("*")) == before
    assert main(["analyze", "--out", str(tmp_path / "new/place"), str(profile)]) == 0
    assert (tmp_path / "new/place/report.json").is_file()


def test_dash_puts_only_json_on_stdout(run, capsys, validate):
    assert main(["analyze", "--json", "-", str(run)]) == 0
    out, err = capsys.readouterr()
    validate(json.loads(out))
    assert "keras_fit.py:16" in err


def test_json_to_a_file(run, tmp_path, capsys, validate):
    path = tmp_path / "r.json"
    assert main(["analyze", "--json", str(path), "--quiet", str(run)]) == 0
    validate(json.loads(path.read_text()))
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("options", "folder", "code"),
    [
        ([], RUN, 0),
        (["--fail-on", "input-bound"], RUN, 1),
        (["--fail-on", "input-bound"], HEALTHY, 0),
        (["--fail-on", "any"], HEALTHY, 0),
        (["--fail-on", "serial-map"], HEALTHY, 0),
        (["--fail-on", "serial-map", "--fail-on", "input-bound"], RUN, 1),
    ],
)
def test_fail_on(options, folder, code, tmp_path):
    copy = shutil.copytree(folder, tmp_path / "copy")
    assert main(["analyze", "--quiet", *options, str(copy)]) == code


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["analyze"], "Missing argument 'TARGET'"),
        (["analyze", "/not/there.py"], "There is no /not/there.py"),
        (["analyze", "--jsn", "-", "x"], "--json"),
        (["analyze", "--steps", "0", "x.py"], "--steps"),
        (["analyze", "--seconds", "soon", "x.py"], "'soon' is not a duration"),
        (["analyze", "--allow", "changes", "x.py"], "--allow"),
        (["analyze", "--fail-on", "serial-mop", RUN], "Did you mean serial-map?"),
        (["analyze", "--rules", "/not/there", RUN], "/not/there"),
        (["analyze", "--steps", "3", RUN], "--steps applies only to scripts"),
        (["analyze", "--to-end", RUN], "--to-end applies only to scripts"),
        (["analyze", RUN, "x"], "takes no arguments"),
        (["analyze", "-m"], "-m needs a module name"),
        (["analyze", "--json", "/not/there/r.json", RUN], "Cannot write /not/there/r.json"),
        (["analyze", "--json", "/dev/full", RUN], "No space left"),
        (["analyze", DATA / "scripts"], "contains no profile"),
        (["explain", "serial-mop"], "Did you mean serial-map?"),
        (["explain"], "RULE"),
        (["nalyze"], "nalyze"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(args, says, tmp_path, capfd):
    args = [shutil.copytree(arg, tmp_path / "copy", dirs_exist_ok=True) if arg is RUN else arg for arg in args]
    assert main(list(map(str, args))) == 2
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith("error: ")
    assert says in line


def test_a_mistake_on_the_command_line():
    done = command("analyze", "--jsn", "-", "x")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--json" in done.stderr


def test_wrong_settings_are_told_before_anything_is_run(tmp_path, monkeypatch, capsys):
    (tmp_path / "pyproject.toml").write_text("[tool.advisor]\nstep = 3\n")
    (tmp_path / "train.py").write_text("raise SystemError('ran')")
    assert main(["analyze", str(tmp_path / "train.py")]) == 2
    assert "Did you mean steps?" in capsys.readouterr().err


@pytest.mark.parametrize(
    "options", ["", *(pytest.param(options, marks=pytest.mark.long) for options in ("--json -", "--fail-on any"))]
)
def test_reader_that_leaves_ends_the_command_as_sigpipe_does(options, run):
    """Not with 1, which says that --fail-on matched, nor with 0, which says that it did not."""
    done = subprocess.run(
        f"{sys.executable} -m advisor analyze {options} {run} | true; echo ${{PIPESTATUS[0]}}",
        shell=True, executable="/bin/bash", capture_output=True, text=True,
    )  # fmt: skip
    assert done.stderr == "" or options == "--json -"
    assert "Traceback" not in done.stderr and "Exception" not in done.stderr
    assert done.stdout.splitlines()[-1] == "141"


@pytest.mark.long
def test_ascii_terminal(run):
    done = command("analyze", run, env={**os.environ, "COLUMNS": "100", "PYTHONIOENCODING": "ascii", "LC_ALL": "C"})
    assert done.returncode == 0
    assert done.stdout.isascii()
    assert "#" in done.stdout


def test_rules_lists_ids(capsys):
    assert main(["rules"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("serial-map ") for line in lines)
    assert all(line == line.rstrip() for line in lines)


def test_explain_prints_the_page(capsys):
    assert main(["explain", "serial-map"]) == 0
    out = capsys.readouterr().out
    for heading in ("Why it is slow", "What the fix does", "When not to", "Thresholds"):
        assert heading in out


@pytest.mark.parametrize("args", [["--help"], ["analyze", "--help"], ["explain", "-h"], ["rules", "-h"]])
def test_help_of_every_command(args, capsys):
    assert main(args) == 0
    assert "Usage: advisor" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("args", "target", "rest"),
    [
        (["s.py", "--json", "-h", "--", "-m"], "s.py", ("--json", "-h", "--", "-m")),
        (["--quiet", "s.py", "--quiet"], "s.py", ("--quiet",)),
        (["-m", "pkg.mod", "--json", "-"], "-m", ("pkg.mod", "--json", "-")),
        (["--json", "-", "-m", "pkg.mod", "-h"], "-m", ("pkg.mod", "-h")),
        (["--json=-", "-m", "pkg.mod", "--", "x"], "-m", ("pkg.mod", "--", "x")),
        (["--json", "-m", "s.py"], "s.py", ()),
        (["--", "s.py", "--", "x"], "s.py", ("--", "x")),
        (["--to-end", "--steps", "3", "-m", "mod"], "-m", ("mod",)),
    ],
)
def test_all_after_the_script_is_the_scripts(args, target, rest):
    from advisor.commands.analyze import command as analyze

    context = analyze.make_context("analyze", list(args))
    assert context.params["target"] == target
    assert context.params["args"] == rest


def test_a_bug_of_ours_does_not_look_like_a_match(run, monkeypatch, capsys):
    from advisor.workflows import analyze

    def buggy(*args):
        raise KeyError("p0.3")

    monkeypatch.setattr(analyze, "analyze", buggy)
    assert main(["analyze", str(run)]) == 2
    err = capsys.readouterr().err
    assert "KeyError" in err
    assert err.splitlines()[-1].startswith("error: This is a bug in advisor")


@pytest.mark.long
@pytest.mark.tensorflow
def test_script_is_run_watched_and_reported(tmp_path, validate):
    (tmp_path / "train.py").write_text(SCRIPT)
    done = command(
        "analyze", "--json", "-", "--out", "run", "--steps", "20", "train.py", "--json", "-h", "--", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    validate(report)
    main_pipeline = next(pipeline for pipeline in report["pipelines"] if pipeline["is_main"])
    assert main_pipeline["bottleneck"]["site"]["line"] == 5
    assert "train.py:5 .map(slow)" in done.stderr
    assert "['--json', '-h', '--']" in (tmp_path / "run/script.out").read_text()
    assert json.loads((tmp_path / "run/report.json").read_text()) == report
    # The saved run says the same, and a second run takes its place.
    again = command("analyze", "--json", "-", "run", cwd=tmp_path)
    assert json.loads(again.stdout)["pipelines"] == report["pipelines"]


@pytest.mark.long
@pytest.mark.timed
@pytest.mark.tensorflow
def test_ceiling_is_measured(tmp_path):
    (tmp_path / "train.py").write_text(SCRIPT)
    done = command("analyze", "--json", "-", "--ceiling", "--steps", "20", "--out", "run", "train.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    verdict = json.loads(done.stdout)["verdict"]
    assert verdict["is_ceiling_measured"] is True
    assert verdict["max_speedup"] > 1.5


@pytest.mark.tensorflow
def test_failed_script_shows_its_own_traceback_and_leaves_nothing(tmp_path):
    (tmp_path / "train.py").write_text("def f():\n    raise RuntimeError('of the user')\nf()\n")
    done = command("analyze", "--out", "run", "train.py", cwd=tmp_path)
    assert done.returncode == 3
    assert 'train.py", line 2, in f' in done.stderr
    assert "advisor/" not in done.stderr
    assert done.stderr.splitlines()[-1].startswith("error: train.py failed")
    assert not (tmp_path / "run").exists()


@pytest.mark.long
@pytest.mark.tensorflow
def test_script_that_fails_after_its_window_gets_report_and_traceback(tmp_path):
    (tmp_path / "train.py").write_text(SCRIPT + "    if len(seen) > 400: raise RuntimeError('of the user')\n")
    done = command("analyze", "--steps", "20", "--warmup", "5", "--to-end", "--out", "run", "train.py", cwd=tmp_path)
    assert done.returncode == 0
    assert "train.py:5 .map(slow)" in done.stdout
    assert "RuntimeError: of the user" in done.stderr
    assert "advisor/" not in done.stderr


@pytest.mark.long
def test_interrupt_is_130_and_leaves_nothing(tmp_path):
    began = tmp_path / "datasets" / "began"  # what is written there is not thrown away
    began.parent.mkdir()
    (tmp_path / "train.py").write_text(f"import time\nopen({str(began)!r}, 'w').close()\ntime.sleep(100)\n")
    child = subprocess.Popen(
        [sys.executable, "-m", "advisor", "analyze", "--out", "run", "train.py"],
        cwd=tmp_path, env={**os.environ, "TFDS_DATA_DIR": str(began.parent)}, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while not began.exists():
        assert child.poll() is None and time.monotonic() < deadline, "the script has not begun"
        time.sleep(0.1)
    os.killpg(child.pid, 2)
    _, err = child.communicate(timeout=60)
    assert child.returncode == 130
    assert err.splitlines()[-1] == "error: Interrupted."
    assert "Traceback" not in err
    assert not (tmp_path / "run").exists()


SCRIPT = """import sys, time
import tensorflow as tf
slow = lambda x: tf.reduce_sum(tf.random.uniform([400, 400]) @ tf.random.uniform([400, 400])) + tf.cast(x, tf.float32)
print(sys.argv[1:])
dataset = tf.data.Dataset.range(100_000).map(slow).batch(8)
seen = []
for batch in dataset:
    time.sleep(0.001)
    seen.append(len(seen))
"""
