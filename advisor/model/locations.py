"""Resolves the location of a profile: a local path, or a URL that fsspec can open (`gs://`, `s3://`, `https://`, `memory://`).

In: the text that the user typed.  Out: a `Path`, or a `UPath` that behaves like one; failed reads raise a one-sentence error.

`universal-pathlib` (the extra `tfdata-advisor[remote]`) gives URLs the interface of `pathlib`, so other modules need no special
case.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

from advisor.model.errors import AdvisorError
from advisor.model.text import message_of

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]+://")
_EXTRA = "pip install 'tfdata-advisor[remote]'"


def is_url(text: str) -> bool:
    """Return whether `text` is a URL."""
    return _SCHEME.match(text) is not None


def is_remote(path: Path) -> bool:
    """Return whether `path` came from a URL: it is read-only, and every access may be slow or fail."""
    return not isinstance(path, Path)


def locate(text: str) -> Path:
    """Return the path for `text`. `file://` URLs become local paths.

    Raises:
        AdvisorError: The package for the URL's file system is not installed.
    """
    if not is_url(text):
        return Path(text)
    try:
        from upath import UPath
    except ImportError:
        raise AdvisorError(
            f"{text} is on a remote file system, which needs fsspec: {_EXTRA}, or copy the profile to this machine."
        ) from None
    if text.startswith("file://"):
        return Path(UPath(text).path)
    with _one_sentence(text):
        path = UPath(text)
        path.fs  # noqa: B018  imports the package of the file system, which may be missing
        return cast(Path, path)


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Convert exceptions of a remote file system into an `AdvisorError`; exceptions for local paths are not changed."""
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
        raise AdvisorError(f"{name} cannot be read: {_reason(error)}.") from None
    except FileNotFoundError:
        raise AdvisorError(f"{name} does not exist or cannot be reached: check the URL and the network.") from None
    except Exception as error:  # every file system has its own exceptions
        raise AdvisorError(f"{name} cannot be read ({type(error).__name__}: {_reason(error)}).") from None


def _reason(error: Exception) -> str:
    return message_of(error)[:300] or "no reason given"
