"""Shared by all benchmarks: the description of the machine, the date, and writing into the documentation.

In: lines of Markdown.  Out: docs/benchmarks.md, changed only between the markers of one benchmark.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

from advisor.host.machine import describe_host

DOCS = Path(__file__).parents[1] / "docs" / "benchmarks.md"
TENSORFLOW_NAMES = ("tensorflow", "tensorflow-cpu", "tf-nightly")
"""Distributions that provide the same module."""


def write_section(name: str, lines: Sequence[str], docs: Path = DOCS) -> None:
    """Put `lines` between `<!-- name: begin -->` and `<!-- name: end -->`.

    Raises:
        ValueError: If the markers do not occur exactly once.
    """
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    text = docs.read_text(encoding="utf-8")
    if text.count(begin) != 1 or text.count(end) != 1 or text.index(begin) > text.index(end):
        raise ValueError(f"{docs} does not hold {begin} and, after it, {end} once each.")
    before, _, rest = text.partition(begin)
    after = rest.partition(end)[2]
    docs.write_text(before + "\n".join([begin, "", *lines, "", end]) + after, encoding="utf-8")


def machine_sentence(results: Path | None = None) -> str:
    """`Measured 2026-01-31 on 2 cores, Intel(R) Xeon(R), 24 GiB, TensorFlow 2.21.0.`

    Args:
        results: The file that keeps the rows of an interrupted benchmark; the sentence names all days and machines of `note_run`.
    """
    runs = _runs(results) if results is not None else []
    return f"Measured {' and '.join(runs or [_here()])}."


def note_run(results: Path) -> None:
    """Note next to the file with the rows of a benchmark when and where a row was measured.

    Args:
        results: The file. The notes are in `NAME.runs`, one line for each day and machine.
    """
    runs = _runs(results) if results.exists() else []  # the rows were deleted, the notes were not
    if _here() not in runs:
        results.with_suffix(".runs").write_text("".join(f"{run}\n" for run in [*runs, _here()]), encoding="utf-8")


def _runs(results: Path) -> list[str]:
    place = results.with_suffix(".runs")
    return place.read_text(encoding="utf-8").splitlines() if place.exists() else []


def _here() -> str:
    host = describe_host()
    return (
        f"{time.strftime('%Y-%m-%d')} on {host.cores:g} cores, {host.cpu_model}, "
        f"{host.memory_bytes / 2**30:.0f} GiB, TensorFlow {tensorflow_version()}"
    )


def tensorflow_version() -> str:
    """Version of the installed distribution, without importing it; `?` if there is none."""
    for name in TENSORFLOW_NAMES:
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return "?"
