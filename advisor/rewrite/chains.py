"""Moves a link after another call: along its chain, or along the assignments that pass the dataset on.

In: `Source` and the two calls located in it.  Out: the `Cut`, or CannotRewriteError: no other code may use the dataset in
between, and the moved arguments must keep their meaning.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import libcst as cst
from libcst.helpers import get_full_name_for_node

from advisor.rewrite.cannot_rewrite import CannotRewriteError
from advisor.rewrite.links import check_link, condition_of, insert_link, link_span, self_assignment
from advisor.rewrite.names import names_in
from advisor.rewrite.splices import Cut
from advisor.rewrite.syntax import NEWLINE, LocatedCall, Source, find_all, mentions


def move(source: Source, call: LocatedCall, after: LocatedCall, is_whole_line: bool = True) -> Cut:
    """Cut a call out of its chain and insert it after another.

    Args:
        source: The text.
        call: The call to move.
        after: The call after which it goes.
        is_whole_line: If the call is a statement `ds = ds.method(...)`, move the whole line where possible.

    Raises:
        CannotRewriteError: The move is unclear or would change the meaning.
    """
    check_link(call)
    assert call.link_start is not None
    condition = condition_of(source, call)
    if condition is not None and source.statement(condition)[1] is source.statement(after.node)[1]:
        return _move_condition(source, call, after, condition, is_whole_line)
    line = self_assignment(source, call)
    if not is_same_chain(call, after):
        if _is_earlier(source, after, call):
            _check_way_back(source, call, after)
        else:
            check_way(source, call, after)
        following = _self_assigned_line(source, after)
        # Under a different name, the result of the moved line would be unused.
        is_same_name = line is not None and following is not None and _assigned(line) == _assigned(following)
        if is_whole_line and is_same_name and line is not None and following is not None:
            start, end = source.line_span(line)
            return Cut(start, end, start, end, source.line_span(following)[1])
    dot = call.link_start + len(call.dot_space)
    place, _, text = insert_link(source, after, "\0")
    before, _, _ = text.partition("\0")
    rest = source.line_after(call.end)
    if line is not None:
        start, end = source.line_span(line)
        start += len(source.indent(line))
        if "#" in source.text[start:dot]:
            raise CannotRewriteError(
                f"The line of {call.method} contains a comment that cannot be kept without the call."
            )
        if "#" in rest:  # keep the comment
            return Cut(start, call.end + rest.index("#"), dot, call.end, place, before)
        return Cut(*source.line_span(line), dot, call.end, place, before)
    start, end = link_span(source, call)
    if rest.lstrip().startswith("#") and source.text[end - 1] in "\r\n":
        if NEWLINE.search(text) is None:  # from its own line into another line: keep the comment after it
            return Cut(dot, call.end, dot, call.end, place, before)
        return Cut(start, end, dot, call.end + len(rest.rstrip()), place, before)
    return Cut(start, end, dot, call.end, place, before)


def _move_condition(
    source: Source, call: LocatedCall, after: LocatedCall, condition: cst.If, is_whole_line: bool
) -> Cut:
    """Move `if training: ds = ds.shuffle(...)` after the line of another call, to which it applies as before.

    Raises:
        CannotRewriteError: It is not known to mean the same there.
    """
    line, following = source.statement(call.node)[0], _self_assigned_line(source, after)
    if not is_whole_line or following is None or _assigned(line) != _assigned(following):
        raise CannotRewriteError(f"{call.method} is in an `if` that cannot be moved after {after.method}.")
    check_way(source, call, after, condition)
    start, end = source.line_span(condition)
    return Cut(start, end, start, end, source.line_span(following)[1])


def _is_earlier(source: Source, one: LocatedCall, other: LocatedCall) -> bool:
    """Whether the statement of a call precedes that of another one in the same block."""
    first, block = source.statement(one.node)
    last, other_block = source.statement(other.node)
    body: Sequence[cst.CSTNode] = list(block.body)
    return block is other_block and body.index(first) < body.index(last)


def _check_way_back(source: Source, call: LocatedCall, after: LocatedCall) -> None:
    """Raise CannotRewriteError unless a call may move to an earlier one.

    Its arguments must be plain values, and no other code may read the dataset between the two.
    """
    if not all(_is_plain(argument.value) for argument in call.node.args):
        raise CannotRewriteError(f"An argument of {call.method} may not be known before {after.method}.")
    check_way(source, after, call)


def _is_plain(value: cst.BaseExpression) -> bool:
    """Whether an argument is a number, a string or None."""
    if isinstance(value, cst.UnaryOperation):
        value = value.expression
    is_none = isinstance(value, cst.Name) and value.value == "None"
    return is_none or isinstance(value, cst.Integer | cst.Float | cst.SimpleString)


def is_same_chain(call: LocatedCall, after: LocatedCall) -> bool:
    """Whether one of the calls is a receiver of the other in one expression."""
    return _is_chained(call.node, after.node) or _is_chained(after.node, call.node)


def _is_chained(outer: cst.BaseExpression, inner: cst.Call) -> bool:
    """Whether `inner` is a receiver of `outer` in `inner(...).a(...).outer(...)`."""
    while isinstance(outer, cst.Call) and isinstance(outer.func, cst.Attribute):
        outer = outer.func.value
        if outer is inner:
            return True
    return False


def _self_assigned_line(source: Source, call: LocatedCall) -> cst.CSTNode | None:
    """The line `ds = ds.a().call()` if it contains nothing else."""
    statement, _ = source.statement(call.node)
    name = _assigned(statement)
    if name is None or _assigned_value(statement) is not call.node or _head(call.node) != name:
        return None
    line_end = source.line_span(statement)[1]
    return statement if source.text[line_end - 1 : line_end] in ("\n", "\r") else None


def check_way(source: Source, call: LocatedCall, after: LocatedCall, condition: cst.If | None = None) -> None:
    """Check that simple assignments, and nothing else, pass the dataset from `call` to `after`.

    Args:
        source: The text of the file.
        call: The call that moves.
        after: The call after which it goes, further down in the same block.
        condition: The `if` around the call that moves with it; None if it moves alone.

    Raises:
        CannotRewriteError: Something else reads or changes the dataset, or the arguments of the call, in between.
    """
    unclear = CannotRewriteError(
        f"{call.method} cannot be moved after {after.method}: they are not connected by simple assignments."
    )
    line = source.statement(call.node)[0]
    first, block = source.statement(condition or call.node)
    last, other_block = source.statement(after.node)
    name = _assigned(line)
    if block is not other_block or name is None or not _ends_in(_assigned_value(line), call.node):
        raise unclear
    values: list[cst.CSTNode] = [argument.value for argument in call.node.args]
    if condition is not None:
        values.append(condition.test)
        if "." in name or name in mentions(condition.test) or not _is_fixed(condition.test):
            raise unclear
    body: Sequence[cst.CSTNode] = list(block.body)
    start, end = body.index(first), body.index(last)
    if start >= end:
        raise unclear
    if "." in name:
        _check_attribute_lines(body[start + 1 : end + 1], name, unclear)
        read = (get_full_name_for_node(node) for arg in call.node.args for node in find_all(arg.value, cst.Attribute))
        if name in read:
            raise _changing(call, after)
        return
    scope = source.scope(call.node)
    everywhere = Counter(mentions(scope.body if isinstance(scope, cst.FunctionDef | cst.ClassDef) else scope))
    if not any(isinstance(parent, cst.For | cst.While) for parent in source.parents(first)):
        for statement in body[:start]:  # earlier meanings of a name do not matter
            everywhere.subtract(mentions(statement))
    expected = Counter({name: mentions(first).count(name)})
    for statement in body[start + 1 : end]:
        names = mentions(statement)
        if _may_change(source, statement, values, name):
            raise _changing(call, after)
        if name not in names:
            continue
        target = _assigned(statement)
        if (
            target is None
            or _head(_assigned_value(statement)) != name
            or names.count(name) != (2 if target == name else 1)
        ):
            raise CannotRewriteError(f"The dataset between {call.method} and {after.method} is also used elsewhere.")
        if target != name:
            expected[name] += 1
            _check_unused(everywhere, expected, name, call)
        name = target
        expected[name] += names.count(name)
    if _head(after.node) != name or mentions(last).count(name) != (2 if _assigned(last) == name else 1):
        raise unclear
    if _assigned(last) != name:
        expected[name] += 1
        _check_unused(everywhere, expected, name, call)


def _check_attribute_lines(lines: Sequence[cst.CSTNode], name: str, unclear: CannotRewriteError) -> None:
    """For `self.ds = self.ds.a()`: other code may access `self`, so the lines must follow each other directly."""
    for line in lines:
        uses = [get_full_name_for_node(node) for node in find_all(line, cst.Attribute)].count(name)
        if _assigned(line) != name or _head(_assigned_value(line)) != name or uses != 2:
            raise unclear


def _check_unused(everywhere: Counter[str], expected: Counter[str], name: str, call: LocatedCall) -> None:
    if everywhere[name] != expected[name]:
        raise CannotRewriteError(f"{name}, the result of {call.method}, is also used elsewhere.")


def _assigned(statement: cst.CSTNode) -> str | None:
    """The target of an assignment: `x` for `x = ...`, `self.x` for `self.x = ...`."""
    if not isinstance(statement, cst.SimpleStatementLine) or len(statement.body) != 1:
        return None
    assign = statement.body[0]
    if not isinstance(assign, cst.Assign) or len(assign.targets) != 1:
        return None
    target = assign.targets[0].target
    return get_full_name_for_node(target) if isinstance(target, cst.Name | cst.Attribute) else None


def _assigned_value(statement: cst.CSTNode) -> cst.BaseExpression | None:
    if isinstance(statement, cst.SimpleStatementLine) and isinstance(statement.body[0], cst.Assign):
        return statement.body[0].value
    return None


def _head(value: cst.BaseExpression | None) -> str | None:
    """`ds` for `ds.a().b()`; None for anything but a chain of calls on a name."""
    is_chain = False
    while isinstance(value, cst.Call) and isinstance(value.func, cst.Attribute):
        value, is_chain = value.func.value, True
    return get_full_name_for_node(value) if is_chain and isinstance(value, cst.Name | cst.Attribute) else None


def _ends_in(value: cst.BaseExpression | None, call: cst.Call) -> bool:
    return value is call or (value is not None and _is_chained(value, call))


def _changing(call: LocatedCall, after: LocatedCall) -> CannotRewriteError:
    return CannotRewriteError(f"An argument of {call.method} may change before {after.method}.")


def _may_change(source: Source, statement: cst.CSTNode, values: Sequence[cst.CSTNode], dataset: str) -> bool:
    """Whether a statement may change the meaning of expressions: the arguments of a call, and the condition around it.

    That is so if it rebinds one of their names, sets an attribute or item of an object that they use, or passes such an object
    to a call (`config.fn = other`, `setattr(config, ...)`).

    Args:
        source: The text.
        statement: The statement.
        values: The expressions.
        dataset: Name of the dataset before the statement; its methods change no arguments.
    """
    moved = {name for value in values for name in mentions(value)}
    if moved & _bound_in(statement):
        return True
    objects = moved & {name for value in values for name in _objects_in(value)}
    objects = {name for name in objects if source.names.path_of(name) is None}  # TensorFlow itself is no state
    calls = [node for node in find_all(statement, cst.Call) if _head(node) != dataset]
    return any(objects & set(mentions(node)) for node in calls)


def _is_fixed(test: cst.BaseExpression) -> bool:
    """Whether a condition only compares names, their attributes and constants, so that it may be evaluated later."""
    match test:
        case cst.Name() | cst.Integer() | cst.Float() | cst.SimpleString():
            return True
        case cst.Attribute():
            return _is_fixed(test.value)
        case cst.UnaryOperation(operator=cst.Not() | cst.Minus()):
            return _is_fixed(test.expression)
        case cst.BooleanOperation():
            return _is_fixed(test.left) and _is_fixed(test.right)
        case cst.Comparison():
            return _is_fixed(test.left) and all(_is_fixed(target.comparator) for target in test.comparisons)
    return False


def _objects_in(value: cst.CSTNode) -> set[str]:
    """Names of objects whose attributes, items or methods are used."""
    objects: set[str] = set()
    for attribute in find_all(value, cst.Attribute):
        objects |= set(mentions(attribute.value))
    for item in find_all(value, cst.Subscript):
        objects |= set(mentions(item.value))
    return objects


def _bound_in(statement: cst.CSTNode) -> set[str]:
    """Names that a statement binds, and names of objects whose attributes or items it sets or deletes."""
    names = names_in(statement)
    assigns = find_all(statement, cst.Assign)
    targets: list[cst.CSTNode] = [target.target for assign in assigns for target in assign.targets]
    for kind in (cst.AugAssign, cst.AnnAssign, cst.Del, cst.For):
        targets += [node.target for node in find_all(statement, kind)]  # type: ignore[attr-defined]
    targets += [item.asname.name for item in find_all(statement, cst.WithItem) if item.asname is not None]
    objects = {name for target in targets for name in _objects_in(target)}
    return objects | set(names.bound) | {binding.name for binding in names.bindings}
