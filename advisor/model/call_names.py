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
    return f"{_name(call.site.file)}:{call.site.line}" if call.site else "an unknown line"


def of_file(file: str) -> str:
    """What follows the number of a line if its file has to be named: ` of data.py`; empty if `file` is."""
    return f" of {_name(file)}" if file else ""


def _name(file: str) -> str:
    return file.replace("\\", "/").rpartition("/")[2]
