"""TensorFlow's profiler, opened and closed by us, and the script's own use of it, which goes first.

In: a folder.  Out: `plugins/profile/<time>/<host>.xplane.pb` beneath it.
"""

from __future__ import annotations

import functools
import shutil
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from advisor.capture.instrument.patches import Patches

_SESSION = "_profiler"
"""Global of TensorFlow's module: the session under way, or None."""


class Profiler:
    """One session at a time: TensorFlow has only one."""

    def __init__(self, tensorflow: ModuleType) -> None:
        self._api = tensorflow.profiler.experimental
        self._start, self._stop = self._api.start, self._api.stop
        self.is_running = False
        self._has_users = False

    @property
    def is_users_running(self) -> bool:
        """Whether the script has a session of its own, be it older than this object (TensorFlow's own note of it: private)."""
        return self._has_users or (not self.is_running and getattr(_module(), _SESSION, None) is not None)

    def start(self, folder: Path) -> bool:
        """Begin a session; False if the script has one of its own."""
        if self.is_users_running:
            return False
        options = self._api.ProfilerOptions(host_tracer_level=2, python_tracer_level=0, device_tracer_level=1)
        try:
            self._start(str(folder), options=options)
        except Exception:
            # a profiler server's session is in the way: TensorFlow now takes ours for running, and would refuse the script's
            if hasattr(_module(), _SESSION):
                setattr(_module(), _SESSION, None)
            raise
        self.is_running = True
        return True

    def stop(self, save: bool = True) -> None:
        """End the session and write what it saw."""
        if self.is_running:
            self.is_running = False
            self._stop(save=save)

    def yield_to_script(self, on_start: Callable[[], None], patches: Patches | None = None) -> None:
        """Let the script's own sessions win: `on_start` runs before one begins (and must end ours).

        `patches` notes what was replaced.
        """
        patches = Patches() if patches is None else patches

        @functools.wraps(self._start)
        def start(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
            on_start()
            result = users_start(*args, **kwargs)
            self._has_users = True
            return result

        @functools.wraps(self._stop)
        def stop(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
            self._has_users = False
            return users_stop(*args, **kwargs)

        users_start, users_stop = self._start, self._stop
        for module in (self._api, _module()):
            patches.set(module, "start", start)
            patches.set(module, "stop", stop)


def _module() -> Any:  # noqa: ANN401
    """Where Keras' TensorBoard and `Profile` start their sessions."""
    from tensorflow.python.profiler import profiler_v2

    return profiler_v2


def profile_bytes(folder: Path) -> int:
    """Size of the profile files under a folder."""
    return sum(path.stat().st_size for path in folder.glob("plugins/profile/*/*.xplane.pb"))


def move_profile(source: Path, target: Path) -> None:
    """Put a finished profile in place; an older one of ours goes."""
    shutil.rmtree(target / "plugins" / "profile", ignore_errors=True)
    if (source / "plugins").is_dir():
        (target / "plugins").mkdir(parents=True, exist_ok=True)
        (source / "plugins" / "profile").rename(target / "plugins" / "profile")
    shutil.rmtree(source, ignore_errors=True)
