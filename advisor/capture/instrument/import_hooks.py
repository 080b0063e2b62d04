"""Runs a function immediately after a package has been imported.

In: package names and functions.  Out: an import hook. So the advisor does not import TensorFlow for a script that does not use
it, and a script can set environment variables before it imports TensorFlow.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


class AfterImport:
    """A meta path finder that delegates to the other finders and runs an action after the module has been executed.

    Args:
        actions: Package name -> function that is called once with the imported module.
    """

    def __init__(self, actions: dict[str, Callable[[ModuleType], None]]) -> None:
        self._actions = dict(actions)

    def install(self) -> None:
        """Install the hook. The actions of packages that are already imported run immediately."""
        for name in list(self._actions):
            if name in sys.modules:
                self._actions.pop(name)(sys.modules[name])
        sys.meta_path.insert(0, self)

    def remove(self) -> None:
        """Remove the hook. The action of a package whose import is in progress does not run either."""
        self._actions.clear()
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Return the module spec found by the other finders, with the action added to its loader.

        Part of Python's import protocol. It is also called without a subsequent import, so the action runs only when the
        module is executed.

        Args:
            name: Full name of the module that is imported.
            path: The `__path__` of its parent package; None for a top-level module.
            target: The module to reload; None if none is reloaded.

        Returns:
            The spec; None if no action waits for the module, or if no other finder finds it.
        """
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
        """Make this loader instance run the action after it has executed the module; its type is not changed."""
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
