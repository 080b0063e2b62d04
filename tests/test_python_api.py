"""The public Python API: what is exported, which arguments are refused, and the examples in the docstrings."""

from __future__ import annotations

import doctest
import inspect
import shutil
import subprocess
import sys
import typing
from pathlib import Path

import pytest

import advisor

DATA = Path(__file__).parent / "data"
TRAIN = """import sys, time
import tensorflow as tf
def slow(x):
    return tf.reduce_sum(tf.random.uniform([200, 200]) @ tf.random.uniform([200, 200])) + tf.cast(x, tf.float32)
assert sys.argv[1:] == ["--batch-size", "32"]
for batch in tf.data.Dataset.range(100_000).map(slow).batch(8):
    time.sleep(0.001)
"""
WITHOUT_TENSORFLOW = ("analyze", "analyze_run", "uninstall")
WITH_TENSORFLOW = (
    "analyze_script", "analyze_dataset", "analyze_function", "optimize", "watch", "AdvisorCallback", "install",
)  # fmt: skip
LONG = ("analyze_script", "analyze_dataset", "analyze_function", "optimize")
TYPES = ("AdvisorError", "Finding", "Fix", "Report", "Safety", "ScriptFailed")


@pytest.fixture
def working_folder(tmp_path, monkeypatch):
    """What the examples take for granted: a saved run `run` and a script `train.py` in the current folder."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    shutil.copytree(DATA / "tf_function_loop", tmp_path / "run")
    (tmp_path / "train.py").write_text(TRAIN)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run_examples(name):
    """Fails with doctest's own report; an object without examples fails as well."""
    tests = doctest.DocTestFinder(recurse=False).find(getattr(advisor, name), name, globs={})
    assert sum(len(test.examples) for test in tests) > 1, f"{name} has no example"
    runner = doctest.DebugRunner(optionflags=doctest.ELLIPSIS, verbose=False)
    for test in tests:
        try:
            runner.run(test)
        except doctest.DocTestFailure as failure:
            pytest.fail(f"{name}: {failure.example.source} gave {failure.got}, not {failure.example.want}")


@pytest.mark.parametrize("name", WITHOUT_TENSORFLOW)
def test_docstring_examples(name, working_folder):
    run_examples(name)


@pytest.mark.tensorflow
@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.long) if n in LONG else n for n in WITH_TENSORFLOW])
def test_docstring_examples_with_tensorflow(name, working_folder):
    shutil.rmtree(working_folder / "run")  # `analyze_script` makes it
    run_examples(name)


def test_every_export_is_tested_and_listed():
    assert set(advisor.__all__) == {*WITHOUT_TENSORFLOW, *WITH_TENSORFLOW, *TYPES, "__version__"}
    assert set(advisor.__all__) <= set(dir(advisor))
    assert all(hasattr(advisor, name) for name in advisor.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = advisor.nothing


def test_every_argument_is_documented():
    for name in (*WITHOUT_TENSORFLOW, *WITH_TENSORFLOW):
        documented = inspect.getdoc(getattr(advisor, name)) or ""
        for parameter in inspect.signature(getattr(advisor, name)).parameters:
            assert f"\n    {parameter}: " in documented, f"{name}: {parameter}"


def test_the_types_are_the_ones_that_the_phases_use():
    from advisor.model.errors import AdvisorError, ScriptFailed
    from advisor.model.finding import Finding, Fix, Safety
    from advisor.model.outcome import Report

    assert (advisor.AdvisorError, advisor.Finding, advisor.Fix) == (AdvisorError, Finding, Fix)
    assert (advisor.Report, advisor.Safety, advisor.ScriptFailed) == (Report, Safety, ScriptFailed)
    assert advisor.Fix is vars(advisor)["Fix"], "looked up once"


def test_importing_the_advisor_imports_no_dependency():
    program = (
        "import sys; before = set(sys.modules); import advisor; dir(advisor);"
        "print(sorted(name for name in set(sys.modules) - before"
        " if name.split('.')[0] not in sys.stdlib_module_names))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['advisor', 'advisor.model', 'advisor.model.version']"


class FakeDataset:
    """Looks like a `tf.data.Dataset` to `advisor.analyze`."""

    element_spec = _variant_tensor = None


@pytest.mark.parametrize(
    ("target", "kind", "refused"),
    [
        ("run", "a saved run", {"args": ["x"], "steps": 0, "warmup": 0, "seconds": 1, "to_end": True, "ceiling": True}),
        ("train.py", "a script", {"run": "newest", "hosts": ["host"], "source": "train.py"}),
        (FakeDataset(), "a dataset", {"args": [1], "out": "logs", "steps": 1, "run": "newest", "ceiling": True}),
        (print, "a function", {"rules": ["rules"], "seconds": 1, "to_end": True, "in_place": True, "hosts": ["host"]}),
    ],
)  # fmt: skip
def test_analyze_refuses_arguments_that_do_not_apply(target, kind, refused, working_folder):
    before = sorted(working_folder.iterdir())
    for name, value in refused.items():
        with pytest.raises(TypeError, match=f"^advisor.analyze: '{name}' does not apply to {kind}\\.$"):
            advisor.analyze(target, **{name: value})
    assert sorted(working_folder.iterdir()) == before, "nothing was run or written"


def test_arguments_at_their_defaults_are_not_refused(working_folder):
    report = advisor.analyze("run", [], rules=[], steps=None, to_end=False, hosts=())
    assert report.findings


def test_analyze_has_an_overload_with_exactly_the_arguments_of_each_function():
    overloads = [list(inspect.signature(case).parameters)[1:] for case in typing.get_overloads(advisor.analyze)]
    functions = (advisor.analyze_script, advisor.analyze_run, advisor.analyze_dataset, advisor.analyze_function)
    assert overloads == [list(inspect.signature(function).parameters)[1:] for function in functions]


def test_a_target_of_the_wrong_kind_is_refused(working_folder):
    for call, target, words in (
        (advisor.analyze_script, "run", "run is a saved run, not a script: call advisor.analyze_run"),
        (advisor.analyze_run, "train.py", r"train\.py is a script, not a saved run: call advisor.analyze_script"),
        (advisor.analyze_script, "absent.py", r"There is no absent\.py"),
        (advisor.analyze_run, "absent", "There is no absent"),
        (advisor.analyze_dataset, [1, 2], r"takes a tf\.data\.Dataset here, not a list"),
        (advisor.analyze_function, 3, "takes a function, not a int"),
        (advisor.analyze, 3, r"takes a path, a tf\.data\.Dataset or a function, not a int"),
    ):
        with pytest.raises(advisor.AdvisorError, match=words):
            call(target)


def test_script_arguments_are_a_sequence():
    with pytest.raises(TypeError, match="not a string"):
        advisor.analyze_script("train.py", "--batch-size 32")


def test_a_saved_run_is_read_host_by_host_and_reported_elsewhere(working_folder):
    shutil.copytree(DATA / "mirrored", working_folder / "logs/one")
    name = next((working_folder / "logs/one/plugins/profile").iterdir()).name
    report = advisor.analyze_run("logs/one", out="report", run=name)
    assert (working_folder / "report/report.json").is_file() and report.analysis.hosts is None
    with pytest.raises(advisor.AdvisorError, match="nowhere"):
        advisor.analyze_run("logs/one", hosts=["nowhere"])
