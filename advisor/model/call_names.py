"""How texts name a call and its place in the source.

In: a `Call`.  Out: `map(decode)`, `train.py:17`, `line 15 of transforms.py`.
"""

from __future__ import annotations

from advisor.model.calls import Call, CodeLine, Site


def label(call: Call) -> str:
    """A readable name of a call: `map(decode)` if the function has a name, otherwise `map`."""
    name = call.function.name if call.function else ""
    return f"{call.method}({name})" if name else call.method


def place(call: Call) -> str:
    """The position of a call: `train.py:17`, or `an unknown line`."""
    return f"{_name(call.site.file)}:{call.site.line}" if call.site else "an unknown line"


def line_in(call: Call | None, at: Site | CodeLine) -> str:
    """A line of the function of a call: `line 15`, or `line 15 of transforms.py` if another file defines the function."""
    is_beside = call is not None and call.site is not None and call.site.file != at.file
    return f"line {at.line}{of_file(at.file if is_beside else '')}"


def of_file(file: str) -> str:
    """What follows the number of a line if its file has to be named: ` of data.py`; empty if `file` is."""
    return f" of {_name(file)}" if file else ""


def _name(file: str) -> str:
    return file.replace("\\", "/").rpartition("/")[2]
