"""`tf.data.Options` with fields changed.

In: options and dotted fields (`autotune.enabled`).  Out: new options; those given stay as they are, for other datasets may
share them.
"""

from __future__ import annotations

from typing import Any

from advisor.replay.edited import CannotReplay


def changed_options(options: Any, changes: dict[str, Any]) -> Any:  # noqa: ANN401
    """A copy with the fields set, or back at their defaults where the value is None. Raises CannotReplay for unknown fields."""
    copy = _copy(options, "", {name for name, value in changes.items() if value is None})
    for name, value in changes.items():
        if value is None:
            continue
        *groups, field = name.split(".")
        group = copy
        try:
            for each in groups:
                group = getattr(group, each)
            setattr(group, field, value)
        except (AttributeError, TypeError, ValueError) as error:
            raise CannotReplay(f"The option {name}", f"it cannot be set to {value!r} ({error})") from None
    return copy


def _copy(group: Any, prefix: str, without: set[str]) -> Any:  # noqa: ANN401
    new = type(group)()
    for name, value in getattr(group, "_options", {}).items():
        if prefix + name in without or value is None:
            continue
        setattr(new, name, _copy(value, f"{prefix}{name}.", without) if hasattr(value, "_options") else value)
    return new
