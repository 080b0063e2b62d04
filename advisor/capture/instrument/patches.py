"""Replaces attributes of classes and modules and can restore the original ones.

In: an owner, a name and the new value.  Out: after `restore`, the identical original objects.
"""

from __future__ import annotations

import threading
from typing import Any

PATCHING = threading.RLock()
"""Held while attributes are replaced or restored, so that two threads cannot restore each other's wrappers."""
_MISSING = object()


class Patches:
    """The attributes replaced by one user of the hooks."""

    def __init__(self) -> None:
        self._made: list[tuple[Any, str, Any, Any]] = []
        """(owner, name, previous value in its `__dict__`, new value), in order."""

    def set(self, owner: Any, name: str, value: Any) -> None:  # noqa: ANN401
        """Replace `owner.name`, a class or module attribute.

        Args:
            owner: The module or class that has the attribute.
            name: Name of the attribute.
            value: The replacement, usually a function that calls the original.
        """
        before = vars(owner).get(name, _MISSING)
        setattr(owner, name, value)
        self._made.append((owner, name, before, vars(owner).get(name, value)))

    def restore(self) -> None:
        """Restore the original attributes, newest first.

        An attribute that other code has replaced in the meantime is left alone: restoring it would undo that replacement.
        """
        while self._made:
            owner, name, before, replacement = self._made.pop()
            if vars(owner).get(name, _MISSING) is not replacement:
                continue
            if before is _MISSING:
                delattr(owner, name)
            else:
                setattr(owner, name, before)
