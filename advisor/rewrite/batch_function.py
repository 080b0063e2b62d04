"""Writes the function of a `map` in a form that takes whole batches, through `tf.vectorized_map`.

In: `Source` and a located call of `map`.  Out: the splices. A function that is defined in the same module gets a companion below
it (`normalize_batch`); any other function moves into a lambda as it is written, so its names must mean the same there.
`advisor.replay.batch_function` builds the same function for the proof.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

import libcst as cst

from advisor.model.calls import Call
from advisor.model.edits import Vectorize
from advisor.rewrite.arguments import find_argument
from advisor.rewrite.cannot_rewrite import CannotRewriteError
from advisor.rewrite.splices import Splice
from advisor.rewrite.syntax import LocatedCall, Source, find_all

NameOf = Callable[[str, cst.CSTNode], str]
"""Returns a name of TensorFlow (`tf.function`) as the file writes it at a node; raises CannotRewriteError."""


def vectorize(
    source: Source,
    call: LocatedCall,
    edit: Vectorize,
    feeding: Call | None,
    name_of: NameOf,
    written: Collection[Splice] = (),
) -> list[Splice]:
    """Wrap the function of a `map`.

    Args:
        source: The text.
        call: The `map`.
        edit: Whether its function needs AutoGraph.
        feeding: The call whose elements it takes; None if unknown.
        name_of: See `NameOf`.
        written: The companions that were written for other calls.

    Returns:
        The change of the argument, and the companion if a new one is needed.

    Raises:
        CannotRewriteError: The function is not an argument of this call, or would mean something else in a lambda.
    """
    argument = find_argument(call, "map_func")
    if argument is None:
        raise CannotRewriteError(f"The function of {call.method} is not an argument in this line.")
    text = source.text[argument.start : argument.end]
    is_single = feeding is not None and bool(feeding.element_spec) and not feeding.element_spec.startswith("(")
    definition = definition_of(source, text)
    if definition is not None:
        named = _companion(source, definition, edit, is_single, name_of)
        if named is not None and all(other == named[1] or other.start != named[1].start for other in written):
            return [Splice(argument.start, argument.end, named[0]), *(() if named[1] in written else (named[1],))]
    check_meaning(source, call, text)
    rows, body = _body(source, text, edit, is_single, lambda name: name_of(name, call.node))
    return [Splice(argument.start, argument.end, f"lambda {rows}: {body}")]


def _body(
    source: Source, function: str, edit: Vectorize, is_single: bool, name_of: Callable[[str], str]
) -> tuple[str, str]:
    """Return (the parameters, the expression) of a function of a batch."""
    vectorized_map = name_of("tf.vectorized_map")
    rows, row = source.names.fresh("rows"), source.names.fresh("row")
    called = function if edit.is_plain else f"{name_of('tf.function')}({function})"
    if is_single:
        return rows, f"{vectorized_map}({called}, {rows}, fallback_to_while_loop=False)"
    if edit.is_plain and function.startswith("lambda"):
        called = f"({called})"
    per_row = f"lambda {row}: {called}(*{row})"
    return f"*{rows}", f"{vectorized_map}({per_row}, {rows}, fallback_to_while_loop=False)"


def definition_of(source: Source, text: str) -> cst.FunctionDef | None:
    """Return the definition of a function if the text is its name, and the module defines nothing else of this name.

    Args:
        source: The text of the file.
        text: An argument as it is written; anything but a plain name has no definition.
    """
    if source.names.bound[text] != 1:
        return None
    functions = [node for node in source.module.body if isinstance(node, cst.FunctionDef) and node.name.value == text]
    return functions[0] if len(functions) == 1 and functions[0].asynchronous is None else None


def _companion(
    source: Source, definition: cst.FunctionDef, edit: Vectorize, is_single: bool, name_of: NameOf
) -> tuple[str, Splice] | None:
    """Return the name and the text of a function of a batch that follows the function of one element; None if unclear."""
    end = source.line_span(definition)[1]
    function = definition.name.value
    name = source.names.fresh(f"{function}_batch")
    try:
        rows, body = _body(source, function, edit, is_single, lambda path: name_of(path, definition))
    except CannotRewriteError:
        return None
    if source.text[end - 1] not in "\r\n":
        return None
    lines = ["", "", f"def {name}({rows}):", f"{source.module.default_indent}return {body}", ""]
    return name, Splice(end, end, source.newline.join(lines))


def check_meaning(source: Source, call: LocatedCall, text: str) -> None:
    """Check that the function, as it is written, means the same inside a lambda.

    Args:
        source: The text of the file.
        call: The `map`.
        text: Its function as it is written.

    Raises:
        CannotRewriteError: It means something else there, or nothing.
    """
    if isinstance(source.scope(call.node), cst.ClassDef):
        raise CannotRewriteError(f"{call.method} is called in the body of a class, whose names a lambda does not see.")
    if "#" in text:
        raise CannotRewriteError(f"The function of {call.method} contains a comment.")
    arguments = [argument.value for argument in call.form.holder.args]
    kinds = (cst.NamedExpr, cst.Await, cst.Yield)
    if any(find_all(argument, kind) for argument in arguments for kind in kinds):
        raise CannotRewriteError(f"The arguments of {call.method} do more than name a function.")
