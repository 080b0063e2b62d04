"""Limits of this process: time, memory and priority, for analyses that run beside a training.

In: seconds and bytes.  Out: the kernel ends the process after that time, and refuses it more memory. Windows has neither limit.
"""

from __future__ import annotations

import math
import os
import signal
from contextlib import suppress

MEMORY_SHARE = 0.5
"""Share of the machine's memory for one analysis; the rest is for the training that may run beside it."""
LEAST_MEMORY_BYTES = 2 << 30
"""Memory that an analysis always gets. It counts address space, of which Python and its libraries take several hundred MB."""
NICENESS = 10
"""Added to the priority value. A process with 10 more than another one gets a tenth of a core that both want."""


def set_limits(seconds: float, limit_bytes: int | None = None) -> None:
    """Let the kernel end this process after that time, and refuse it more memory.

    Args:
        seconds: Longest time.
        limit_bytes: Most memory; None for a share of the machine's.
    """
    if hasattr(signal, "setitimer"):
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        import resource
    except ImportError:
        return
    # processor time limits the processes that this one starts for several hosts, if they outlive it
    _lower(resource.RLIMIT_CPU, max(1, math.ceil(seconds)))
    _lower(resource.RLIMIT_AS, limit_bytes or _default_memory())


def give_way() -> None:
    """Lower the priority of this process, so that a training on the same cores goes first."""
    with suppress(AttributeError, OSError):
        os.nice(NICENESS)


def _default_memory() -> int:
    from advisor.host.machine import memory_bytes  # not above: the limits hold before anything else is imported

    return max(LEAST_MEMORY_BYTES, int(MEMORY_SHARE * memory_bytes()[0]))


def _lower(kind: int, limit: int) -> None:
    """Lower a limit of this process and of those that it starts; a limit that is lower already stays."""
    import resource

    soft, hard = resource.getrlimit(kind)
    limits = [value for value in (limit, soft, hard) if value != resource.RLIM_INFINITY]
    with suppress(ValueError, OSError):  # macOS has no limit of address space
        resource.setrlimit(kind, (min(limits), min(limits)))
