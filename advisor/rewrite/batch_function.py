"""Writes the function of a `map` in a form that takes whole batches: `lambda rows: tf.vectorized_map(...)`.

In: `Source` and a located call of `map`.  Out: the splice. The function as it is written moves into a lambda, so its names must
mean the same there. `advisor.replay.batch_function` builds the same function for the proof.
"""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst

from advisor.model.recording import Call
from advisor.rewrite.arguments import find_argument
from advisor.rewrite.cannot_rewrite import CannotRewriteError
from advisor.rewrite.splices import Splice
from advisor.rewrite.syntax import LocatedCall, Source, find_all


def vectorize(source: Source, call: LocatedCall, feeding: Call | None, name_of: Callable[[str], str]) -> Splice:
    """Wrap the function of a `map`.

    Args:
        source: The text.
        call: The `map`.
        feeding: The call whose elements it takes; None if unknown.
        name_of: Returns a name of TensorFlow (`tf.function`) as this file writes it there.

    Raises:
        CannotRewriteError: The function is not an argument of this call, or would mean something else in a lambda.
    """
    argument = find_argument(call, "map_func")
    if argument is None:
        raise CannotRewriteError(f"The function of {call.method} is not an argument in this line.")
    text = source.text[argument.start : argument.end]
    _check_meaning(source, call, text)
    function, vectorized_map = name_of("tf.function"), name_of("tf.vectorized_map")
    rows, row = source.names.fresh("rows"), source.names.fresh("row")
    if feeding is not None and feeding.element_spec and not feeding.element_spec.startswith("("):  # a single argument
        new = f"lambda {rows}: {vectorized_map}({function}({text}), {rows}, fallback_to_while_loop=False)"
    else:
        each = f"lambda {row}: {function}({text})(*{row})"
        new = f"lambda *{rows}: {vectorized_map}({each}, {rows}, fallback_to_while_loop=False)"
    return Splice(argument.start, argument.end, new)


def _check_meaning(source: Source, call: LocatedCall, text: str) -> None:
    """Raise CannotRewriteError if the function, as it is written, means something else (or nothing) inside a lambda."""
    if isinstance(source.scope(call.node), cst.ClassDef):
        raise CannotRewriteError(f"{call.method} is called in the body of a class, whose names a lambda does not see.")
    if "#" in text:
        raise CannotRewriteError(f"The function of {call.method} contains a comment.")
    arguments = [argument.value for argument in call.form.holder.args]
    kinds = (cst.NamedExpr, cst.Await, cst.Yield)
    if any(find_all(argument, kind) for argument in arguments for kind in kinds):
        raise CannotRewriteError(f"The arguments of {call.method} do more than name a function.")
