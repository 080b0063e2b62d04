"""`advisor doctor`: what is broken is a line, and nothing in a line can act on the terminal."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import replace

import pytest

from advisor.cli import main
from advisor.commands import doctor as doctor_command
from advisor.host.calibration.stored import BUILT_IN, store_calibration
from advisor.model.calibration import Calibration
from advisor.model.errors import AdvisorError
from advisor.model.recording import Accelerator, Host
from advisor.model.tensorflow_facts import TensorFlowFacts
from advisor.workflows import doctor
from advisor.workflows.doctor import Check, Checkup

HOST = Host("a", 4.0, 8, 1 << 34, 1 << 33, cpu_model="EPYC", tensorflow_version="2.21.0")
FACTS = TensorFlowFacts(HOST, "/site/tensorflow", False, "", "")


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def by_name(checks):
    return {check.name: check for check in checks}


def test_tensorflow_that_works():
    checks = by_name(doctor._software(FACTS))
    assert checks["TensorFlow"].value == "2.21.0 (/site/tensorflow)"
    assert all(check.is_ok for check in checks.values())
    assert "without CUDA" in checks["libcupti"].value


def test_tensorflow_that_does_not():
    checks = by_name(doctor._software(AdvisorError("ImportError: libfoo.so: cannot open")))
    assert checks["TensorFlow"] == Check(
        "software", "TensorFlow", "cannot be imported: ImportError: libfoo.so: cannot open", is_ok=False
    )
    assert "libcupti" not in checks


def test_gpu_without_cupti_is_a_problem():
    host = replace(HOST, accelerators=(Accelerator("GPU", "T4"),))
    assert not by_name(doctor._software(replace(FACTS, host=host, is_built_with_cuda=True)))["libcupti"].is_ok
    assert by_name(doctor._software(replace(FACTS, is_built_with_cuda=True)))["libcupti"].is_ok, "no GPU, no need"


def test_profiler_that_fails():
    check = by_name(doctor._software(replace(FACTS, profiler_problem="it wrote no profile")))["its profiler"]
    assert check.value == "fails: it wrote no profile" and not check.is_ok


@pytest.mark.parametrize(
    ("quota", "memory", "expected"),
    [
        (None, None, "CPU none, memory none"),
        (1.5, 1 << 31, "CPU 1.5 cores, memory 2 GiB"),
        (1.0, None, "CPU 1 core, memory none"),
    ],
)
def test_limits_of_the_cgroup_are_shown_as_they_are(quota, memory, expected, monkeypatch):
    monkeypatch.setattr(doctor, "cgroup_limits", lambda: (quota, memory))
    assert by_name(doctor._machine(HOST))["cgroup limits"] == Check("machine", "cgroup limits", expected)


def test_costs_have_units_and_the_built_in_value_beside_them():
    measured = Calibration(next_ns=41_000.0, copied_bytes_per_ns=8.0, wakeup_ns=900.0, measured_on="2026-11-21")
    checks = by_name(doctor._calibration(HOST, measured, ""))
    assert checks["`next` with a prefetch"].value == "41 us (built in: 90 us)"
    assert re.fullmatch(r"7.45 GiB/s \(built in: 3.73 GiB/s\)", checks["copying into a batch"].value)
    assert checks["waking a thread"].value == "900 ns (not used by predictions)"
    assert checks["element to a thread and back"].value == "not measured; 15 us is used"


def test_every_cost_has_a_line():
    shown = by_name(doctor._calibration(HOST, BUILT_IN, ""))
    assert set(doctor.COST_NAMES.values()) <= set(shown)


def test_broken_tensorflow_is_a_line_and_the_page_is_complete(tmp_path, monkeypatch, capsys):
    """A module of that name that fails, in place of the installed one: the child process is real."""
    package = tmp_path / "site" / "tensorflow"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise ImportError('libfoo.so: \\x1b[31mgone')\n")
    monkeypatch.setenv("PYTHONPATH", str(package.parent))
    assert main(["doctor", "--json", "-"]) == 0
    page = json.loads(capsys.readouterr().out)
    lines = {check["name"]: check for check in page["checks"]}
    assert lines["TensorFlow"]["value"].startswith("cannot be imported: ImportError: libfoo.so")
    assert not lines["TensorFlow"]["is_ok"]
    assert {"advisor", "Python", "cores", "memory", "cgroup limits", "private view", "cache"} <= set(lines)
    assert page["calibration"] is None


def test_texts_are_neither_markup_nor_escapes(capsys, monkeypatch):
    checks = (Check("software", "Python", "[bold]3.11[/bold] \x1b[2J\x1b]8;;http://x\x07"),)
    monkeypatch.setenv("NO_COLOR", "1")
    doctor_command._print(Checkup(checks, None), doctor_command.console_for_people())
    out = capsys.readouterr().out
    assert "[bold]3.11[/bold]" in out and "\x1b" not in out and "\\x1b[2J" in out


def test_json_replaces_its_own_pages_only(tmp_path, monkeypatch):
    monkeypatch.setattr(doctor, "check_up", lambda *_: Checkup((Check("software", "advisor", "1"),), None))
    path = tmp_path / "page.json"
    for _ in range(2):
        assert main(["doctor", "--json", str(path)]) == 0
    assert json.loads(path.read_text("utf-8"))["checks"][0]["name"] == "advisor"
    path.write_text('{"mine": 1}')
    assert main(["doctor", "--json", str(path)]) == 2
    assert path.read_text() == '{"mine": 1}'


@pytest.mark.parametrize("text", ['{"checks": ["mine"]}', '["checks"]', '"checks"', "notes"])
def test_another_file_is_refused_before_anything_is_measured(text, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(doctor, "check_up", lambda *_: pytest.fail("it was measured first"))
    path = tmp_path / "page.json"
    path.write_text(text)
    assert main(["doctor", "--json", str(path)]) == 2
    assert path.read_text() == text
    assert "would overwrite" in capsys.readouterr().err


def test_known_costs_are_not_measured_again(monkeypatch):
    def fail(host):
        raise AssertionError("measured")

    monkeypatch.setattr(doctor, "probe_tensorflow", lambda: FACTS)
    monkeypatch.setattr(doctor, "measure_and_store", fail)
    store_calibration(HOST, BUILT_IN)
    assert doctor.check_up(False, lambda progress: None).calibration == BUILT_IN
    with pytest.raises(AssertionError, match="measured"):
        doctor.check_up(True, lambda progress: None)


@pytest.mark.long
@pytest.mark.tensorflow
def test_doctor_for_real(tmp_path):
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    done = subprocess.run(
        [sys.executable, "-m", "advisor", "doctor", "--json", "-"],
        env=environment, capture_output=True, text=True, timeout=500, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    page = json.loads(done.stdout)
    lines = {check["name"]: check["value"] for check in page["checks"]}
    assert lines["TensorFlow"].startswith("2.") and lines["its profiler"] == "works"
    calibration = page["calibration"]
    assert calibration["measured_on"]
    stored = list((tmp_path / "cache" / "tfdata-advisor").rglob("*.json"))
    if calibration["is_busy"]:  # other processes used the cores: nothing is kept
        assert stored == []
        assert lines["costs"].startswith("not measured: Other processes used")
    else:
        assert [str(path) for path in stored] == [lines["file"]]
        assert calibration["copied_bytes_per_ns"] or calibration["next_ns"], "at least one cost was believed"
