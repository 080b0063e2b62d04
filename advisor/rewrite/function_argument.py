"""Sets an argument of the `tf.function` that a function becomes: of its decorator, or of the call that wraps it.

In: `Source`, the function.  Out: the splices. It has to become a `tf.function` in one place only, which may be written as
`@tf.function`, `@tf.function(...)`, `tf.function(f)`, `tf.function(f, ...)` or `tf.function(...)(f)`.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst
from libcst.helpers import get_full_name_for_node

from advisor.model.edits import SetFunctionArgument
from advisor.rewrite.arguments import set_keyword
from advisor.rewrite.cannot_rewrite import CannotRewriteError
from advisor.rewrite.splices import Splice
from advisor.rewrite.syntax import Source, find_all, mentions

_SET_ALREADY = {
    "jit_compile": frozenset({"jit_compile", "experimental_compile"}),
    "reduce_retracing": frozenset({"reduce_retracing", "experimental_relax_shapes", "input_signature"}),
}
"""Argument -> those that leave nothing to change if the script passes them."""
_OF_DATASETS = frozenset({
    "apply", "filter", "flat_map", "from_generator", "group_by_window", "interleave", "map", "map_with_options", "reduce", "scan",
    "take_while",
})  # fmt: skip
"""Methods that call a function for the elements of a dataset."""


def set_function_argument(source: Source, edit: SetFunctionArgument) -> Iterator[Splice]:
    """Yield the splices.

    Raises:
        CannotRewriteError: It is unclear which `tf.function` it is, or the argument is set; the message gives the reason.
    """
    definition = _definition(source, edit)
    wrapping = [call for call in find_all(source.module, cst.Call) if _wraps(source, call, edit.function)]
    decorators = definition.decorators
    if not decorators and not wrapping:
        raise CannotRewriteError(
            f"{edit.function} has 0 decorators, and no tf.function({edit.function}) is in the file."
        )
    if len(decorators) > 1:
        raise CannotRewriteError(
            f"{edit.function} has {len(decorators)} decorators, so it is unclear what is compiled."
        )
    places = len(decorators) + len(wrapping)
    if places > 1:
        raise CannotRewriteError(
            f"{edit.function} becomes a tf.function in {places} places, so it is unclear which one."
        )
    _check_no_dataset(source, edit, wrapping)
    if wrapping:
        (call,) = wrapping
        inner = call.func if isinstance(call.func, cst.Call) else call
        yield from _set(source, edit, inner, positional=int(inner is call))
        return
    decorator = decorators[0].decorator
    name = decorator.func if isinstance(decorator, cst.Call) else decorator
    if not _is_tf_function(source, name):
        raise CannotRewriteError(f"{source.code(name)} does not show that {edit.function} is a tf.function.")
    if isinstance(decorator, cst.Call):
        yield from _set(source, edit, decorator, positional=0)
    else:
        end = source.outer_span(decorator)[1]
        yield Splice(end, end, f"({edit.name}={edit.value!r})")


def _definition(source: Source, edit: SetFunctionArgument) -> cst.FunctionDef:
    """The definition of the function, of which there is one, in the line in which it was recorded."""
    definitions = [node for node in find_all(source.module, cst.FunctionDef) if node.name.value == edit.function]
    if len(definitions) != 1:
        raise CannotRewriteError(f"The script defines {len(definitions)} functions with the name {edit.function}.")
    (definition,) = definitions
    lines = {source.line_number(definition.name), *map(source.line_number, definition.decorators)}
    if edit.line and edit.line not in lines:
        raise CannotRewriteError(f"{edit.function} is no longer defined in line {edit.line}.")
    return definition


def _wraps(source: Source, call: cst.Call, function: str) -> bool:
    """Whether a call makes a `tf.function` of the function: `tf.function(f, ...)` or `tf.function(...)(f)`."""
    maker = call.func.func if isinstance(call.func, cst.Call) else call.func
    if not _is_tf_function(source, maker):
        return False
    if isinstance(call.func, cst.Call) and any(
        arg.keyword is None or arg.keyword.value == "func" for arg in call.func.args
    ):
        return False  # `tf.function(g)(f)` calls g
    wrapped = next((arg.value for arg in call.args if not arg.star and arg.keyword is None), None)
    wrapped = next((arg.value for arg in call.args if arg.keyword is not None and arg.keyword.value == "func"), wrapped)
    path = get_full_name_for_node(wrapped) if isinstance(wrapped, cst.Name | cst.Attribute) else None
    return path is not None and path.rpartition(".")[2] == function


def _set(source: Source, edit: SetFunctionArgument, node: cst.Call, positional: int) -> Iterator[Splice]:
    """Set the argument in a call of `tf.function`."""
    call = source.located(node, "tf.function")
    for argument in call.arguments:
        if argument.keyword in _SET_ALREADY.get(edit.name, frozenset({edit.name})):
            raise CannotRewriteError(f"{source.code(node)} already sets {argument.keyword}.")
    yield from set_keyword(source, call, edit.name, repr(edit.value), positional)


def _check_no_dataset(source: Source, edit: SetFunctionArgument, wrapping: list[cst.Call]) -> None:
    """Check that no dataset calls the function for its elements, under its own name or that of its `tf.function`."""
    names = {edit.function}
    for assign in find_all(source.module, cst.Assign):
        if any(assign.value is call for call in wrapping):
            paths = (get_full_name_for_node(target.target) for target in assign.targets)
            names |= {path.rpartition(".")[2] for path in paths if path}
    for call in find_all(source.module, cst.Call):
        if not isinstance(call.func, cst.Attribute) or call.func.attr.value not in _OF_DATASETS:
            continue
        if any(_mentions(arg.value, names) for arg in call.args):
            raise CannotRewriteError(
                f"{edit.function} is also called for the elements of a dataset ({call.func.attr.value} in line "
                f"{source.line_number(call.func.attr)})."
            )


def _mentions(node: cst.BaseExpression, names: set[str]) -> bool:
    attributes = {attribute.attr.value for attribute in find_all(node, cst.Attribute)}
    return bool(names & (attributes | set(mentions(node))))


def _is_tf_function(source: Source, name: cst.CSTNode) -> bool:
    """Whether an expression names `tf.function`."""
    first, _, rest = (get_full_name_for_node(name) or "").partition(".")
    path = source.names.path_of(first) if first else None
    return path is not None and ".".join(filter(None, (path, rest))) == "tensorflow.function"
