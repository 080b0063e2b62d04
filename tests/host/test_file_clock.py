"""The clock of files: none is dated before it."""

from __future__ import annotations

import os

from advisor.host.file_clock import file_time_ns


def test_a_file_written_later_is_not_dated_earlier(tmp_path):
    """With `time.time_ns`, most of these files are."""
    for number in range(200):
        before = file_time_ns()
        path = tmp_path / str(number)
        path.touch()
        assert before <= path.stat().st_mtime_ns
        os.utime(path)
        assert before <= path.stat().st_mtime_ns
