"""Decorates a function that runs a training step eagerly with `@tf.function`.

In: `Source`, the function that was seen to run.  Out: the splice. A graph is traced once: whatever the function does in Python
then happens once, and whatever it reads in Python keeps its value. So its text has to show that it does nothing but call
TensorFlow, Keras and what the script makes of them, and that what it reads does not change.
"""

from __future__ import annotations

import builtins

import libcst as cst
from libcst.helpers import get_full_name_for_node

from advisor.model.edits import DecorateFunction
from advisor.rewrite.cannot_rewrite import CannotRewriteError
from advisor.rewrite.splices import Splice
from advisor.rewrite.syntax import Source, find_all, mentions

_LIBRARIES = frozenset({"tensorflow", "keras", "tf_keras"})
_BUILT_IN = frozenset({
    "True", "False", "None", "abs", "dict", "enumerate", "isinstance", "len", "list", "max", "min", "range", "reversed", "sum",
    "tuple", "zip",
})  # fmt: skip
"""Built-in names that change nothing and read nothing but their arguments."""
_EFFECTS = frozenset({"append", "extend", "insert", "item", "numpy", "pop", "popitem", "setdefault", "tolist", "write"})
"""Methods that change a Python object, or make a Python value of a tensor."""
_STATEMENTS = (
    cst.Global,
    cst.Nonlocal,
    cst.Yield,
    cst.Await,
    cst.Try,
    cst.Del,
    cst.ClassDef,
    cst.Lambda,
    cst.Import,
    cst.ImportFrom,
)
"""Statements and expressions that are not looked into."""


def decorate(source: Source, edit: DecorateFunction) -> Splice:
    """Return the splice that adds the decorator.

    Args:
        source: The text of the file.
        edit: The name of the function and the line in which it begins, as recorded.

    Raises:
        CannotRewriteError: The text does not show that the function means the same as a graph; the message gives the reason.
    """
    function = _function(source, edit)
    name = edit.function
    if function.asynchronous is not None:
        raise CannotRewriteError(f"{name} is asynchronous.")
    inner = [nested for nested in find_all(function, cst.FunctionDef) if nested is not function]
    for node in (*inner, *(node for kind in _STATEMENTS for node in find_all(function, kind))):
        raise CannotRewriteError(f"{name} does more than a training step (line {source.line_number(node)}).")
    own = _own_names(function, name, source)
    for attribute in find_all(function.body, cst.Attribute):
        if attribute.attr.value in _EFFECTS:
            raise CannotRewriteError(
                f"{name} uses .{attribute.attr.value} (line {source.line_number(attribute)}), which happens once in a graph."
            )
    known = _constant_names(source)
    for mention in dict.fromkeys(mentions(function.body)):
        if mention not in own and mention not in known:
            raise CannotRewriteError(f"{name} uses {mention}, whose value or effects in a graph are unknown.")
    written = source.names.write("tf.function", source.parents(function))
    if written is None or written[1] is not None:
        raise CannotRewriteError("The file does not import TensorFlow under a name of its own.")
    place = source.line_span(function)[0]
    return Splice(place, place, f"@{written[0]}{source.newline}")


def _function(source: Source, edit: DecorateFunction) -> cst.FunctionDef:
    """The function, which is defined once, at the top of the file, where it was recorded, without a decorator."""
    definitions = [
        definition for definition in find_all(source.module, cst.FunctionDef) if definition.name.value == edit.function
    ]
    if len(definitions) != 1 or source.line_number(definitions[0]) != edit.line:
        raise CannotRewriteError(f"{edit.function} is not defined once, in line {edit.line}.")
    if not any(definitions[0] is line for line in source.module.body):
        raise CannotRewriteError(f"{edit.function} is not a function at the top of the file.")
    if definitions[0].decorators:
        raise CannotRewriteError(f"{edit.function} is decorated already.")
    return definitions[0]


def _own_names(function: cst.FunctionDef, name: str, source: Source) -> set[str]:
    """The parameters and local variables of a function.

    Raises:
        CannotRewriteError: It assigns to something else.
    """
    own = {param.name.value for param in find_all(function.params, cst.Param)}
    body = function.body
    targets: list[cst.CSTNode] = [node.target for node in find_all(body, cst.AssignTarget)]
    targets += [node.target for node in find_all(body, cst.AnnAssign)]
    targets += [node.target for node in find_all(body, cst.AugAssign)]
    targets += [node.target for node in find_all(body, cst.NamedExpr)]
    targets += [node.target for node in find_all(body, cst.For)]
    targets += [node.target for node in find_all(body, cst.CompFor)]
    targets += [node.name for node in find_all(body, cst.AsName)]
    while targets:
        target = targets.pop()
        if isinstance(target, cst.Name):
            own.add(target.value)
        elif isinstance(target, cst.Tuple | cst.List):
            targets += [element.value for element in target.elements]
        elif isinstance(target, cst.StarredElement):
            targets.append(target.value)
        else:
            raise CannotRewriteError(f"{name} changes an object in line {source.line_number(target)}.")
    return own


def _constant_names(source: Source) -> set[str]:
    """Names of the file that keep their value: imports of TensorFlow and Keras, and what its top makes of them, once."""
    known = {name for name in _BUILT_IN if hasattr(builtins, name) and not source.names.bound[name]}
    known |= {binding.name for binding in source.names.bindings if not source.names.bound[binding.name]}
    for line in source.module.body:
        for part in line.body if isinstance(line, cst.SimpleStatementLine) else ():
            if isinstance(part, cst.Import | cst.ImportFrom):
                known |= {name for name in _imported(part) if source.names.bound[name] == 1}
            elif isinstance(part, cst.Assign):
                own = {
                    name.value
                    for comprehension in find_all(part.value, cst.CompFor)
                    for name in find_all(comprehension.target, cst.Name)
                }
                if not set(mentions(part.value)) <= known | own:  # a logger, say: its methods have effects in Python
                    continue
                targets = [target.target for target in part.targets]
                known |= {t.value for t in targets if isinstance(t, cst.Name) and source.names.bound[t.value] == 1}
    return known


def _imported(statement: cst.Import | cst.ImportFrom) -> set[str]:
    """The names that a statement imports from Keras; those of TensorFlow are known already."""
    if isinstance(statement.names, cst.ImportStar):
        return set()
    module = statement.module if isinstance(statement, cst.ImportFrom) else None
    if isinstance(statement, cst.ImportFrom) and (statement.relative or module is None):
        return set()
    names = set()
    for alias in statement.names:
        path = get_full_name_for_node(module if module is not None else alias.name) or ""
        if path.partition(".")[0] in _LIBRARIES:
            plain = path.partition(".")[0] if module is None else alias.evaluated_name
            names.add(alias.evaluated_alias or plain)
    return names
