"""Files to which the samples of a watched run are written: JSON lines, CSV.

In: `LiveSample`s, slow periods and bottlenecks.  Out: lines; a new file, or more lines in the file of an earlier part of the run.
A file that is closed before the first sample is removed, so that a command that was refused can be repeated as it is.
"""

from __future__ import annotations

import contextlib
import csv
import os
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import msgspec

from advisor.export.csv_tables import cell_text
from advisor.live.watched_run import Change
from advisor.model.errors import AdvisorError
from advisor.model.live import LiveSample
from advisor.model.units import NS_PER_S

COLUMNS = (
    "time", "consumer", "where", "kind", "is_main", "steps", "passes", "new_steps", "step_s", "input_wait_share",
    "buffered", "buffer_size", "cores", "rss_bytes", "pauses", "pause_s",
)  # fmt: skip
"""Columns of the CSV file: one row per consumer and sample; `time` is Unix time in seconds."""


class JsonLines:
    """One JSON object per line: each sample, and each slow period and bottleneck when it is noticed. `type` tells them apart."""

    def __init__(self, path: Path, name: str = "--jsonl", is_continued: bool = False) -> None:
        """Create the file.

        Args:
            path: The file.
            name: What asked for it, for messages.
            is_continued: Append to the file, which was created by an earlier part of the run.

        Raises:
            AdvisorError: It exists or cannot be created.
        """
        self.name = name
        self._file = _NewFile(name, path, is_continued)

    def write(self, sample: LiveSample, changes: Sequence[Change]) -> None:
        """See `Sink`."""
        self._line(sample)
        for change in changes:
            self._line({"type": type(change).__name__, **msgspec.to_builtins(change)})
        self._file.text.flush()

    def close(self) -> None:
        """See `Sink`."""
        self._file.close()

    def _line(self, message: Any) -> None:  # noqa: ANN401
        self._file.text.write(msgspec.json.encode(message).decode() + "\n")


class CsvRows:
    """One row per consumer and sample, below a header."""

    def __init__(self, path: Path, name: str = "--csv", is_continued: bool = False) -> None:
        """Create the file; see `JsonLines`."""
        self.name = name
        self._file = _NewFile(name, path, is_continued)
        self._rows = csv.writer(self._file.text)

    def write(self, sample: LiveSample, changes: Sequence[Change]) -> None:
        """See `Sink`."""
        if self._file.is_empty:
            self._rows.writerow(COLUMNS)
        for consumer in sample.consumers:
            self._rows.writerow(
                (
                    f"{sample.time_ns / NS_PER_S:.3f}", consumer.id, cell_text(consumer.where), consumer.kind,
                    int(consumer.is_main), consumer.steps, consumer.passes, consumer.new_steps, _seconds(consumer.step_ns),
                    _known(consumer.wait_share), _known(consumer.buffered), _known(consumer.buffer_size),
                    f"{sample.cores:.3f}", _known(sample.rss_bytes), consumer.pauses, _seconds(consumer.pause_ns),
                )
            )  # fmt: skip
        self._file.text.flush()

    def close(self) -> None:
        """See `Sink`."""
        self._file.close()


class _NewFile:
    """A file of one run: created, or continued. It is removed when it is closed if nothing was written to it."""

    def __init__(self, name: str, path: Path, is_continued: bool) -> None:
        """See `JsonLines`."""
        self._path = path
        try:
            self.text: IO[str] = path.open("a" if is_continued else "x", encoding="utf-8", newline="")
        except FileExistsError:
            raise AdvisorError(f"{name}: {path} exists already; name a new file.") from None
        except OSError as error:
            raise AdvisorError(f"{name}: {path} cannot be created: {error.strerror or error}.") from None

    @property
    def is_empty(self) -> bool:
        """Whether nothing has been written, by an earlier part of the run either."""
        return not self.text.tell()

    def close(self) -> None:
        """Close it."""
        try:
            self.text.flush()
            own = os.fstat(self.text.fileno())
        finally:
            self.text.close()
        if own.st_size:
            return
        with contextlib.suppress(OSError):  # somebody may have put another file in its place
            if os.path.samestat(own, self._path.lstat()):
                self._path.unlink()


def _seconds(ns: float | None) -> str:
    return "" if ns is None else f"{ns / NS_PER_S:.9f}"


def _known(value: float | None) -> str:
    return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
