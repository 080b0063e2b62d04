"""Writes the function of batches that `advisor.splitting` made of the text of a function.

In: `Source`, a located call of `map` and the `VectorizeParts` edit, which contains the text.  Out: the splices: the name of the
new function in the call, and its definition after that of the function of one element; if that is in another file, the import.
`advisor.replay.batch_parts` compiles the same text for the proof.
"""

from __future__ import annotations

from collections.abc import Collection

import libcst as cst

from advisor.model.edits import STANDING_FOR, VectorizeParts
from advisor.rewrite.arguments import find_argument
from advisor.rewrite.batch_function import NameOf
from advisor.rewrite.cannot_rewrite import CannotRewriteError
from advisor.rewrite.new_imports import import_beside
from advisor.rewrite.splices import Splice
from advisor.rewrite.syntax import LocatedCall, Source, find_all


def vectorize_parts(
    source: Source, call: LocatedCall, edit: VectorizeParts, name_of: NameOf, written: Collection[Splice] = ()
) -> list[Splice]:
    """Pass the new function, and write its definition, or import it from the file that gets the definition.

    Args:
        source: The text.
        call: The `map`.
        edit: The edit.
        name_of: Returns a name of TensorFlow as the file writes it.
        written: The definitions that were written for other calls.

    Returns:
        The change of the argument, and the definition or the import if it is not among those written.

    Raises:
        CannotRewriteError: The function is not an argument of this call, or its definition has changed.
    """
    argument = find_argument(call, "map_func")
    if argument is None:
        raise CannotRewriteError(f"The function of {call.method} is not an argument in this line.")
    change = Splice(argument.start, argument.end, edit.argument or edit.name)
    if edit.file:
        companions = [import_beside(source, edit.beside, [edit.name])] if edit.beside else []
    else:
        companions = [batch_definition(source, edit, name_of)]
    return [change, *(companion for companion in companions if companion not in written)]


def batch_definition(source: Source, edit: VectorizeParts, name_of: NameOf) -> Splice:
    """Write the definition of the new function.

    Args:
        source: The text of the file that defines the function of one element.
        edit: The edit.
        name_of: Returns a name of TensorFlow as this file writes it.

    Raises:
        CannotRewriteError: The definition has changed.
    """
    definition = _definition(source, edit)
    end = source.line_span(definition)[1]
    text = edit.text
    for name, function in STANDING_FOR.items():
        if name in text:
            text = text.replace(name, name_of(function, definition))
    gap = source.newline * (1 if edit.text[:1] in " \t" else 2)
    before = "" if source.text[end - 1 : end] in ("\n", "\r") else source.newline
    return Splice(end, end, f"{before}{gap}{text}")


def _definition(source: Source, edit: VectorizeParts) -> cst.FunctionDef:
    """Return the definition of the function of one element."""
    for node in find_all(source.module, cst.FunctionDef):
        start, end = source.line_span(node)
        is_same = source.text[start:end].rstrip("\r\n") == edit.original.rstrip("\r\n")
        if is_same and source.line_number(node) == edit.line:
            return node
    raise CannotRewriteError("The definition of the function has changed.")
