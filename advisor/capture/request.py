"""The request for a capture and its progress messages.

In: nothing.  Out: `CaptureRequest`, sent to the child process in a `SessionRequest`, and `Progress`, sent back by it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from advisor.host.calibration.window import MAX_EVENTS

START_SEED = 48_611
"""An arbitrary seed, which no script is likely to set itself."""


@dataclass(frozen=True, slots=True)
class CaptureRequest:
    """A script or module to run, and when to measure it."""

    out: Path
    """Run folder; created if it does not exist."""
    script: Path | None = None
    """Exactly one of `script` and `module` is set."""
    module: str | None = None
    """Run as `python -m module`."""
    args: tuple[str, ...] = ()
    """Command-line arguments of the script."""
    steps: int | None = None
    """Close the window after this many steps; None: when the estimate is stable."""
    warmup: int | None = None
    """Open the window after this many steps; None: adaptive."""
    seconds: float | None = None
    """Close the window after this many seconds at the latest; None: the default limit."""
    epoch_steps: int | None = None
    """Steps of an epoch: the window goes on after `seconds`, for at most as long again, until it holds whole epochs of so many
    steps. None: they are unknown, or are not taken into account."""
    to_end: bool = False
    """Do not stop the script after the window."""
    show_output: bool = False
    """Write the script's output to the stderr of the advisor instead of files in the run folder."""
    max_events: int = MAX_EVENTS.value
    """Close the window before the profile holds more than approximately this many events."""
    ceiling_for: str | None = None
    """Id of a call whose dataset is replaced by its first element, repeated, wherever it is consumed. No profile is made."""
    is_profiled: bool = True
    """False: steps are timed without TensorFlow's profiler."""
    overlay: tuple[tuple[Path, Path], ...] = ()
    """Pairs (source file of the script's project, file with the text that replaces its content in this run)."""
    in_place: bool = False
    """Let the script write to the real files. Otherwise, unless `to_end` is set, the script has a private view of the disk, and
    its writes are discarded."""
    live_s: float | None = None
    """Seconds between two `LiveSample`s that the child sends; None: it sends none."""
    passes_output: bool = False
    """Leave the script's stdout and stderr as those of this process."""
    reads_alone: bool = False
    """Read the pipeline without training for a second after the window, where that is known to stay inside the script. If steps
    wait for input, time some without input instead."""
    start_seed: int | None = None
    """Seed of the random generators of Python, NumPy and TensorFlow (and of Python's hashes) at the start of the script, so that
    two runs start alike; None: they are not seeded. A script that sets seeds itself is not affected, and one that does not still
    counts as unseeded."""
    calls_at: int | None = None
    """Number of the consumption of a dataset (from 1) at which a run that is also a check of its text writes its calls so far
    (`advisor.prove.trial.runs.checked_run`); None: it does not."""
    takes_turns: bool = False
    """Let the whole script be measured in two live processes of which one is always stopped (`advisor.prove.measure.live_pairs`),
    where that is possible. Each process measures its window as before, and is stopped after it instead of being ended."""
    deadline: float | None = None
    """Instant of `time.monotonic` at which the parent stops the script and raises `OutOfTime`; None: no deadline."""

    @property
    def is_in_place(self) -> bool:
        """Whether the script writes to the real files."""
        return self.in_place or self.to_end

    @property
    def argv(self) -> tuple[str, ...]:
        """The target as the user named it, and its arguments: `train.py --fast`, `-m package.train`."""
        return (*(("-m", self.module) if self.module is not None else (str(self.script),)), *self.args)


@dataclass(frozen=True, slots=True)
class SessionRequest:
    """The message that starts a session in the child process."""

    capture: CaptureRequest
    """With absolute paths, except for the script's."""
    progress_fd: int
    """File descriptor of the inherited pipe to which the child writes its messages."""
    requests_fd: int | None = None
    """File descriptor of the inherited pipe from which it reads requests for windows, a folder per line; None: there are none."""


CANNOT_WRITE = "cannot write"
"""Phase of a `Progress` whose text is the error that occurred while writing the run folder. It is not shown as progress."""
RESULT = "result"
"""Phase of a `Progress` whose text is a result: a sentence that is shown at once and stays."""


class Progress(msgspec.Struct, frozen=True, tag=True):
    """A progress message of a capture."""

    phase: str
    """`starting`, `warming up`, `profiling`, `saving`, `finishing`."""
    done: int = 0
    total: int | None = None
    """Number of steps of which `done` are done; None if unknown."""
    text: str = ""
    left_s: float | None = None
    """Estimated seconds until there may be a result; None if unknown."""


def labelled(
    on_progress: Callable[[Progress], None], label: str, left_s: Callable[[], float | None] = lambda: None
) -> Callable[[Progress], None]:
    """Return a receiver of progress messages that passes them on with another text.

    Args:
        on_progress: Where it passes them on to.
        label: The text.
        left_s: Returns the estimated seconds until there may be a result.
    """
    return lambda progress: on_progress(msgspec.structs.replace(progress, text=label, left_s=left_s()))


def files_sentence(is_in_place: bool) -> str:
    """Say, before a script is run, what happens to the files that it writes. What can be protected is known only in the run."""
    if is_in_place:
        return "Files it writes are kept."
    return "Files it writes are discarded; if this system cannot protect some of them, the report names them."
