"""Do something right after a package has been imported, and nothing if it never is.

In: package names and what to do.  Out: an import hook, so that a script without TensorFlow never loads it, and one that
sets environment variables first still does so in time.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


class AfterImport:
    """A meta path finder that finds nothing itself: it lets the others find, and runs an action after the module ran."""

    def __init__(self, actions: dict[str, Callable[[ModuleType], None]]) -> None:
        self._actions = dict(actions)

    def install(self) -> None:
        """Watch from now on; packages that are there already get their action at once."""
        for name in list(self._actions):
            if name in sys.modules:
                self._actions.pop(name)(sys.modules[name])
        sys.meta_path.insert(0, self)

    def remove(self) -> None:
        """Watch no longer, also for a package that is being imported at this moment."""
        self._actions.clear()
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Part of Python's import protocol. Also asked by those who only want to know: nothing is done until it runs."""
        if name not in self._actions:
            return None
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            spec = None if finder is self or find is None else find(name, path, target)
            if spec is not None:
                self._extend(name, spec.loader)
                return spec  # type: ignore[no-any-return]
        return None

    def _extend(self, name: str, loader: Any) -> None:  # noqa: ANN401
        """Make this one loader object run the action after the module; its type stays what it is."""
        original = getattr(loader, "exec_module", None)
        if original is None:
            return

        def exec_module(module: ModuleType) -> None:
            original(module)
            action = self._actions.pop(name, None)
            if action is not None:
                action(module)

        with contextlib.suppress(AttributeError):
            loader.exec_module = exec_module
