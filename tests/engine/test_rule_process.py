"""Users' rules that exit, hang, print, crash or yield nonsense cost one row of the report and nothing else."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from advisor.cli import main

RUN = Path(__file__).parents[1] / "data" / "keras_fit"
RULE = '''
import itertools, os, re, signal, sys
from dataclasses import dataclass
from advisor.rule import Finding, Note, Prediction, Rule
from advisor.testing import batch, fires, map_, pipeline, source


@dataclass(frozen=True)
class Own(Rule):
    """Own."""

    def check(self, analysis):
{body}


EXAMPLES = (fires(pipeline(source(), map_("decode", ms=5), batch(32), consumer_ms=5, cores=4)),)
'''


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text("[tool.advisor]\nrule-seconds = 2\n")
    return Path(shutil.copytree(RUN, tmp_path / "run", ignore=shutil.ignore_patterns("report.*")))


def write_rule(folder, body, name="own"):
    folder.mkdir(exist_ok=True)
    text = "\n".join(f"        {line}" for line in body.splitlines())
    (folder / f"{name}.py").write_text(RULE.format(body=text))
    return folder


GOOD = 'yield self.finding("Look here", "it is slow", call=analysis.calls[0])'
HOSTILE = {
    "sys.exit(0)\nyield": "SystemExit: 0 (own.py:",
    "sys.exit('bye')\nyield": "SystemExit: bye (own.py:",
    "os._exit(0)\nyield": "ended its process (exit code 0)",
    "os.kill(os.getpid(), signal.SIGSEGV)\nyield": "ended its process (signal 11)",
    "while True: pass\nyield": "took longer than 2 s",
    "while True:\n    try:\n        while True: pass\n    except BaseException: pass\nyield": "took longer than 2 s",
    "sum(itertools.repeat(1))\nyield": "took longer than 2 s",
    "re.match('(a+)+b', 'a' * 60)\nyield": "took longer than 2 s",
    "yield from itertools.repeat(Note('again'))": "yielded more than 1,000",
    "raise BaseException('odd')\nyield": "BaseException: odd",
    "yield 3": "yielded a int, not a Finding",
    "yield Note(3)": "whose text is a int",
    'yield self.finding("a", "b", prediction=2.0)': "prediction is a float, not Prediction or None",
    'yield self.finding("a", "b", prediction=Prediction("2", 1, 3))': "prediction.value is a str, not float",
    'yield self.finding("a", "b", prediction=Prediction(float("nan"), 1.0, 3.0))': "must be finite",
    'yield self.finding(None, "b")': "title is a NoneType, not str",
    'yield self.finding("a", "b", evidence=("c",))': "evidence[0] is a str, not Evidence",
    'yield self.finding("a", "b", memory_bytes="1 GB")': "memory_bytes is a str, not int or None",
    'yield self.finding("a", "b", fix="ds.cache()")': "fix is a str, not Fix or None",
}


SLOW_ONES = {body for body, says in HOSTILE.items() if "took longer" in says and "BaseException" not in body}
SLOW_ONES |= {body for body in HOSTILE if body.startswith("yield self.finding") and "prediction=2.0" not in body}


@pytest.mark.parametrize("body", [
    pytest.param(body, marks=[pytest.mark.long] if body in SLOW_ONES else []) for body in HOSTILE
])  # fmt: skip
def test_it_is_a_row_and_the_gate_still_closes(body, run, tmp_path, capfd):
    write_rule(tmp_path / "rules", body)
    args = ["analyze", "--rules", "rules", "--fail-on", "input-bound", "--json", "-", "--quiet", str(run)]
    assert main(args) == 1, capfd.readouterr().err
    report = json.loads(capfd.readouterr().out)
    (error,) = report["rule_errors"]
    assert error["rule"] == "own" and HOSTILE[body] in error["message"]


@pytest.mark.long
def test_rules_after_one_that_ended_its_process_are_still_asked(run, tmp_path, capfd):
    write_rule(tmp_path / "rules", "os._exit(0)\nyield", "a")
    write_rule(tmp_path / "rules", GOOD, "b")
    assert main(["analyze", "--rules", "rules", "--json", "-", "--quiet", str(run)]) == 0
    report = json.loads(capfd.readouterr().out)
    assert [error["rule"] for error in report["rule_errors"]] == ["a"]
    assert "b" in [finding["rule"] for finding in report["findings"]]


@pytest.mark.long
def test_what_it_prints_goes_to_stderr(run, tmp_path):
    rules = write_rule(tmp_path / "rules", f"print('loud')\nos.write(1, b'louder')\nsys.stdout.write('x')\n{GOOD}")
    (rules / "own.py").write_text("print('loading')\n" + (rules / "own.py").read_text())
    done = subprocess.run(
        [sys.executable, "-m", "advisor", "analyze", "--rules", "rules", "--json", "-", "--quiet", str(run)],
        capture_output=True, text=True, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "own" in [finding["rule"] for finding in json.loads(done.stdout)["findings"]]
    assert "loud" in done.stderr and "louder" in done.stderr


@pytest.mark.long
@pytest.mark.parametrize("body", ["while True: pass\nyield", "sys.exit(0)\nyield", "sum(itertools.repeat(1))\nyield"])
def test_trying_its_examples_ends_and_fails(body, run, tmp_path, capfd):
    write_rule(tmp_path / "rules", body)
    assert main(["rules", "test", "rules"]) == 1
    assert "the rule failed" in capfd.readouterr().out


@pytest.mark.parametrize(
    ("line", "says"),
    [
        pytest.param("while True: pass", "took longer than 2 s", marks=pytest.mark.long),
        ("sys.exit(0)", "SystemExit: 0"),
        ("os._exit(0)", "ended its process (exit code 0)"),
    ],
)
def test_a_file_that_does_not_even_load_is_one_sentence(line, says, run, tmp_path, capfd):
    rules = write_rule(tmp_path / "rules", GOOD)
    (rules / "own.py").write_text(f"import os, sys\n{line}\n" + (rules / "own.py").read_text())
    for args in (["analyze", "--rules", "rules", str(run)], ["rules", "test", "rules"]):
        assert main(args) == 2
        out, err = capfd.readouterr()
        assert out == "" and says in err and "own.py" in err and len(err.splitlines()) == 1


@pytest.mark.long
def test_its_thresholds_hold_there_too(run, tmp_path, capfd):
    rules = write_rule(tmp_path / "rules", 'yield Note(f"limit {self.limit}")')
    text = (rules / "own.py").read_text()
    (rules / "own.py").write_text(text.replace('"""Own."""', '"""Own."""\n\n    limit: float = 1.0\n    """A."""'))
    (tmp_path / "pyproject.toml").write_text("[tool.advisor.rules.own]\nlimit = 7\n")
    assert main(["analyze", "--rules", "rules", "--json", "-", "--quiet", str(run)]) == 0
    assert "limit 7.0" in json.loads(capfd.readouterr().out)["notes"]


# ---- folders that are only read --------------------------------------------------------------------------------------


@pytest.fixture
def untrusted(run, tmp_path):
    """A folder from elsewhere: a run, and a pyproject.toml that names rules which leave a trace when loaded."""
    rules = write_rule(tmp_path / "rules", GOOD)
    (rules / "own.py").write_text(f"open({str(tmp_path / 'trace')!r}, 'w')\n" + (rules / "own.py").read_text())
    (tmp_path / "pyproject.toml").write_text(
        '[tool.advisor]\nrule-directories = ["rules"]\nignore = ["own"]\n[tool.advisor.rules.own]\nmin_speedup = 2.0\n'
    )
    return tmp_path


@pytest.mark.long
@pytest.mark.parametrize(
    "args",
    [
        ["analyze", "run"],
        ["analyze", "."],
        ["compare", "run", "run"],
        ["export", "run", "--to", "sarif"],
        ["export", "run", "--to", "csv", "--table", "verdicts"],
        ["rules"],
        ["explain", "serial-map"],
    ],
)
def test_rules_of_a_folder_that_is_only_read_are_not_loaded(args, untrusted, capfd):
    (untrusted / "run" / "plugins").rename(untrusted / "plugins") if args == ["analyze", "."] else None
    assert main(args) == 0, capfd.readouterr().err
    assert not (untrusted / "trace").exists()


def test_a_warning_says_how_to_load_them(untrusted, capfd):
    assert main(["analyze", "run"]) == 0
    out = " ".join(capfd.readouterr().out.split())
    assert "were not loaded: code of a folder that is only read is not run." in out
    assert f"--rules {untrusted / 'rules'} loads them." in out


def test_rules_that_the_command_names_are_loaded(untrusted, capfd):
    (untrusted / "pyproject.toml").write_text('[tool.advisor]\nrule-directories = ["rules"]\n')
    assert main(["analyze", "--rules", "rules", "run"]) == 0
    out = capfd.readouterr().out
    assert "Look here" in out and "not loaded" not in out
    assert (untrusted / "trace").exists()


def test_rules_of_the_scripts_own_project_are_loaded(untrusted):
    """The script is run as well."""
    from advisor.workflows.analyze import Request, load

    (untrusted / "pyproject.toml").write_text('[tool.advisor]\nrule-directories = ["rules"]\n')
    (untrusted / "train.py").write_text("")
    rules, settings = load(Request(path=untrusted / "train.py"))
    assert "own" in [loaded.id for loaded in rules]
    assert settings.unloaded_directories == ()


# ---- settings and reports that hold nonsense -------------------------------------------------------------------------


@pytest.mark.parametrize("value", ["nan", "-nan", "1" + "0" * 400])
def test_a_threshold_that_is_no_number_is_refused(value, run, tmp_path, capfd):
    (tmp_path / "pyproject.toml").write_text(f"[tool.advisor.rules.serial-map]\nmin_speedup = {value}\n")
    assert main(["analyze", str(run)]) == 2
    err = capfd.readouterr().err
    assert "serial-map.min_speedup" in err and "must be a number" in err


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "latin-1"])
def test_settings_that_are_not_utf8_are_told(encoding, run, tmp_path, capfd):
    text = '# gel\u00f6st\n[tool.advisor]\nignore = ["serial-map"]\n'
    (tmp_path / "pyproject.toml").write_bytes(text.encode(encoding))
    assert main(["analyze", str(run)]) == 2
    assert "is not UTF-8 text" in capfd.readouterr().err


TAMPERED = {
    "findings": [3, None, [3], [{}], [{"rule": 3}], "x"],
    "verdict": [None, [], {"sentence": 3}, "x"],
    "pipelines": [{}, [None], [{"iterators": 3}], 7],
    "fixes": [3, [None], [[]]],
    "advisor_version": [[], {}],
    "warnings": [3, [None]],
    "rule_errors": [3, [{}], ["x"]],
}


@pytest.mark.parametrize(
    "kind",
    [["sarif"], *(pytest.param(kind, marks=pytest.mark.long) for kind in (["markdown"], ["csv", "--out", "tables"]))],
)
@pytest.mark.parametrize(
    ("key", "value"),
    [
        pytest.param(key, value, marks=[pytest.mark.long] if number else [])
        for key, values in TAMPERED.items()
        for number, value in enumerate(values)
    ],
)
def test_a_tampered_report_is_no_bug_of_ours(kind, key, value, run, tmp_path, capfd):
    from tests.report.html.samples import proved

    (run / "report.json").write_text(json.dumps({**proved(), key: value}))
    code = main(["export", str(run), "--to", *kind])
    err = capfd.readouterr().err
    assert code in (0, 2) and "Traceback" not in err and "bug in advisor" not in err
    if code == 2:
        assert "damaged or was edited" in err and len(err.splitlines()) == 1
