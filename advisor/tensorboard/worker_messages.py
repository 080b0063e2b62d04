"""What TensorBoard's process and its child say to each other, pickled."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Job:
    """One run to analyse."""

    logdir: Path
    """The folder that may be read, without links in its path."""
    folder: Path
    """The run's folder: that of its profiles, or a run folder without any."""
    files: tuple[Path, ...]
    """The profiles, one per host; empty for a run of the advisor without a profile."""
    seconds: float
    """Longest time that the analysis may take."""
    memory_bytes: int | None = None
    """Most memory that it may use; None for the default."""


@dataclass(frozen=True, slots=True)
class Page:
    """A report as a page."""

    html: bytes
    policy: str
    """The Content-Security-Policy to send with it."""
    script_hashes: tuple[str, ...]
    """SHA-256 of its inline scripts, in Base64."""


@dataclass(frozen=True, slots=True)
class NoPage:
    """Why there is no report."""

    sentence: str
    is_final: bool = True
    """Whether the same files would be refused again; otherwise a new attempt may succeed."""
