"""Where a profile lies: on this machine, or behind a URL that fsspec can open (`gs://`, `s3://`, `https://`, `memory://`).

In: the text that the user typed.  Out: a `Path`, or a `UPath` that behaves like one; reads of either fail with one sentence.

`universal-pathlib` (the extra `tfdata-advisor[remote]`) gives URLs the interface of `pathlib`, so nobody else has to know.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

from advisor.model.errors import AdvisorError

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]+://")
_EXTRA = "pip install 'tfdata-advisor[remote]'"


def is_url(text: str) -> bool:
    """Whether `text` names something on another machine."""
    return _SCHEME.match(text) is not None


def is_remote(path: Path) -> bool:
    """Whether `path` came from a URL: it is read only, and every look at it may take a while or fail."""
    return not isinstance(path, Path)


def locate(text: str) -> Path:
    """The path that `text` stands for. `file://` is local. Raises AdvisorError where no file system is installed for it."""
    if not is_url(text):
        return Path(text)
    try:
        from upath import UPath
    except ImportError:
        raise AdvisorError(
            f"{text} lies on a remote file system, which needs fsspec: {_EXTRA}, or copy the profile here."
        ) from None
    if text.startswith("file://"):
        return Path(UPath(text).path)
    with _one_sentence(text):
        path = UPath(text)
        path.fs  # noqa: B018  imports the file system's own package, which may be missing
        return cast(Path, path)


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn what a remote file system raises inside the block into one sentence; local errors pass as they are."""
    if not is_remote(path):
        yield
        return
    with _one_sentence(str(path)):
        yield


@contextmanager
def _one_sentence(name: str) -> Iterator[None]:
    try:
        yield
    except (AdvisorError, MemoryError):
        raise
    except ImportError as error:  # "Please install gcsfs to access Google Storage"
        raise AdvisorError(f"{name} cannot be read: {_told(error)}.") from None
    except FileNotFoundError:
        raise AdvisorError(f"{name} does not exist or cannot be reached: look at the URL and the network.") from None
    except Exception as error:  # each file system raises errors of its own
        raise AdvisorError(f"{name} cannot be read ({type(error).__name__}: {_told(error)}).") from None


def _told(error: Exception) -> str:
    return " ".join(str(error).split()).rstrip(".")[:300] or "no reason given"
