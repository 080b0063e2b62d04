"""The journal: every line that was written whole is read again, and no other file is taken for one."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import jsonschema
import msgspec
import pytest

from advisor.gate.attempts import MAX_BYTES, Trial, append_entry, read_journal
from advisor.model.errors import AdvisorError
from advisor.report.journal_format import FAILED, STOPPED
from advisor.report.json_format import read_schema
from tests.gate.made_journal import OPTIONS, PROOF, TRIAL, began, judged, write

OTHER_OPTIONS = ({"pipeline_only": False}, {"allow": ["reordered"]}, {"steps": 5}, {"warmup": 0}, {"seconds": 3.0})


@pytest.fixture
def path(tmp_path):
    return tmp_path / "advisor-journal.jsonl"


def test_lines_are_valid_and_read_as_they_were_written(path):
    entries = (began(), judged(), began("t2"), began("t2", event=FAILED, error="No.", exit_code=3, seconds=1.0))
    lines = write(path, *entries).splitlines()
    validate = jsonschema.Draft202012Validator(read_schema("journal.schema.json")).validate
    for line in lines:
        validate(json.loads(line))
    assert read_journal(path).entries == entries and read_journal(path).notes == ()
    assert json.loads(lines[1])["proof"]["verdict"] == "equal and faster"


def test_a_missing_file_is_an_empty_journal(path):
    assert read_journal(path).entries == () and not path.exists()


def test_lines_are_only_ever_appended(path):
    first = write(path, began())
    assert write(path, judged()).startswith(first)


@pytest.mark.long
def test_a_crash_at_any_byte_loses_the_line_that_it_cuts_and_no_other(path):
    whole = write(path, began(), judged())
    end = whole.index(b"\n") + 1
    for length in range(end, len(whole)):
        path.write_bytes(whole[:length])
        assert read_journal(path).entries[:1] == (began(),)
        append_entry(path, began("t2"))
        journal = read_journal(path)
        assert journal.entries[0] == began() and journal.entries[-1] == began("t2")
        is_whole = length == len(whole) - 1  # all but the line break
        assert len(journal.entries) == (3 if is_whole else 2)
        assert len(journal.notes) == (0 if is_whole or length == end else 1)


def test_a_crash_in_the_first_line(path):
    whole = write(path, began())
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        append_entry(path, began("t2"))
        assert read_journal(path).entries[-1] == began("t2")


def test_zeros_after_a_power_failure(path):
    path.write_bytes(write(path, began()) + bytes(4096))
    append_entry(path, judged())
    assert read_journal(path).entries == (began(), judged()) and len(read_journal(path).notes) == 1


def test_several_processes_may_write_at_once(path):
    names = [f"t{number}" for number in range(100)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: append_entry(path, judged(name)), names))
    journal = read_journal(path)
    assert sorted(entry.trial for entry in journal.entries) == sorted(names) and journal.notes == ()


def test_a_result_is_found_again(path):
    write(path, began(), judged())
    assert read_journal(path).result_of(TRIAL) == judged()
    assert read_journal(path).unfinished(TRIAL) is None


@pytest.mark.parametrize(
    "other",
    [
        Trial("c" * 64, TRIAL.diff, OPTIONS),
        Trial(TRIAL.base, "c" * 64, OPTIONS),
        *(Trial(TRIAL.base, TRIAL.diff, msgspec.structs.replace(OPTIONS, **option)) for option in OTHER_OPTIONS),
    ],
)
def test_a_result_of_another_trial_is_none(other, path):
    write(path, began(), judged())
    assert read_journal(path).result_of(other) is None


def test_the_latest_result_counts(path):
    write(path, judged("t1", proof=replace(PROOF, verdict="same")), judged("t2"))
    assert read_journal(path).result_of(TRIAL).verdict == "equal and faster"


def test_what_has_no_end_or_was_stopped_is_tried_again(path):
    write(path, began("t1"), began("t1", event=STOPPED, error="Interrupted."), began("t2"))
    journal = read_journal(path)
    assert journal.result_of(TRIAL) is None
    assert journal.unfinished(TRIAL).trial == "t2"
    write(path, judged("t2"))
    assert read_journal(path).unfinished(TRIAL) is None


def test_a_failure_is_a_result(path):
    write(path, began("t1", event=FAILED, error="With the change: no."))
    assert read_journal(path).result_of(TRIAL).error == "With the change: no."


@pytest.mark.parametrize(("budget_s", "is_known"), [(30.0, True), (60.0, True), (61.0, False)])
def test_with_more_time_it_may_be_possible_to_tell(budget_s, is_known, path):
    write(path, judged(proof=replace(PROOF, verdict="cannot tell", data="unknown")))
    trial = Trial(TRIAL.base, TRIAL.diff, msgspec.structs.replace(OPTIONS, budget_s=budget_s))
    assert (read_journal(path).result_of(trial) is not None) is is_known


def changed(**fields):
    """A line with other values."""
    data = json.loads(msgspec.json.encode(judged()))
    proof = {**data["proof"], **fields.pop("proof", {})}
    return json.dumps({**data, "proof": proof, **fields}, separators=(",", ":")).encode() + b"\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a note\n", "is not an advisor journal"),
        (b"\x00\xff\xfe\n", "is not an advisor journal"),
        (b'{"schema_version": 1, "advisor_version": "1", "target": "x"}\n', "damaged in line 1"),
        (b"[" * 100_000, "is not an advisor journal"),
        (b'{"schema_version":1,"event":"began"}\n', "damaged in line 1"),
        (b'{"schema_version":2,"event":"began"}\n', "another version"),
        (changed(event="done"), "damaged in line 1"),
        (changed(event="began"), "damaged in line 1"),
        (changed(trial=5), "damaged in line 1"),
        (changed(proof={"verdict": "\x1b[31mfaster"}), "damaged in line 1"),
        (changed(proof={"datasets": "none"}), "damaged in line 1"),
        (changed(options={}), "damaged in line 1"),
        (b'{"schema_version":1,"event":' + b" " * (2 << 20) + b"\n", "too long"),
        (b'{"schema_version":1,"event":' + b"[" * 100_000 + b"\n", "damaged in line 1"),
        (b'{"schema_version":1,"more":' + b"[" * 100_000 + b"\n", "damaged in line 1"),
    ],
)
def test_other_files_are_refused_in_one_sentence(content, message, path):
    path.write_bytes(changed() + content if message == "too long" else content)
    with pytest.raises(AdvisorError) as caught:
        read_journal(path)
    sentence = str(caught.value)
    assert message in sentence and sentence.endswith(".") and sentence.isprintable() and len(sentence) < 1000


@pytest.mark.parametrize("name", ["train.py", "notes.ipynb", "no/folder.jsonl", ".", "pipe", "huge", "link"])
def test_places_that_cannot_hold_a_journal(name, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "train.py")
    (tmp_path / "train.py").write_text("x = 1\n")
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    with pytest.raises(AdvisorError, match="--journal"):
        read_journal(tmp_path / name)
    assert (tmp_path / "train.py").read_text() == "x = 1\n"


def test_a_folder_that_is_gone(tmp_path):
    with pytest.raises(AdvisorError, match="cannot be written"):
        append_entry(tmp_path / "gone" / "journal.jsonl", began())


def test_names_that_are_not_unicode(path):
    write(path, began(target="train.py \udcff \x1b[31m"))
    assert read_journal(path).entries[0].target == "train.py ? \x1b[31m"
