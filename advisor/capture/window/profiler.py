"""Runs TensorFlow's profiler, and gives precedence to profiler sessions of the script.

In: a folder.  Out: `plugins/profile/<time>/<host>.xplane.pb` in it.
"""

from __future__ import annotations

import functools
import shutil
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from advisor.capture.instrument.patches import Patches
from advisor.capture.window.process_memory import ProcessMemory

_SESSION = "_profiler"
"""Global variable of TensorFlow's module: the current session, or None."""


class Profiler:
    """Starts and stops profiler sessions. TensorFlow supports only one session at a time.

    Args:
        tensorflow: The imported module.
    """

    def __init__(self, tensorflow: ModuleType) -> None:
        self._api = tensorflow.profiler.experimental
        self._start, self._stop = self._api.start, self._api.stop
        self.is_running = False
        self.memory = ProcessMemory()
        self._has_users = False

    @property
    def is_users_running(self) -> bool:
        """Whether a session of the script is running, even if it was started before this object was created.

        The latter is read from a private variable of TensorFlow.
        """
        return self._has_users or (not self.is_running and getattr(_module(), _SESSION, None) is not None)

    def start(self, folder: Path) -> bool:
        """Start a session.

        Args:
            folder: Folder for the profile.

        Returns:
            False if a session of the script is running; then no session is started.
        """
        if self.is_users_running:
            return False
        self.memory.before_profile()
        options = self._api.ProfilerOptions(host_tracer_level=2, python_tracer_level=0, device_tracer_level=1)
        try:
            self._start(str(folder), options=options)
        except Exception:
            # a session of the profiler server is running: without this reset TensorFlow would refuse later sessions of the script
            if hasattr(_module(), _SESSION):
                setattr(_module(), _SESSION, None)
            self.memory.after_profile()
            raise
        self.is_running = True
        return True

    def stop(self, save: bool = True) -> None:
        """Stop the session and write the profile.

        Args:
            save: False: discard the profile.
        """
        if self.is_running:
            self.is_running = False
            try:
                self._stop(save=save)
            finally:
                self.memory.after_profile()

    def yield_to_script(self, on_start: Callable[[], None], patches: Patches | None = None) -> None:
        """Give precedence to the sessions of the script.

        Args:
            on_start: Called before a session of the script starts; must stop the session of this object.
            patches: Records the replaced attributes, so that they can be restored.
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
    """Return the module through which Keras' `TensorBoard` callback and `Profile` start their sessions."""
    from tensorflow.python.profiler import profiler_v2

    return profiler_v2


def profile_bytes(folder: Path) -> int:
    """Return the total size of the profiles in a folder, in bytes."""
    return sum(path.stat().st_size for path in folder.glob("plugins/profile/*/*.xplane.pb"))


def move_profile(source: Path, target: Path) -> None:
    """Move a finished profile to the run folder `target` and remove `source`. A previous profile in `target` is replaced."""
    shutil.rmtree(target / "plugins" / "profile", ignore_errors=True)
    if (source / "plugins").is_dir():
        (target / "plugins").mkdir(parents=True, exist_ok=True)
        (source / "plugins" / "profile").rename(target / "plugins" / "profile")
    shutil.rmtree(source, ignore_errors=True)
