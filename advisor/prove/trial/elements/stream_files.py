"""Files by which streams and elements travel between processes: a pipe of JSON lines is too narrow for a million digests.

In: a `Stream`, or elements as arrays.  Out: a file of NumPy arrays, and the same back. Nothing is unpickled.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from advisor.prove.trial.elements.streams import Stream

_DIGEST_BYTES = 16
_FIGURES = 6
"""Figures of a numeric component, see `Stream.figures`."""


def write_stream(path: Path, stream: Stream) -> None:
    """Write a stream."""
    import numpy as np

    count, width = len(stream.rows), len(stream.kinds)
    digests = b"".join(digest for row in stream.rows for digest in row)
    figures = np.zeros((count, width, _FIGURES))
    has_figures = np.zeros((count, width), bool)
    for number, row in enumerate(stream.figures):
        for component, values in enumerate(row):
            if values:
                figures[number, component], has_figures[number, component] = values, True
    with path.open("wb") as file:
        np.savez(
            file,
            digests=np.frombuffer(digests, np.uint8).reshape(count, width, _DIGEST_BYTES),
            figures=figures,
            has_figures=has_figures,
            kinds=np.array(stream.kinds, "U16"),
            size=np.array([stream.size_bytes, stream.is_complete], np.int64),
            error=np.frombuffer(stream.error.encode("utf-8", "backslashreplace"), np.uint8),
        )


def read_stream(path: Path) -> Stream:
    """Read a stream, and remove its file."""
    import numpy as np

    with np.load(path, allow_pickle=False) as arrays:
        digests, figures, has_figures = arrays["digests"], arrays["figures"].tolist(), arrays["has_figures"].tolist()
        rows = [tuple(digest.tobytes() for digest in row) for row in digests]
        stream = Stream(
            rows,
            [
                tuple(tuple(values) if has else () for values, has in zip(row, its_has, strict=True))
                for row, its_has in zip(figures, has_figures, strict=True)
            ],
            tuple(arrays["kinds"].tolist()),
            int(arrays["size"][0]),
            bool(arrays["size"][1]),
            arrays["error"].tobytes().decode("utf-8"),
        )
    path.unlink()
    return stream


def write_elements(path: Path, elements: Iterable[Sequence[Any]], most_bytes: int) -> bool:
    """Write the components of elements, up to a limit.

    Args:
        path: The file.
        elements: Elements as lists of arrays (`element_digests.arrays_of`).
        most_bytes: Size above which no further element is written.

    Returns:
        Whether all of them were written.
    """
    import numpy as np

    arrays: dict[str, Any] = {}
    size = count = 0
    is_whole = True
    for element in elements:
        if size > most_bytes:
            is_whole = False
            break
        for component, array in enumerate(element):
            arrays[f"{count}_{component}"] = array
            size += array.nbytes
        count += 1
    with path.open("wb") as file:
        np.savez(file, count=np.array(count), **arrays)
    return is_whole


def read_elements(path: Path) -> list[list[Any]]:
    """Read the elements, each as a list of its components, and remove their file."""
    import numpy as np

    elements: list[list[Any]] = []
    with np.load(path, allow_pickle=False) as arrays:
        names = frozenset(arrays.files)
        for number in range(int(arrays["count"])):
            components: list[Any] = []
            while f"{number}_{len(components)}" in names:
                components.append(arrays[f"{number}_{len(components)}"])
            elements.append(components)
    path.unlink()
    return elements
