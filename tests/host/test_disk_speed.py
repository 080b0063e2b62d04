"""Which files calls name, and how fast their disk is; nothing is changed by looking."""

from __future__ import annotations

import mmap
import os
from pathlib import Path

import numpy as np
import pytest

from advisor.host.disk_speed import MAX_FILES, DataFiles, disk_read_bytes_per_s


@pytest.fixture
def files(tmp_path):
    paths = [tmp_path / f"{number}.tfrecord" for number in range(3)]
    for path in paths:
        path.write_bytes(b"x" * (3 << 20))
    return [str(path) for path in paths]


def noted(**bound) -> tuple[str, ...]:
    files = DataFiles()
    files.note(bound)
    return files.paths


def test_files_are_found_in_every_form_that_a_call_takes(files):
    assert noted(filenames=files[0]) == (files[0],)
    assert noted(filenames=files) == tuple(files)
    assert noted(filenames=np.array(files)) == tuple(files)
    assert noted(tensors={"name": [file.encode() for file in files], "label": [1, 2, 3]}) == tuple(files)
    assert sorted(noted(file_pattern=str(Path(files[0]).parent / "*.tfrecord"))) == files


def test_a_pipe_is_never_opened(files):
    """Opening one would wait for a writer for ever; reading from it would take the script's data away."""
    folder = Path(files[0]).parent
    os.mkfifo(folder / "pipe.tfrecord")
    assert sorted(noted(file_pattern=str(folder / "*.tfrecord"))) == files
    assert noted(filenames=str(folder / "pipe.tfrecord")) == ()
    assert disk_read_bytes_per_s([str(folder / "pipe.tfrecord")]) is None


def test_what_names_no_file_is_left_alone():
    class Odd:
        dtype = property(lambda self: 1 / 0)

    assert noted(filenames=Odd(), tensors=["cat", "dog", 3], file_pattern="/nowhere/*") == ()
    assert noted(filenames="gs://bucket/a.tfrecord", tensors=np.zeros(4)) == ()


def test_no_more_than_a_few_are_kept(tmp_path):
    paths = [tmp_path / str(number) for number in range(MAX_FILES + 5)]
    for path in paths:
        path.touch()
    assert len(noted(filenames=[str(path) for path in paths])) == MAX_FILES
    assert len(noted(file_pattern=str(tmp_path / "*"))) == MAX_FILES


def has_direct_reads(path: str) -> bool:
    """Whether the system and the file system read past the page cache; many file systems of containers do not."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_DIRECT)
    except (AttributeError, OSError):
        return False
    try:
        return os.preadv(file, [mmap.mmap(-1, 1 << 20)], 0) == 1 << 20
    except OSError:
        return False
    finally:
        os.close(file)


def test_the_disk_is_measured_without_a_change_of_the_files(files):
    before = [Path(file).stat() for file in files]
    speed = disk_read_bytes_per_s(files)
    assert speed > 1 << 20 if has_direct_reads(files[0]) else speed is None
    assert [(s.st_mtime_ns, s.st_size) for s in map(os.stat, files)] == [(b.st_mtime_ns, b.st_size) for b in before]


def test_too_few_bytes_and_missing_files_are_no_measurement(tmp_path):
    small = tmp_path / "small"
    small.write_bytes(b"x" * 1000)
    assert disk_read_bytes_per_s([str(small), str(tmp_path / "gone")]) is None
    assert disk_read_bytes_per_s([]) is None
