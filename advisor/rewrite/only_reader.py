"""Checks in the text that one call alone reads a dataset, and reads it once: whatever else read it would never end.

In: `Source`, a call that makes the dataset, and the call of `fit`.  Out: nothing, or CannotRewriteError with the first other use.

A recording cannot show this: it ends with the window, and what the script does after the training is not in it.
"""

from __future__ import annotations

import libcst as cst

from advisor.model import catalog
from advisor.rewrite.cannot_rewrite import CannotRewriteError
from advisor.rewrite.scopes import Scopes, Variable
from advisor.rewrite.syntax import Source, find_all

_REPEATING = (cst.For, cst.While, cst.CompFor, cst.Lambda, cst.ListComp, cst.SetComp, cst.DictComp, cst.GeneratorExp)
_HARMLESS = frozenset({"element_spec"})
"""Attributes of a dataset whose value is the same if it is repeated."""


def check_only_reader(source: Source, made: cst.Call, reader: cst.Call) -> None:
    """Check that the dataset goes from one call to the other and nowhere else, in no branch, and that both are executed once.

    Args:
        source: The text.
        made: A call that makes the dataset, or an earlier one of its chain.
        reader: The call that reads it, as `x` or as its first argument.

    Raises:
        CannotRewriteError: The text does not show that.
    """
    following = _Following(source, reader)
    following.check_once(made)
    following.check_once(reader)
    following.follow(made)
    if not following.is_read:
        line = source.line_number(reader)
        raise CannotRewriteError(f"The text does not show that fit in line {line} reads the dataset that is repeated.")


class _Following:
    """The way of one dataset through assignments and functions."""

    def __init__(self, source: Source, reader: cst.Call) -> None:
        self._source, self._reader = source, reader
        self._scopes = Scopes(source.module)
        self._seen: set[int] = set()
        """Variables that were followed, and functions whose one call was found."""
        self.is_read = False

    def follow(self, node: cst.BaseExpression) -> None:
        """Follow the value of an expression, which is the dataset."""
        while (longer := self._longer(node)) is not None:
            node = longer
        parent, *others = self._source.parents(node)
        if isinstance(parent, cst.Attribute) and parent.attr.value in _HARMLESS:
            return
        if isinstance(parent, cst.Arg) and others[0] is self._reader and self._is_data(parent):
            self.is_read = True
        elif isinstance(parent, cst.Assign) and len(parent.targets) == 1:
            self._follow_name(parent.targets[0].target, node)
        elif isinstance(parent, cst.AnnAssign):
            self._follow_name(parent.target, node)
        elif isinstance(parent, cst.Return):
            self._follow_result(node)
        else:
            raise self._other_use(node)

    def check_once(self, node: cst.CSTNode) -> None:
        """Raise CannotRewriteError unless the text shows that a node is executed once."""
        for parent in self._source.parents(node):
            if isinstance(parent, _REPEATING):
                raise CannotRewriteError(f"Line {self._source.line_number(node)} may be executed more than once.")
            if isinstance(parent, cst.ClassDef):
                raise CannotRewriteError(
                    f"Line {self._source.line_number(node)} is in a class, whose methods may be called more than once."
                )
            if isinstance(parent, cst.FunctionDef):
                call = self._only_call(parent)
                if id(parent) not in self._seen:
                    self._seen.add(id(parent))
                    self.check_once(call)
                return

    def _longer(self, node: cst.BaseExpression) -> cst.Call | None:
        """The call of a transformation on the dataset; None if there is none."""
        parent, *others = self._source.parents(node)
        call = others[0] if others else None
        is_method = isinstance(parent, cst.Attribute) and parent.value is node and isinstance(call, cst.Call)
        if not is_method or not isinstance(call, cst.Call) or call.func is not parent:
            return None
        return call if isinstance(parent, cst.Attribute) and parent.attr.value in catalog.TRANSFORMATIONS else None

    def _is_data(self, argument: cst.Arg) -> bool:
        is_first = argument is self._reader.args[0] and argument.keyword is None and not argument.star
        return is_first or (argument.keyword is not None and argument.keyword.value == "x")

    def _follow_name(self, target: cst.BaseExpression, node: cst.BaseExpression) -> None:
        if not isinstance(target, cst.Name):
            raise self._other_use(node)
        variable = self._scopes.variable(target)
        if id(variable) in self._seen:
            return
        self._seen.add(id(variable))
        if variable.is_shared:
            raise self._other_use(node)
        bound = [binding.node for binding in variable.bindings if not isinstance(binding.node, cst.Param)]
        if len({id(self._source.statement(place)[1]) for place in bound}) > 1:  # one of them may be in a branch
            raise CannotRewriteError(
                f"{variable.name} may hold another dataset (line {self._source.line_number(bound[-1])})."
            )
        for read in variable.reads:
            self.follow(read)

    def _follow_result(self, node: cst.BaseExpression) -> None:
        function = next((p for p in self._source.parents(node) if isinstance(p, cst.FunctionDef)), None)
        if function is None or len(find_all(function, cst.Return)) != 1:
            raise self._other_use(node)
        self.follow(self._only_call(function))

    def _only_call(self, function: cst.FunctionDef) -> cst.Call:
        """The one call of a function; the file must mention it nowhere else."""
        name = function.name.value
        variables = {self._scopes.find(node) for node in find_all(self._source.module, cst.Name) if node.value == name}
        reads = [read for variable in variables if _defines(variable, function) for read in variable.reads]  # type: ignore[union-attr]
        parents = self._source.parents(reads[0]) if len(reads) == 1 else []
        parent = (
            parents[0] if parents and function not in parents else None
        )  # a function that calls itself may do so often
        if not isinstance(parent, cst.Call) or parent.func is not reads[0] or function.decorators:
            raise CannotRewriteError(f"The file does not show that {name} is called once.")
        return parent

    def _other_use(self, node: cst.CSTNode) -> CannotRewriteError:
        line = self._source.line_number(node)
        return CannotRewriteError(f"Line {line} also uses the dataset that fit reads, and that would no longer end.")


def _defines(variable: Variable | None, function: cst.FunctionDef) -> bool:
    return variable is not None and variable.function is function
