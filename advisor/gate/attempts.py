"""The journal of `advisor prove`: what was tried and what came of it, one line of JSON per event, only ever appended to.

In: a file that the user names.  Out: its entries; further lines. A line is written at once and is on the disk before anything
else happens. One that a crash has cut short is passed over.
"""

from __future__ import annotations

import itertools
import json
import os
import re
from dataclasses import dataclass
from pathlib import Path

import msgspec

from advisor.model.atomic_file import sync_folder
from advisor.model.change_proof import CANNOT_TELL
from advisor.model.errors import AdvisorError
from advisor.model.outputs import SOURCE_SUFFIXES
from advisor.model.regular_files import open_regular
from advisor.model.text import printable
from advisor.report.change_json import change_of
from advisor.report.journal_format import BEGAN, EVENTS, FAILED, JUDGED, JournalEntry, TrialOptions
from advisor.report.json_format import SCHEMA_VERSION, to_dict

JOURNAL_NAME = "advisor-journal.jsonl"
"""The name that the documentation uses."""
MAX_BYTES = 64 << 20
"""Largest journal that is read: some 20 000 trials."""
MAX_LINE_BYTES = 1 << 20
_BLANK = b"\0 \t\r\n"
"""Zeros are what some file systems leave of a line after a power failure."""
_HEAD = b'{"schema_version":'
_VERSION = re.compile(re.escape(_HEAD) + rb"(\d{1,9}),")
_DECODER = msgspec.json.Decoder(JournalEntry)


@dataclass(frozen=True, slots=True)
class Trial:
    """What identifies a trial: two with the same values need not both be run."""

    base: str
    diff: str
    options: TrialOptions


@dataclass(frozen=True, slots=True)
class Journal:
    """The entries of a journal, oldest first."""

    entries: tuple[JournalEntry, ...] = ()
    notes: tuple[str, ...] = ()
    """Lines that were passed over, in sentences."""

    def result_of(self, trial: Trial) -> JournalEntry | None:
        """Return the latest result of a trial, a verdict or a failure; None if it has to be run.

        `cannot tell` counts only if the trial would have no more time now.
        """
        for entry in reversed(self.entries):
            is_too_short = entry.verdict == CANNOT_TELL and entry.options.budget_s < trial.options.budget_s
            if entry.event in (JUDGED, FAILED) and _is_of(entry, trial) and not is_too_short:
                return entry
        return None

    def unfinished(self, trial: Trial) -> JournalEntry | None:
        """Return the latest beginning of a trial, if it has no end."""
        ended = {entry.trial for entry in self.entries if entry.event != BEGAN}
        began = [entry for entry in self.entries if entry.event == BEGAN and _is_of(entry, trial)]
        return began[-1] if began and began[-1].trial not in ended else None


def _is_of(entry: JournalEntry, trial: Trial) -> bool:
    return (entry.base, entry.diff) == (trial.base, trial.diff) and (
        msgspec.structs.replace(entry.options, budget_s=trial.options.budget_s) == trial.options
    )


def read_journal(path: Path) -> Journal:
    """Read a journal. A file that does not exist is an empty one.

    Raises:
        AdvisorError: It cannot be read, is too large, or is another file.
    """
    if path.name.endswith(SOURCE_SUFFIXES):
        raise AdvisorError(f"--journal {path} names a source file; choose another name, such as {JOURNAL_NAME}.")
    entries: list[JournalEntry] = []
    passed_over: list[int] = []
    try:
        with open_regular(path) as file:
            if os.fstat(file.fileno()).st_size > MAX_BYTES:
                raise AdvisorError(f"--journal {path} is larger than {MAX_BYTES >> 20} MiB; begin a new one.")
            for number in itertools.count(1):
                line = file.readline(MAX_LINE_BYTES + 1)
                if not line:
                    break
                entry = _entry_of(line, number, path)
                if entry is not None:
                    entries.append(entry)
                elif line.strip():
                    passed_over.append(number)
    except FileNotFoundError:
        if not path.parent.is_dir():
            raise AdvisorError(f"--journal {path}: there is no folder {path.parent}.") from None
    except OSError as error:
        raise AdvisorError(f"--journal {path} cannot be read: {error.strerror or error}.") from None
    lines = ", ".join(map(str, passed_over[:5])) + (", ..." if len(passed_over) > 5 else "")
    note = f"Lines of {path} that are incomplete were passed over: {lines}."
    return Journal(tuple(entries), (note,) if passed_over else ())


def _entry_of(line: bytes, number: int, path: Path) -> JournalEntry | None:
    """Return the entry in a line; None for an empty one and for one that a crash has cut short.

    Raises:
        AdvisorError: It is anything else.
    """
    if not line.strip(_BLANK):
        return None
    if not line.startswith(_HEAD) and not _HEAD.startswith(line.rstrip(b"\n")):
        raise AdvisorError(f"--journal {path} is not an advisor journal (line {number}); choose another name.")
    version = _VERSION.match(line)
    if version is not None and int(version[1]) != SCHEMA_VERSION:
        raise AdvisorError(f"--journal {path} is a journal of another version of advisor; choose another name.")
    if len(line) > MAX_LINE_BYTES:
        raise AdvisorError(f"--journal {path} is damaged: line {number} is too long. Begin a new one.")
    try:
        entry = _DECODER.decode(line)
        if entry.event not in EVENTS or (entry.event == JUDGED) != (entry.proof is not None):
            raise ValueError(f"an entry of the kind {entry.event!r} with these fields is unknown")
        if entry.proof is not None:
            change_of(entry.proof)
    except msgspec.ValidationError as error:
        raise _damaged(path, number, error) from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    except (ValueError, RecursionError) as error:
        raise _damaged(path, number, error) from None
    return entry


def _damaged(path: Path, number: int, error: Exception) -> AdvisorError:
    return AdvisorError(f"--journal {path} is damaged in line {number} ({printable(str(error))}); begin a new one.")


def append_entry(path: Path, entry: JournalEntry) -> None:
    """Append a line, and return when it is on the disk.

    Several processes may write into one journal: a line is written by one call, after the latest one.

    Raises:
        AdvisorError: The file cannot be written.
    """
    text = json.dumps(to_dict(entry), ensure_ascii=False, separators=(",", ":"))
    data = (
        text.encode("utf-8", "replace") + b"\n"
    )  # names of files need not be valid Unicode, and no parser accepts others
    if len(data) > MAX_LINE_BYTES:
        raise AdvisorError(f"--journal {path}: an entry would be longer than {MAX_LINE_BYTES >> 20} MiB.")
    try:
        is_new = not path.exists()
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)
        with os.fdopen(os.open(path, flags, 0o666), "r+b", buffering=0) as file:
            if file.seek(0, os.SEEK_END):
                file.seek(-1, os.SEEK_END)
                if file.read(1) != b"\n":  # a crash has cut the last line short
                    data = b"\n" + data
            if file.write(data) != len(data):
                raise OSError("the disk is full")
            os.fsync(file.fileno())
        if is_new:
            sync_folder(path.parent)
    except OSError as error:
        raise AdvisorError(f"--journal {path} cannot be written: {error.strerror or error}.") from None
