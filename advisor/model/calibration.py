"""The costs of a machine as measured on it, which travel with a run in `host.json` and `recording.json`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Calibration:
    """Costs of one machine with one version of TensorFlow. A cost is None if it was not measured or not believed."""

    next_ns: float | None = None
    """A Python `next` on a dataset that ends with a prefetch, whose thread has to be woken."""
    next_here_ns: float | None = None
    """A Python `next` on a dataset without other threads."""
    component_ns: float | None = None
    """Additional time of `next` for each further component of an element."""
    handoff_ns: float | None = None
    """Handing an element to a thread of a parallel map and back."""
    copied_bytes_per_ns: float | None = None
    """Rate of copying elements that are in no processor cache into a batch."""
    small_read_ns: float | None = None
    """A read of a few hundred bytes by a reader of tf.data, without the copying; the file is in the page cache."""
    op_start_ns: float | None = None
    """Time that an op of a map's function takes before it computes anything."""
    wakeup_ns: float | None = None
    """Waking another thread. `advisor doctor` prints it; no prediction uses it, because `next_ns` and `handoff_ns` contain it."""
    page_cache_bytes_per_ns: float | None = None
    """Rate of reading a file from the page cache."""
    measured_on: str = ""
    """Date in UTC, as in `2026-11-21`."""
    failure: str = ""
    """Why nothing could be measured, in one sentence."""
    is_busy: bool = False
    """The failure is that other processes used the cores, so that it is not kept."""
