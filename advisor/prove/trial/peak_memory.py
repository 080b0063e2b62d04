"""Peak resident memory of this process while a block runs.

In: /proc/self (Linux).  Out: bytes; None where the system does not tell.

The kernel keeps the peak itself. Where its counter may not be set back (some containers forbid it), an older peak would be
taken for this block's, so resident memory is sampled instead, which misses a peak between two samples.
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
    """Use as a context manager; read `peak_bytes` behind the block."""

    def __init__(self, process: Path = _PROCESS) -> None:
        """`process`: the folder of this process' files, for tests."""
        self._process = process
        self._sampler: threading.Thread | None = None
        self._is_over = threading.Event()
        self.start_bytes = 0
        """Resident when the block began; 0 where the system does not tell."""
        self.peak_bytes: int | None = None
        """The most that was resident while the block ran."""

    def __enter__(self) -> PeakMemory:
        with contextlib.suppress(OSError, AttributeError):  # give back what is free, so that it is not counted as used
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
        """Set the kernel's counter back; False where that cannot be done."""
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
            is_over = self._is_over.wait(MEMORY_SAMPLE_S.value)  # and once more at the end
            self.peak_bytes = max(self.peak_bytes or 0, self._status("VmRSS") or 0)

    def _status(self, name: str) -> int | None:
        """A field of the process' `status`, in bytes."""
        with contextlib.suppress(OSError, ValueError, IndexError):
            for line in (self._process / "status").read_text().splitlines():
                if line.startswith(f"{name}:"):
                    return int(line.split()[1]) * 1024
        return None
