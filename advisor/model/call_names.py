"""How texts name a call and its place in the source.

In: a `Call`.  Out: `map(decode)`, `train.py:17`.
"""

from __future__ import annotations

from advisor.model.calls import Call


def label(call: Call) -> str:
    """A readable name of a call: `map(decode)` if the function has a name, otherwise `map`."""
    name = call.function.name if call.function else ""
    return f"{call.method}({name})" if name else call.method


def place(call: Call) -> str:
    """The position of a call: `train.py:17`, or `an unknown line`."""
    return (
        f"{call.site.file.replace(chr(92), '/').rpartition('/')[2]}:{call.site.line}"
        if call.site
        else "an unknown line"
    )
