from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

import advisor
from advisor import phases
from advisor.errors import AdvisorError
from advisor.model.codec import encode
from advisor.settings import Settings

DATA = Path(__file__).parent / "data"


def test_options_win_over_settings(tmp_path):
    (tmp_path / "pyproject.toml").write_text("[tool.advisor]\nsteps = 5\nwarmup = 6\nallow = ['reordered']\n")
    script = tmp_path / "train.py"
    script.touch()
    _, settings = phases.load(phases.Request(path=script, steps=7, warmup=0))
    assert (settings.steps, settings.warmup, settings.seconds, settings.allow) == (7, 0, None, ("reordered",))


def test_settings_of_a_script_are_those_of_its_folder(tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    (tmp_path / "here/pyproject.toml").write_text("[tool.advisor]\nsteps = 1\n")
    (tmp_path / "there").mkdir()
    (tmp_path / "there/pyproject.toml").write_text("[tool.advisor]\nsteps = 2\n")
    (tmp_path / "there/train.py").touch()
    monkeypatch.chdir(tmp_path / "here")
    assert phases.load(phases.Request(path=Path("../there/train.py")))[1].steps == 2
    assert phases.load(phases.Request(module="train"))[1].steps == 1
    assert phases.load(phases.Request(path=DATA / "keras_fit"))[1].steps == 1


def test_python_api_reads_a_saved_run(tmp_path):
    run = shutil.copytree(DATA / "keras_fit", tmp_path / "run")
    report = advisor.analyze(run)
    assert report.analysis.verdict.is_input_bound
    assert report.run_folder == str(run)
    assert advisor.analyze(str(run)).analysis.verdict == report.analysis.verdict


def test_python_api_raises_one_sentence():
    with pytest.raises(AdvisorError, match="There is no"):
        advisor.analyze("absent.py")


def test_calls_of_a_bare_profile_are_inferred_and_have_no_lines(tmp_path):
    run = Path(shutil.copytree(DATA / "keras_fit", tmp_path / "run"))
    (run / "recording.json").unlink()
    report = phases.analyze_run(run, [], Settings())
    assert [call.method for call in report.analysis.calls] == ["range", "shuffle", "map", "batch"]
    assert not any(call.site for call in report.analysis.calls)
    assert report.analysis.target == str(run)
    assert report.run_folder == ""


def test_recording_without_a_profile_is_still_told(tmp_path):
    """A script that builds no dataset leaves no profile."""
    recording = phases.read_recording(DATA / "keras_fit")
    assert recording is not None
    (tmp_path / "recording.json").write_bytes(encode(replace(recording, window=None, consumers=(), calls=(), steps=())))
    report = phases.analyze_run(tmp_path, [], Settings())
    assert not report.analysis.verdict.is_input_bound
    assert report.analysis.verdict.sentence


def test_damaged_recording_is_one_sentence(tmp_path):
    (tmp_path / "recording.json").write_text('{"target": 3}')
    with pytest.raises(AdvisorError, match=r"recording\.json is damaged"):
        phases.analyze_run(tmp_path, [], Settings())
