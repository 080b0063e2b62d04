"""Whether a function does the same where the elements have another spec, because it never looks at what differs.

In: the text of a file, the recorded call with the function, and the specs of its elements in two places of a pipeline.  Out: yes
or no. TensorFlow traces the function again for the other spec; its Python code may decide by a shape or a type only if its text
names the parameter.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from advisor.model.calls import Call
from advisor.splitting.cannot_split import CannotSplitError
from advisor.splitting.function_text import FunctionText, ReadText, function_of, no_other_file
from advisor.splitting.names_across import parameters_of


def reads_alike(text: str, call: Call, here: str, there: str, read: ReadText = no_other_file) -> bool:
    """Return whether the text of a function shows that it reads only components that have the same spec in both places.

    Args:
        text: The text of the file that contains the call.
        call: The recorded call, which gets the function.
        here: The spec of its elements, as recorded.
        there: The spec of the elements in the other place.
        read: Reads the file that defines the function, if it is another one.
    """
    ours, theirs = _components(here), _components(there)
    if ours is None or theirs is None or ours.keys() != theirs.keys():
        return False
    try:
        function_text = function_of(text, call, read)
        passed, _ = parameters_of(function_text, here)
    except CannotSplitError:
        return False
    arguments, function = function_text.function.args, function_text.function
    if arguments.vararg or arguments.kwarg or getattr(function, "decorator_list", []):
        return False
    same = {key for key, spec in ours.items() if spec == theirs[key]}
    if all(isinstance(key, str) for key in ours):
        return len(passed) == 1 and _keys_read(function_text, passed[0]) <= same
    if len(passed) != len(ours):
        return False
    return all(number in same or not _is_named(function_text, name) for number, name in enumerate(passed))


def _components(spec: str) -> Mapping[str | int, str] | None:
    """The specs of the components of a tuple or a dictionary; None if the spec is neither, or is not known in full."""
    try:
        node = ast.parse(spec, mode="eval").body
    except (SyntaxError, ValueError):
        return None
    if isinstance(node, ast.Tuple):
        return {number: ast.unparse(part) for number, part in enumerate(node.elts)}
    if isinstance(node, ast.Dict) and node.keys:
        keys = [key.value if isinstance(key, ast.Constant) else None for key in node.keys]
        if all(isinstance(key, str) for key in keys):
            return {str(key): ast.unparse(part) for key, part in zip(keys, node.values, strict=True)}
    return None


def _is_named(function_text: FunctionText, name: str) -> bool:
    return any(isinstance(node, ast.Name) and node.id == name for node in _nodes(function_text))


def _keys_read(function_text: FunctionText, name: str) -> set[str | int | None]:
    """The keys with which a dictionary is read; with None if it is used in any other way."""
    nodes = _nodes(function_text)
    items = [node for node in nodes if isinstance(node, ast.Subscript) and _is(node.value, name)]
    keys = {node.slice.value if isinstance(node.slice, ast.Constant) else None for node in items}
    is_only_read = all(isinstance(node.ctx, ast.Load) for node in items)
    if not is_only_read or len(items) != sum(_is(node, name) for node in nodes):
        return {None}
    return {key if isinstance(key, str) else None for key in keys}


def _is(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _nodes(function_text: FunctionText) -> list[ast.AST]:
    body = function_text.function.body
    return [node for part in (body if isinstance(body, list) else [body]) for node in ast.walk(part)]


__all__ = ["reads_alike"]
