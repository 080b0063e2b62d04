"""The forms of calls of a tf.data method: `ds.map(f)`, `Dataset.map(ds, f)`, through `functools.partial`, in a library.

In: a call in the text and the call recorded there.  Out: `Form`, or None if the text does not show that they are the same.
"""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst
from libcst.helpers import get_full_name_for_node

from advisor.model import catalog
from advisor.model.calls import Call
from advisor.rewrite.names import Names


@dataclass(frozen=True, slots=True)
class Form:
    """How a method is called."""

    holder: cst.Call
    """The call that contains the method's arguments; differs from the recorded one only for `apply(partial(...))`."""
    skip: int = 0
    """Number of arguments before those of the method: a dataset, or the function of a partial."""
    is_link: bool = False
    """`dataset.method(...)`, which can be removed or moved."""
    is_unbound: bool = False
    """`Dataset.method(dataset, ...)`."""
    is_direct: bool = True
    """Whether the call contains all arguments; otherwise a partial has others, by keyword."""
    is_library: bool = False
    """A call made inside a library, whose arguments are unknown."""


def form_of(node: cst.Call, call: Call, names: Names) -> Form | None:
    """Return the form in which `node` makes the recorded call; None if the text does not show that it does.

    Args:
        node: A call in the text, at the recorded place.
        call: The recorded call.
        names: What the names of the file are bound to.
    """
    is_link = call.method in catalog.TRANSFORMATIONS
    function = node.func
    if call.library is not None:
        return _applied_partial(node, call, names) or Form(node, is_library=True)
    if isinstance(function, cst.Attribute) and function.attr.value == call.method:
        if not is_link:
            return Form(node)
        if is_dataset_class(function.value, names):
            return Form(node, skip=1, is_unbound=True)
        return Form(node, is_link=True)
    if not isinstance(function, cst.Name):
        return None
    if function.value == call.method or _last(names.path_of(function.value)) == call.method:
        return Form(node)
    value = names.value_of(function.value)
    if value is None:
        return None
    if _is_partial_of(value, call.method, names):
        return Form(node, skip=1 if is_link else 0, is_direct=False)
    if get_full_name_for_node(value) is not None and _last(get_full_name_for_node(value)) == call.method:
        if not is_link:
            return Form(node)
        is_unbound = isinstance(value, cst.Attribute) and is_dataset_class(value.value, names)
        return Form(node, skip=1, is_unbound=True) if is_unbound else None
    return None


def is_dataset_class(expression: cst.BaseExpression, names: Names) -> bool:
    """Whether an expression names the class `tf.data.Dataset`.

    Args:
        expression: What stands before the dot of a call.
        names: What the names of the file are bound to, so that imports under another name count.
    """
    name = get_full_name_for_node(expression)
    if name is None:
        return False
    if isinstance(expression, cst.Name):
        value = names.value_of(name)
        name = names.path_of(name) or (get_full_name_for_node(value) if value is not None else None) or name
    return _last(name) in ("Dataset", "DatasetV2")


def _applied_partial(node: cst.Call, call: Call, names: Names) -> Form | None:
    """`ds.apply(functools.partial(tf.data.Dataset.map, map_func=f))`."""
    if _last(get_full_name_for_node(node.func)) != "apply" or len(node.args) != 1:
        return None
    inner = node.args[0].value
    if isinstance(inner, cst.Name):
        inner = names.value_of(inner.value) or inner
    if not isinstance(inner, cst.Call) or inner is not node.args[0].value:
        return None
    return Form(inner, skip=1, is_link=True, is_direct=False) if _is_partial_of(inner, call.method, names) else None


def _is_partial_of(value: cst.BaseExpression, method: str, names: Names) -> bool:
    """`functools.partial(<the method>, only=keywords)`."""
    if not isinstance(value, cst.Call) or _last(get_full_name_for_node(value.func)) != "partial" or not value.args:
        return False
    function, rest = value.args[0], value.args[1:]
    if any(argument.keyword is None for argument in rest) or function.keyword is not None or function.star:
        return False
    name = get_full_name_for_node(function.value)
    if name is None:
        return False
    path = names.path_of(name) if isinstance(function.value, cst.Name) else name
    if _last(path or name) != method:
        return False
    is_class = isinstance(function.value, cst.Attribute) and is_dataset_class(function.value.value, names)
    return is_class or method not in catalog.TRANSFORMATIONS


def _last(path: str | None) -> str:
    return (path or "").rpartition(".")[2]
