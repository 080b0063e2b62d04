"""Writes a function of batches that pads what a function makes of a batch of texts.

In: `Source`, a located call of `map` and the `VectorizeRagged` edit.  Out: the splices. A function that is defined in the same
module gets a companion below it (`encode_batch`); any other one moves into a lambda. `advisor.replay.ragged_function` builds the
same function for the proof.
"""

from __future__ import annotations

from collections.abc import Collection

from advisor.model.edits import VectorizeRagged
from advisor.rewrite.arguments import find_argument
from advisor.rewrite.batch_function import check_meaning, definition_of
from advisor.rewrite.cannot_rewrite import CannotRewriteError
from advisor.rewrite.splices import Splice
from advisor.rewrite.syntax import LocatedCall, Source


def pad_ragged(
    source: Source, call: LocatedCall, edit: VectorizeRagged, written: Collection[Splice] = ()
) -> list[Splice]:
    """Wrap the function of a `map`.

    Args:
        source: The text.
        call: The `map`.
        edit: The edit.
        written: The companions that were written for other calls.

    Returns:
        The change of the argument, and the companion if a new one is needed.

    Raises:
        CannotRewriteError: The function is not an argument of this call, or cannot be wrapped there.
    """
    argument = find_argument(call, "map_func")
    if argument is None:
        raise CannotRewriteError(f"The function of {call.method} is not an argument in this line.")
    text = source.text[argument.start : argument.end]
    rows, results = source.names.fresh("rows"), source.names.fresh("results")
    definition = definition_of(source, text)
    end = source.line_span(definition)[1] if definition is not None else 0
    if definition is not None and source.text[end - 1 : end] in ("\n", "\r"):
        name, indent = source.names.fresh(f"{text}_batch"), source.module.default_indent
        called = f"{text}(*{rows})"
        body = [f"return {edit.expression(called)}"]
        if edit.results:
            body = [f"{results} = {called}", f"return {edit.expression(results)}"]
        lines = ["", "", f"def {name}(*{rows}):", *(f"{indent}{line}" for line in body), ""]
        companion = Splice(end, end, source.newline.join(lines))
        if all(other == companion or other.start != end for other in written):
            change = Splice(argument.start, argument.end, name)
            return [change] if companion in written else [change, companion]
    if edit.results:
        raise CannotRewriteError(f"The function of {call.method} returns a tuple and is not defined in this module.")
    check_meaning(source, call, text)
    return [Splice(argument.start, argument.end, f"lambda *{rows}: {edit.expression(f'({text})(*{rows})')}")]
