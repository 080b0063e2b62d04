"""Writes another function in place of the one that a call takes.

In: `Source`, a located call and the text of the function.  Out: the splices: the argument, and the definition of a function with
a name, which goes before the statement of the call.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from itertools import takewhile

import libcst as cst

from advisor.model.edits import defined_name
from advisor.rewrite.arguments import find_argument
from advisor.rewrite.batch_function import NameOf
from advisor.rewrite.cannot_rewrite import CannotRewriteError
from advisor.rewrite.splices import Splice, lines_of
from advisor.rewrite.syntax import LocatedCall, Source

TENSORFLOW_NAMES = re.compile(r"\btf(?:\.\w+)+")
_INDENT = "    "
"""By what `SetFunction.text` is indented."""


def set_function(
    source: Source, call: LocatedCall, text: str, name_of: NameOf, written: Collection[Splice] = ()
) -> list[Splice]:
    """Replace the function of a call.

    Args:
        source: The text.
        call: The call.
        text: The function, see `SetFunction.text`.
        name_of: Returns a name of TensorFlow as the file writes it.
        written: The definitions that were written for other calls.

    Returns:
        The change of the argument, and the definition if the function has one.

    Raises:
        CannotRewriteError: The function is not an argument of this call, or there is no place for a definition.
    """
    argument = find_argument(call, "map_func")
    if argument is None:
        raise CannotRewriteError(f"The function of {call.method} is not an argument in this line.")
    if "#" in source.text[argument.start : argument.end]:
        raise CannotRewriteError(f"The function of {call.method} contains a comment.")
    text = TENSORFLOW_NAMES.sub(lambda match: name_of(match.group(), call.node), text)
    name = defined_name(text)
    if not name:
        return [Splice(argument.start, argument.end, text)]
    taken = {defined_name(splice.text.strip()) for splice in written}
    names = (source.names.fresh(f"{name}_{number}" if number > 1 else name) for number in range(1, 100))
    chosen = next(each for each in names if each not in taken)
    definition = _definition(source, call, text.replace(f"def {name}(", f"def {chosen}(", 1), written)
    return [Splice(argument.start, argument.end, chosen), definition]


def _definition(source: Source, call: LocatedCall, text: str, written: Collection[Splice]) -> Splice:
    """Return the definition before the statement of the call and the comments above it, where it sees what the call sees."""
    statement, block = source.statement(call.node)
    if isinstance(source.scope(call.node), cst.ClassDef):
        raise CannotRewriteError(
            f"{call.method} is called in the body of a class, where a function would become a method."
        )
    start = source.line_span(statement)[0]
    indent = source.indent(statement)
    before = lines_of(source.text[:start])
    leading = reversed(getattr(statement, "leading_lines", ()))
    comments = len(list(takewhile(lambda line: line.comment is not None, leading)))
    above = before[: len(before) - comments]
    is_first = bool(above) and block.body[0] is statement and isinstance(block, cst.IndentedBlock)
    wanted = 0 if is_first or not above else 1 if indent else 2
    blank = next((number for number, line in enumerate(reversed(above)) if line.strip()), len(above))
    unit = source.module.default_indent
    lines = [indent + line.replace(_INDENT, unit) if line else line for line in text.splitlines()]
    place = len("".join(above))
    gap = [""] * (1 if indent else 2)
    if any(splice.start == place and splice.text.endswith(source.newline * 2) for splice in written):
        wanted = 0  # the gap of that definition is above
    return Splice(place, place, source.newline.join([*[""] * max(0, wanted - blank), *lines, *gap, ""]))
