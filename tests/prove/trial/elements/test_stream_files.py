"""Streams and elements arrive as they were written; nothing in a file is unpickled."""

from __future__ import annotations

from advisor.prove.trial.elements.stream_files import read_stream, write_stream
from advisor.prove.trial.elements.streams import Stream


def test_a_stream_arrives_as_it_was(tmp_path):
    rows = [(bytes([number]) * 16, bytes([number + 1]) * 16) for number in range(5)]
    figures = [((1.0, 2.0, 3.0, 4.0, 1.0, float(number)), ()) for number in range(5)]
    stream = Stream(rows, figures, ("numbers", "dataset"), 123, True, "")
    write_stream(tmp_path / "s.npz", stream)
    assert read_stream(tmp_path / "s.npz") == stream
    assert not (tmp_path / "s.npz").exists()


def test_an_empty_stream_with_an_error(tmp_path):
    stream = Stream(error="InvalidArgumentError: ünlucky \udcff")
    write_stream(tmp_path / "s.npz", stream)
    read = read_stream(tmp_path / "s.npz")
    assert read.rows == [] and read.error.startswith("InvalidArgumentError: ünlucky ")


def test_digests_are_not_cut_at_zero_bytes(tmp_path):
    stream = Stream([(bytes(16),)], [((),)], ("text",))
    write_stream(tmp_path / "s.npz", stream)
    assert read_stream(tmp_path / "s.npz").rows == [(bytes(16),)]
