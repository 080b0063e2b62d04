"""Peak resident memory of this process while a block runs.

In: /proc/self (Linux).  Out: bytes; None if unavailable.

The kernel counts the peak itself. If its counter cannot be reset (some containers forbid that), it may contain an earlier peak,
so resident memory is sampled instead, which misses peaks between two samples.
"""

from __future__ import annotations

import contextlib
import ctypes
import threading
from pathlib import Path
from types import TracebackType

from advisor.host.calibration.proof import MEMORY_SAMPLE_S

_PROCESS = Path("/proc/self")


class PeakMemory:
    """Context manager that measures the peak; read `peak_bytes` after the block."""

    def __init__(self, process: Path = _PROCESS) -> None:
        """Create a measurement; tests pass another folder than that of the process."""
        self._process = process
        self._sampler: threading.Thread | None = None
        self._is_over = threading.Event()
        self.start_bytes = 0
        """Resident memory at the start of the block; 0 if unavailable."""
        self.peak_bytes: int | None = None
        """Maximum resident memory during the block; None if unavailable."""

    def __enter__(self) -> PeakMemory:
        with contextlib.suppress(
            OSError, AttributeError
        ):  # return free memory to the system, so that it is not counted
            ctypes.CDLL("libc.so.6").malloc_trim(0)
        start = self._status("VmRSS")
        self.start_bytes = start or 0
        if start is not None and not self._reset():
            self.peak_bytes = start
            self._sampler = threading.Thread(target=self._sample, daemon=True)
            self._sampler.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._sampler is None:
            self.peak_bytes = self._status("VmHWM")
            return
        self._is_over.set()
        self._sampler.join()

    def _reset(self) -> bool:
        """Reset the kernel's counter. Return False if that is not possible."""
        if self._status("VmHWM") is None:
            return False
        try:
            (self._process / "clear_refs").write_text("5")  # 5: the peak (proc_pid_clear_refs(5))
        except OSError:
            return False
        return True

    def _sample(self) -> None:
        is_over = False
        while not is_over:
            is_over = self._is_over.wait(MEMORY_SAMPLE_S.value)  # samples once more at the end
            self.peak_bytes = max(self.peak_bytes or 0, self._status("VmRSS") or 0)

    def _status(self, name: str) -> int | None:
        """Return a field of the process' `status` file in bytes."""
        with contextlib.suppress(OSError, ValueError, IndexError):
            for line in (self._process / "status").read_text().splitlines():
                if line.startswith(f"{name}:"):
                    return int(line.split()[1]) * 1024
        return None
