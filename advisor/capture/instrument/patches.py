"""Replaced attributes that can be put back: each change of a class or module is written down with what was there before.

In: an owner, a name and the new value.  Out: after `restore`, the identical original objects.
"""

from __future__ import annotations

import threading
from typing import Any

PATCHING = threading.RLock()
"""Held while attributes are replaced or put back, so that two threads cannot restore each other's wrappers."""
_MISSING = object()


class Patches:
    """The attributes replaced by one user of the hooks."""

    def __init__(self) -> None:
        self._made: list[tuple[Any, str, Any, Any]] = []
        """(owner, name, what was in its `__dict__`, what is there now), in order."""

    def set(self, owner: Any, name: str, value: Any) -> None:  # noqa: ANN401
        """Replace `owner.name`, a class or module attribute."""
        before = vars(owner).get(name, _MISSING)
        setattr(owner, name, value)
        self._made.append((owner, name, before, vars(owner).get(name, value)))

    def restore(self) -> None:
        """Put back what was there, newest first.

        An attribute that somebody else has replaced since then is left alone: putting ours back would undo their change.
        """
        while self._made:
            owner, name, before, ours = self._made.pop()
            if vars(owner).get(name, _MISSING) is not ours:
                continue
            if before is _MISSING:
                delattr(owner, name)
            else:
                setattr(owner, name, before)
