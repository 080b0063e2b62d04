"""How a script ends after its window: by an exception, and by a signal if its interpreter does not end."""

import signal

from advisor.host.calibration.window import STOP_GRACE_S

LAST_RESORT = signal.SIGALRM
"""Ends a process whose interpreter hangs while it ends, when no Python thread runs any more."""
DID_NOT_END = f"The script did not end within {STOP_GRACE_S.value:.0f} s of being stopped, so its process was ended."


class StopScript(BaseException):
    """Ends the script after its window.

    It does not derive from `Exception`, so that `except Exception` in the script does not catch it. `finally` blocks run.
    """


def end_at_the_latest() -> None:
    """Let the kernel end this process `STOP_GRACE_S` later. Call it in the main thread, when the script is over."""
    signal.signal(LAST_RESORT, signal.SIG_DFL)
    signal.alarm(int(STOP_GRACE_S.value))
