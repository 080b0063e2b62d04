"""Finds out whether the script's steps are queued: started by a call that returns before they have run.

In: the imported modules.  Out: the name of the library that queues them.
"""

from __future__ import annotations

import contextlib
import sys


def queueing_library() -> str:
    """Return `JAX` if it computes in this process; empty if no known library queues the steps.

    Whether it has a device by now is read from a private module; without that, an import is enough.
    """
    if "jax" not in sys.modules:
        return ""
    has_device = getattr(sys.modules.get("jax._src.xla_bridge"), "backends_are_initialized", None)
    with contextlib.suppress(Exception):
        return "JAX" if has_device is None or has_device() else ""
    return "JAX"
