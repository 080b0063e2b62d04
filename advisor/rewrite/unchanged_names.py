"""Checks that what a variable holds is the same in every pass of a loop.

In: `Scopes`, a loop, and the parts of a variable that are read (`args`, `args.batch_size`).  Out: nothing, or CannotRewriteError.

A value is the same if nothing binds the variable in the loop, and if nothing can change the value in place: it cannot change at
all (a number, a string, a tensor), or every mention of it in the file is of a kind that leaves it as it is. To pass a list to an
unknown function is none of them: the function may keep it, and change it later.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import libcst as cst

from advisor.rewrite.cannot_rewrite import CannotRewriteError
from advisor.rewrite.scopes import Scopes, Variable
from advisor.rewrite.syntax import Source
from advisor.rewrite.value_kinds import (
    KEEPING_METHODS,
    PLAIN_ATTRIBUTES,
    PURE_BUILTINS,
    Kind,
    ValueKinds,
    is_pure_call,
    kind_of_call,
)

_REFLECTION = frozenset({"eval", "exec", "globals", "locals", "vars", "__builtins__", "__dict__"})
"""Names with which a variable can be changed without being mentioned."""
_NOT_KEEPING = frozenset({"hash", "id", "print", "repr", "type"})
"""Builtin functions that only look at their argument."""
_NUMPY_READING = frozenset({"max", "mean", "median", "min", "prod", "shape", "size", "std", "sum"})
_SHUFFLING = frozenset({"random.shuffle", "numpy.random.shuffle"})
_READING = (
    cst.Comparison, cst.ComparisonTarget, cst.BinaryOperation, cst.UnaryOperation, cst.FormattedStringExpression, cst.If,
    cst.While, cst.CompIf, cst.Index, cst.Slice, cst.Assert,
)  # fmt: skip
"""Nodes that only read the value of an expression in them."""


class UnchangedNames:
    """The variables that are the same in every pass of one loop."""

    def __init__(self, source: Source, scopes: Scopes, loop: cst.For | cst.While) -> None:
        self._source, self._scopes, self._loop = source, scopes, loop
        self._kinds = ValueKinds(scopes)
        self._function = self._function_of(loop)
        if scopes.has_star_import:
            raise CannotRewriteError("The file imports all names of a module, so it is unclear what they mean.")
        hidden = sorted(_REFLECTION & scopes.names)
        if hidden:
            raise CannotRewriteError(f"The file uses {hidden[0]}, which may change any variable.")

    def check(self, variable: Variable, paths: Collection[str], own: Iterable[cst.CSTNode]) -> None:
        """Check one variable.

        Args:
            variable: The variable.
            paths: What is read of it: `args` or `args.batch_size`.
            own: The code that reads it, which is known not to change it.

        Raises:
            CannotRewriteError: It may change.
        """
        name = variable.name
        if variable.is_shared:
            raise CannotRewriteError(f"{name} is declared global or nonlocal in a function, so it may change.")
        for binding in variable.bindings:
            if self._is_in_loop(binding.node):
                raise CannotRewriteError(f"{name} is assigned in the loop{self._source.line_note(binding.node)}.")
            if isinstance(binding.node, cst.Param):
                raise CannotRewriteError(f"{name} is a parameter, so the text does not show what it holds.")
        kind = self._kinds.of(variable)
        if kind is Kind.UNKNOWN:
            raise CannotRewriteError(f"The text does not show that {name} holds a plain value.")
        attributes = {path.partition(".")[2] for path in paths} - {""}
        if kind is not Kind.NAMESPACE and attributes - PLAIN_ATTRIBUTES:
            raise CannotRewriteError(f"Reading {name}.{min(attributes - PLAIN_ATTRIBUTES)} may run code.")
        if kind is Kind.FIXED:
            return
        skipped = set(own)
        for read in variable.reads:
            if not any(parent in skipped for parent in (read, *self._source.parents(read))):
                self._check_mention(read, paths)

    def _check_mention(self, read: cst.Name, paths: Collection[str]) -> None:
        top, path, is_item = self._chain(read)
        parent, *around = self._source.parents(top)
        is_method = isinstance(parent, cst.Call) and parent.func is top and isinstance(top, cst.Attribute)
        if is_method and not is_item:
            path = path.rpartition(".")[0]
        if not any(
            path == other or f"{path}.".startswith(f"{other}.") or f"{other}.".startswith(f"{path}.") for other in paths
        ):
            return
        if is_method and isinstance(top, cst.Attribute):
            if top.attr.value not in KEEPING_METHODS:
                self._must_run_before(read, f"{path}.{top.attr.value} is called")
            return
        if isinstance(parent, _READING):
            return
        if isinstance(parent, cst.Arg):
            self._check_argument(read, around[0], path)
        elif isinstance(parent, cst.For | cst.CompFor) and parent.iter is top:
            self._must_run_before(read, f"The elements of {path} may be changed")
        elif isinstance(parent, cst.AssignTarget | cst.AugAssign | cst.AnnAssign | cst.Del | cst.For):
            self._must_run_before(read, f"{path} is changed")
        elif not (isinstance(parent, cst.Assign) and self._is_own_value(parent, read)):
            raise CannotRewriteError(
                f"{path} is also used{self._source.line_note(read)}, where it may be changed under another name."
            )

    def _check_argument(self, read: cst.Name, call: cst.CSTNode, path: str) -> None:
        function = call.func if isinstance(call, cst.Call) else None
        imported = self._scopes.path_of(function) if function is not None else None
        if imported in _SHUFFLING:
            self._must_run_before(read, f"{path} is shuffled")
            return
        if imported is not None and _only_reads(imported):
            return
        is_builtin = isinstance(function, cst.Name) and not self._scopes.variable(function).bindings
        if is_builtin and isinstance(function, cst.Name) and function.value in PURE_BUILTINS | _NOT_KEEPING:
            return
        name = self._source.code(function) if function is not None else "a function"
        raise CannotRewriteError(f"{path} is passed to {name}{self._source.line_note(read)}, which may change it.")

    def _chain(self, read: cst.Name) -> tuple[cst.CSTNode, str, bool]:
        """(the largest expression of attributes and items of a name, its path up to the first item, whether an item is taken)."""
        top: cst.CSTNode = read
        path, is_item = [read.value], False
        for parent in self._source.parents(read):
            if isinstance(parent, cst.Attribute) and parent.value is top:
                path += [] if is_item else [parent.attr.value]
            elif isinstance(parent, cst.Subscript) and parent.value is top:
                is_item = True
            else:
                break
            top = parent
        return top, ".".join(path), is_item

    def _is_own_value(self, assign: cst.Assign, read: cst.Name) -> bool:
        """Whether the value is assigned to the variable itself: `x = x[:100]`."""
        variable = self._scopes.variable(read)
        targets = [target.target for target in assign.targets]
        return all(isinstance(target, cst.Name) and self._scopes.variable(target) is variable for target in targets)

    def _must_run_before(self, node: cst.CSTNode, what: str) -> None:
        """Raise CannotRewriteError unless the code at the node runs before the loop or after it, and never during it."""
        function = self._function_of(node)
        if self._is_in_loop(node) or (function is not None and function is not self._function):
            raise CannotRewriteError(f"{what}{self._source.line_note(node)}, which may be in every pass of the loop.")

    def _is_in_loop(self, node: cst.CSTNode) -> bool:
        return any(parent is self._loop for parent in self._source.parents(node))

    def _function_of(self, node: cst.CSTNode) -> cst.CSTNode | None:
        kinds = cst.FunctionDef | cst.Lambda | cst.ClassDef
        return next((parent for parent in self._source.parents(node) if isinstance(parent, kinds)), None)


def _only_reads(function: str) -> bool:
    """Whether an imported function neither changes its arguments nor keeps them in a place from which they may be changed."""
    if function.startswith("numpy."):
        return function.removeprefix("numpy.") in _NUMPY_READING
    return (
        is_pure_call(function)
        or kind_of_call(function) is Kind.FIXED
        or function.startswith("tensorflow.data.Dataset.")
    )
