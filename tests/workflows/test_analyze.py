from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

import advisor
from advisor.model.codec import encode
from advisor.model.errors import AdvisorError
from advisor.model.settings import Settings
from advisor.workflows.analyze import Choice, Request, analyze_run, load
from advisor.workflows.saved_recording import read_recording

DATA = Path(__file__).parents[1] / "data"


def test_options_win_over_settings(tmp_path):
    (tmp_path / "pyproject.toml").write_text("[tool.advisor]\nsteps = 5\nwarmup = 6\nallow = ['reordered']\n")
    script = tmp_path / "train.py"
    script.touch()
    _, settings = load(Request(path=script, steps=7, warmup=0))
    assert (settings.steps, settings.warmup, settings.seconds, settings.allow) == (7, 0, None, ("reordered",))


def test_settings_of_a_script_are_those_of_its_folder(tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    (tmp_path / "here/pyproject.toml").write_text("[tool.advisor]\nsteps = 1\n")
    (tmp_path / "there").mkdir()
    (tmp_path / "there/pyproject.toml").write_text("[tool.advisor]\nsteps = 2\n")
    (tmp_path / "there/train.py").touch()
    monkeypatch.chdir(tmp_path / "here")
    assert load(Request(path=Path("../there/train.py")))[1].steps == 2
    assert load(Request(module="train"))[1].steps == 1
    assert load(Request(path=DATA / "keras_fit"))[1].steps == 1


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
    report = analyze_run(run, [], Settings())
    assert [call.method for call in report.analysis.calls] == ["range", "shuffle", "map", "batch"]
    assert not any(call.site for call in report.analysis.calls)
    assert report.analysis.target == str(run)
    assert report.run_folder == ""


def test_a_source_that_does_not_fit_leaves_the_inferred_calls(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    script = tmp_path / "train.py"
    script.write_text("ds = tf.data.Dataset.range(9).batch(8)\n")
    profile = shutil.copy(DATA / "interleave_forms/reader_class.xplane.pb.gz", tmp_path)
    report = analyze_run(Path(profile), [], Settings(), Choice(source=script))
    calls = {it.name: [call.method for call in it.calls] for it in report.analysis.main.iterators}
    assert (calls["BatchV2"], calls["Interleave"]) == (["batch"], ["interleave"])
    assert not any(call.site for call in report.analysis.calls)
    assert any("No dataset in train.py has the structure" in warning for warning in report.warnings)


def test_recording_without_a_profile_is_still_told(tmp_path):
    """A script that builds no dataset leaves no profile."""
    recording = read_recording(DATA / "keras_fit")
    assert recording is not None
    (tmp_path / "recording.json").write_bytes(encode(replace(recording, window=None, consumers=(), calls=(), steps=())))
    report = analyze_run(tmp_path, [], Settings())
    assert not report.analysis.verdict.is_input_bound
    assert report.analysis.verdict.sentence


def test_damaged_recording_is_one_sentence(tmp_path):
    (tmp_path / "recording.json").write_text('{"target": 3}')
    with pytest.raises(AdvisorError, match=r"recording\.json is damaged"):
        analyze_run(tmp_path, [], Settings())


RUN = "2026_11_21_05_22_17"


@pytest.mark.long
@pytest.mark.parametrize(
    "below",
    ["", "logs", f"logs/advisor-2/plugins/profile/{RUN}", f"logs/advisor-2/plugins/profile/{RUN}/host.xplane.pb.gz"],
)
def test_a_logdir_of_run_folders_is_read_with_the_recording_of_the_newest(tmp_path, below):
    shutil.copytree(DATA / "mirrored", tmp_path / "logs/advisor-0")
    shutil.copytree(DATA / "keras_fit", tmp_path / "logs/advisor-2")
    (tmp_path / "logs/advisor-0/plugins/profile/2026_11_21_05_22_29").rename(
        tmp_path / "logs/advisor-0/plugins/profile/2026_01_01_00_00_00"
    )
    (tmp_path / "logs/advisor-0/report.json").write_text("mine")
    report = advisor.analyze(tmp_path / below)
    assert report.analysis.calls == analyze_run(DATA / "keras_fit", [], Settings()).analysis.calls
    assert any(call.site for call in report.analysis.calls)
    assert report.run_folder == str(tmp_path / "logs/advisor-2")
    assert (tmp_path / "logs/advisor-2/report.json").exists()
    assert (tmp_path / "logs/advisor-0/report.json").read_text() == "mine"
    assert sorted(path.name for path in (tmp_path / "logs").iterdir()) == ["advisor-0", "advisor-2"]


def test_what_others_add_to_a_run_folder_has_no_recording(tmp_path):
    run = shutil.copytree(DATA / "keras_fit", tmp_path / "run")
    profiles = run / "plugins/profile"
    shutil.copytree(profiles / RUN, profiles / "2027_01_01_00_00_00")
    added = analyze_run(run, [], Settings())
    assert not any(call.site for call in added.analysis.calls)
    assert any("belongs to an older run" in warning for warning in added.warnings)
    assert added.run_folder == "", "its report is not written over the recorded run's"
    assert any(call.site for call in analyze_run(run, [], Settings(), Choice(RUN)).analysis.calls)


def test_a_run_folder_whose_profile_was_deleted_is_one_sentence(tmp_path, capsys):
    from advisor.cli import main

    run = Path(shutil.copytree(DATA / "keras_fit", tmp_path / "run"))
    (profile,) = run.rglob("*.xplane.pb*")
    profile.unlink()
    assert main(["analyze", str(run)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"The profile of the run {run} is missing" in line
    assert "restore it or run the script again" in line
    shutil.rmtree(run / "plugins")
    with pytest.raises(AdvisorError, match="is missing"):
        analyze_run(run, [], Settings())
