"""Changes fields of `tf.data.Options`.

In: options and dotted field names (`autotune.enabled`).  Out: new options. The original ones are not modified, because other
datasets may share them.
"""

from __future__ import annotations

from typing import Any

from advisor.replay.edited import CannotReplay


def changed_options(options: Any, changes: dict[str, Any]) -> Any:  # noqa: ANN401
    """Return a copy of the options with some fields changed.

    Args:
        options: The original options.
        changes: Dotted field name -> new value; None: the default.

    Raises:
        CannotReplay: A field does not exist or does not accept the value.
    """
    copy = _copy(options, "", {name for name, value in changes.items() if value is None})
    for name, value in changes.items():
        if value is None:
            continue
        *groups, field = name.split(".")
        group = copy
        try:
            for group_name in groups:
                group = getattr(group, group_name)
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
