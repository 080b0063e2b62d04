"""Runs, hosts and scripts that are not there, damaged recordings, URLs."""

from __future__ import annotations

import socket
from pathlib import Path

from tests.hostile.case import CASES, Case, case, pipeline


def logdir(folder: Path) -> Path:
    for run in ("2026_01_01_00_00_00", "2026_01_02_00_00_00"):
        for host in ("alpha", "beta"):
            pipeline().write(folder / f"plugins/profile/{run}/{host}.xplane.pb")
    return folder


for title, code, said, options in (
    ("run_that_is_not_there", 2, "There is no run in", ("--run", "1999_01_01_00_00_00")),
    ("run_that_may_be_either", 2, "more than one run", ("--run", "2026")),
    ("host_that_is_not_there", 2, "There is no host in", ("--host", "gamma")),
    ("script_that_is_not_there", 2, "cannot be read", ("--source", "/nowhere/train.py")),
    ("script_that_is_a_folder", 2, "cannot be read", ("--source", "/tmp")),
    ("script_that_never_ends", 2, "cannot be read", ("--source", "/dev/zero")),
):
    CASES[title] = Case(logdir, code, said, options)


def recorded(folder: Path, recording: bytes) -> Path:
    pipeline().write(folder / "plugins/profile/2026_01_01_00_00_00/worker.xplane.pb")
    (folder / "recording.json").write_bytes(recording)
    return folder


for title, content in {
    "recording_that_is_empty": b"",
    "recording_that_is_no_json": b"no json",
    "recording_of_another_kind": b'{"a": 1}',
    "recording_that_is_a_list": b"[1, 2, 3]",
    "recording_nested_too_deeply": b"[" * 100_000,
    "recording_of_invalid_utf8": b'{"target": "\xff\xfe"}',
    "recording_with_a_huge_number": b'{"target": "x", "schema_version": 1' + b"0" * 5000 + b"}",
}.items():
    CASES[title] = Case(lambda folder, content=content: recorded(folder, content), 2, "recording.json")


@case(2, "cannot be read")
def url_of_an_unknown_kind(folder: Path) -> str:
    return "nonsense://bucket/logs"


@case(2, "cannot be reached")
def url_of_nothing(folder: Path) -> str:
    return "memory://nothing/here"


@case(2, "cannot be reached")
def url_that_nobody_answers(folder: Path) -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    return f"http://127.0.0.1:{port}/logs/worker.xplane.pb"
