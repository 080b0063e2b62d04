"""Peak memory of this process while a block runs, and by how much it grew.

In: /proc/self (Linux), TensorFlow's allocator.  Out: bytes; None if unavailable.

The kernel counts the peak itself. If its counter cannot be reset (some containers forbid that), it may contain an earlier peak,
so resident memory is sampled instead, which misses peaks between two samples.

Resident memory hides growth: TensorFlow's CPU allocator (with oneDNN, the default on x86) keeps the memory of large tensors that
were freed, and what a pipeline takes after another one has ended need not be new to the process. The allocator itself counts the
bytes of the tensors that exist (docs/measuring.md).
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from types import TracebackType

from advisor.capture.window.process_memory import status_bytes, trim
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
        self.grown_bytes: int | None = None
        """By how much the memory in use was larger than at the start; None if unavailable."""
        self._tensor_bytes: int | None = None
        """Bytes of all tensors at the start."""

    def __enter__(self) -> PeakMemory:
        trim()  # so that free memory is not counted
        self._tensor_bytes = _tensor_bytes("current", is_reset=True)
        start = status_bytes("VmRSS", self._process)
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
            self.peak_bytes = status_bytes("VmHWM", self._process)
        else:
            self._is_over.set()
            self._sampler.join()
        most = _tensor_bytes("peak")
        grown = [
            *([] if self.peak_bytes is None else [self.peak_bytes - self.start_bytes]),
            *([] if most is None or self._tensor_bytes is None else [most - self._tensor_bytes]),
        ]
        self.grown_bytes = max(0, *grown) if grown else None

    def _reset(self) -> bool:
        """Reset the kernel's counter. Return False if that is not possible."""
        if status_bytes("VmHWM", self._process) is None:
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
            self.peak_bytes = max(self.peak_bytes or 0, status_bytes("VmRSS", self._process) or 0)


def _tensor_bytes(which: str, is_reset: bool = False) -> int | None:
    """Return the bytes that TensorFlow's allocator has handed out on the CPU; None where it does not count them.

    Args:
        which: `current` or `peak`, the largest number since the last reset.
        is_reset: Start to look for the peak anew.
    """
    config = getattr(sys.modules.get("tensorflow"), "config", None)
    try:
        if is_reset and config is not None:
            config.experimental.reset_memory_stats("CPU:0")
        return None if config is None else int(config.experimental.get_memory_info("CPU:0")[which])
    except Exception:  # ValueError without oneDNN; the interface is experimental
        return None
