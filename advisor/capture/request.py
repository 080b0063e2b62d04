"""What a capture is asked to do and what it says while it works.

In: nothing.  Out: `CaptureRequest` and `Progress`, which cross from the parent to the child and back as JSON.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

DEFAULT_MAX_EVENTS = 2_000_000
"""A profile of that many events is about 50 to 60 MB (25 to 30 bytes an event, measured with TF 2.21) and takes seconds to
write and to read; more adds nothing to the estimate."""


@dataclass(frozen=True, slots=True)
class CaptureRequest:
    """One script (or module) to be watched."""

    out: Path
    """Run folder; made if absent."""
    script: Path | None = None
    module: str | None = None
    """Run as `python -m module`; exactly one of `script` and `module` is set."""
    args: tuple[str, ...] = ()
    steps: int | None = None
    """Close the window after that many steps; None: when the estimate is stable."""
    warmup: int | None = None
    """Open the window after that many steps; None: adaptive."""
    seconds: float | None = None
    """Close the window after that many seconds at the latest; None: the default limit."""
    to_end: bool = False
    """Let the script run on after the window."""
    show_output: bool = False
    """Pass the script's output through to our stderr instead of keeping it in the run folder."""
    max_events: int = DEFAULT_MAX_EVENTS
    """Close the window before the profile holds more than about this many events."""
    ceiling_for: str | None = None
    """Id of a call: no profile; the consumed dataset that it made is replaced by its first element, repeated."""
    is_profiled: bool = True
    """False: steps are timed, TensorFlow's profiler is never started."""
    overlay: tuple[tuple[Path, Path], ...] = ()
    """(a file of the script's project, a file that holds the text it is to have in this run)."""
    in_place: bool = False
    """Let the run write to the real files. Otherwise, unless it goes to its end, it has a private view of the disk, and what it
    writes is thrown away."""
    deadline: float | None = None
    """Instant of `time.monotonic` at which the script is stopped and `OutOfTime` is raised; None: never. The parent's alone."""

    @property
    def is_in_place(self) -> bool:
        """Whether what the script writes stays."""
        return self.in_place or self.to_end


CANNOT_WRITE = "cannot write"
"""Phase of a `Progress` whose text says why the run folder could not be written; never shown as progress."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a capture stands."""

    phase: str
    """`starting`, `warming up`, `profiling`, `saving`, `finishing`."""
    done: int = 0
    total: int | None = None
    """Steps done of so many; None where nobody can know."""
    text: str = ""
