"""Checks that code does nothing but make a dataset, so that running it once is the same as running it before every epoch.

In: statements or an expression of the script.  Out: `PureCode`: what it reads from outside, or CannotRewriteError with the first
thing that is not known to be harmless.

There are two kinds of code. Code that makes a dataset runs in Python; it may make the recorded calls of tf.data and compute
arguments. The functions that are passed to tf.data run while TensorFlow traces them; they may also call TensorFlow's ops, whose
effects `advisor.predict.determinism` judges from the graph. In both, everything that is not on a list is refused.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Protocol

import libcst as cst

from advisor.model import catalog
from advisor.rewrite.cannot_rewrite import CannotRewriteError
from advisor.rewrite.harmless_names import CONSTANTS, LIST_METHODS, PARTIAL, TENSOR_METHODS, TEXT_METHODS, TYPES, is_op
from advisor.rewrite.scopes import Scopes, Variable
from advisor.rewrite.syntax import Source
from advisor.rewrite.value_kinds import PURE_BUILTINS, is_pure_call


class OtherFunctions(Protocol):
    """Functions of other modules."""

    def has(self, path: str) -> bool:
        """Return whether a full name (`data.make_dataset`) is that of a function whose text is known."""

    def check(self, path: str, is_called: bool) -> None:
        """Raise CannotRewriteError if the function may do something else in a later epoch.

        Args:
            path: Its full name.
            is_called: Whether it is called by Python; otherwise TensorFlow traces it.
        """


class PureCode:
    """What a piece of code, and the functions that it uses, read from outside.

    Args:
        source: The file.
        scopes: Its variables.
        recorded: The calls in the file that the recorder saw making datasets.
        targets: The variables that the code itself binds.
        imported: The functions of other modules whose text is known.
    """

    def __init__(
        self,
        source: Source,
        scopes: Scopes,
        recorded: Collection[cst.Call],
        targets: Collection[Variable] = (),
        imported: OtherFunctions | None = None,
    ) -> None:
        self._source, self._scopes, self._recorded, self._others = source, scopes, recorded, imported
        self._targets = set(targets)
        self.reads: dict[Variable, set[str]] = {}
        """Variable from outside -> what is read of it: `args` or `args.batch_size`."""
        self.parts: list[cst.CSTNode] = []
        """The code and the definitions of the functions that it uses."""
        self._seen: set[tuple[cst.FunctionDef, bool, bool]] = set()
        self._called: set[cst.FunctionDef] = set()
        """Functions that the code calls itself, with values of the script; the others get tensors from tf.data."""
        self._is_traced = False

    def add_statement(self, node: cst.CSTNode) -> None:
        """Check a statement."""
        self.parts.append(node)
        self._statement(node)

    def add_expression(self, node: cst.BaseExpression) -> None:
        """Check an expression."""
        self.parts.append(node)
        self._expression(node)

    def add_function(self, variable: Variable, is_called: bool) -> None:
        """Check a function of the module.

        Args:
            variable: Its name.
            is_called: Whether the code calls it itself; otherwise it is passed to tf.data, which traces it.
        """
        self._check_function(variable)
        assert variable.function is not None
        if is_called:
            self._called.add(variable.function)
        self._function(variable.function, is_traced=not is_called)

    # -- statements

    def _statement(self, node: cst.CSTNode) -> None:
        match node:
            case cst.SimpleStatementLine() | cst.SimpleStatementSuite() | cst.IndentedBlock():
                for part in node.body:
                    self._statement(part)
            case cst.Assign():
                for target in node.targets:
                    self._target(target.target)
                self._expression(node.value)
            case cst.AnnAssign():
                self._target(node.target)
                self._optional(node.value)
            case cst.AugAssign(target=cst.Name() as name) if self._is_traced and self._is_rebound(name):
                self._target(node.target)
                self._expression(node.value)
            case cst.Return():
                self._optional(node.value)
            case cst.Expr(value=cst.SimpleString() | cst.ConcatenatedString()) | cst.Pass():
                pass
            case cst.Expr(value=cst.Call() as call):
                self._call(call)
            case cst.If():
                self._expression(node.test)
                self._statement(node.body)
                if node.orelse is not None:
                    self._statement(node.orelse)
            case cst.Else():
                self._statement(node.body)
            case cst.For() if node.asynchronous is None:
                self._target(node.target)
                self._expression(node.iter)
                self._statement(node.body)
                if node.orelse is not None:
                    self._statement(node.orelse)
            case cst.FunctionDef():
                self._function(node, is_traced=True)
            case _:
                raise self._refusal(node)

    def _target(self, node: cst.BaseExpression) -> None:
        """Check what is assigned to: the code's own variables, and items or attributes of what it has made."""
        match node:
            case cst.Name() if self._is_own(self._scopes.variable(node)):
                return
            case cst.Tuple() | cst.List():
                for element in node.elements:
                    self._target(element.value)
                return
            case cst.Attribute(value=owner) | cst.Subscript(value=owner):
                while isinstance(owner, cst.Attribute | cst.Subscript):
                    owner = owner.value
                if isinstance(owner, cst.Name) and self._is_fresh(self._scopes.variable(owner)):
                    return
        raise CannotRewriteError(f"{self._source.code(node)} is changed{self._source.line_note(node)}.")

    # -- expressions

    def _optional(self, node: cst.BaseExpression | None) -> None:
        if node is not None:
            self._expression(node)

    def _all(self, nodes: Iterable[cst.BaseExpression | None]) -> None:
        for node in nodes:
            self._optional(node)

    def _expression(self, node: cst.BaseExpression) -> None:
        match node:
            case (
                cst.Integer()
                | cst.Float()
                | cst.Imaginary()
                | cst.SimpleString()
                | cst.ConcatenatedString()
                | cst.Ellipsis()
            ):
                if isinstance(node, cst.ConcatenatedString):
                    self._all((node.left, node.right))
            case cst.FormattedString():
                for part in node.parts:
                    if isinstance(part, cst.FormattedStringExpression):
                        self._expression(part.expression)
                        if part.format_spec:
                            raise self._refusal(node)
            case cst.Name():
                self._name(node)
            case cst.Attribute():
                self._attribute(node)
            case cst.Subscript():
                self._subscript(node)
            case cst.Tuple() | cst.List() | cst.Set():
                self._all(element.value for element in node.elements)
            case cst.Dict():
                for item in node.elements:
                    self._all((item.key, item.value) if isinstance(item, cst.DictElement) else (item.value,))
            case cst.UnaryOperation():
                self._expression(node.expression)
            case cst.BinaryOperation() | cst.BooleanOperation():
                self._all((node.left, node.right))
            case cst.Comparison():
                self._all((node.left, *(target.comparator for target in node.comparisons)))
            case cst.IfExp():
                self._all((node.test, node.body, node.orelse))
            case cst.ListComp() | cst.SetComp() | cst.GeneratorExp():
                self._comprehension(node.for_in)
                self._expression(node.elt)
            case cst.DictComp():
                self._comprehension(node.for_in)
                self._all((node.key, node.value))
            case cst.Lambda():
                self._defaults(node.params)
                before, self._is_traced = self._is_traced, True
                self._expression(node.body)
                self._is_traced = before
            case cst.Call():
                self._call(node)
            case _:
                raise self._refusal(node)

    def _comprehension(self, part: cst.CompFor) -> None:
        if part.asynchronous is not None:
            raise self._refusal(part)
        self._all((part.iter, *(condition.test for condition in part.ifs)))
        if part.inner_for_in is not None:
            self._comprehension(part.inner_for_in)

    def _subscript(self, node: cst.Subscript) -> None:
        self._expression(node.value)
        for element in node.slice:
            if isinstance(element.slice, cst.Index):
                self._expression(element.slice.value)
            elif isinstance(element.slice, cst.Slice):
                self._all((element.slice.lower, element.slice.upper, element.slice.step))

    def _name(self, node: cst.Name) -> None:
        variable = self._scopes.variable(node)
        if self._is_own(variable):
            return
        if not variable.bindings:
            if node.value not in CONSTANTS | TYPES and node.value not in PURE_BUILTINS:
                raise CannotRewriteError(f"{node.value} is not defined in this file{self._source.line_note(node)}.")
        elif variable.function is not None:
            self._check_function(variable)
            self._function(variable.function, is_traced=True)
        elif variable.imported is not None:
            self._imported(node, variable.imported)
        else:
            self._read(variable, node.value)

    def _attribute(self, node: cst.Attribute) -> None:
        path = self._scopes.path_of(node)
        if path is not None:
            self._imported(node, path)
            return
        names, root = [node.attr.value], node.value
        while isinstance(root, cst.Attribute):
            names.insert(0, root.attr.value)
            root = root.value
        if isinstance(root, cst.Name):
            variable = self._scopes.variable(root)
            if not self._is_own(variable) and variable.bindings and variable.function is None:
                self._read(variable, ".".join([root.value, *names]))
                return
        self._expression(root)

    def _imported(self, node: cst.CSTNode, path: str) -> None:
        """Check a name of a module that is read and not called; the modules themselves are only parts of such names."""
        variables = [self._scopes.variable(name) for name in _names(node)]
        for variable in variables:
            self.reads.setdefault(variable, set())
        if self._others is not None and self._others.has(path):
            self._others.check(path, is_called=False)
            return
        is_known = path.startswith(("tensorflow.", "math.", "numpy.")) or path in ("os.sep", PARTIAL)
        if is_known and not path.startswith("numpy.random"):
            return
        raise CannotRewriteError(
            f"{self._source.code(node)} comes from another module{self._source.line_note(node)}, so it may change."
        )

    # -- calls

    def _call(self, node: cst.Call) -> None:
        self._callee(node)
        self._all(argument.value for argument in node.args)

    def _callee(self, node: cst.Call) -> None:
        function = node.func
        path = self._scopes.path_of(function)
        if path is not None:
            if self._others is not None and self._others.has(path):
                self._others.check(path, is_called=not self._is_traced)
                for name in _names(function):
                    self.reads.setdefault(self._scopes.variable(name), set())
                return
            if node in self._recorded or is_pure_call(path) or path == PARTIAL or (self._is_traced and is_op(path)):
                for name in _names(function):
                    self.reads.setdefault(self._scopes.variable(name), set())
                return
        elif isinstance(function, cst.Name):
            if self._is_harmless_name(self._scopes.variable(function)):
                return
        elif isinstance(function, cst.Attribute) and (node in self._recorded or self._is_harmless_method(function)):
            self._expression(function.value)
            return
        raise CannotRewriteError(
            f"{self._source.code(function)} is called{self._source.line_note(node)}, which is not known to do the same every "
            "time."
        )

    def _is_harmless_name(self, variable: Variable) -> bool:
        if not variable.bindings:
            return variable.name in PURE_BUILTINS
        if variable.function is None:
            return False
        if not self._is_own(variable):
            self._check_function(variable)
        self._called.add(variable.function)
        self._function(variable.function, self._is_traced)
        return True

    def _is_harmless_method(self, function: cst.Attribute) -> bool:
        method, owner = function.attr.value, function.value
        if isinstance(owner, cst.SimpleString | cst.ConcatenatedString | cst.FormattedString):
            return method in TEXT_METHODS
        if isinstance(owner, cst.Name) and self._is_fresh(self._scopes.variable(owner)):
            return method in LIST_METHODS
        return self._is_traced and (method in TENSOR_METHODS or method in catalog.TRANSFORMATIONS)

    # -- functions and variables

    def _check_function(self, variable: Variable) -> None:
        """Note that a function of the file is used, which must not be another one in a later epoch."""
        self.reads.setdefault(variable, set())
        definition = variable.function
        assert definition is not None
        around = self._source.parents(definition)
        if any(isinstance(parent, cst.If | cst.Try | cst.With | cst.ClassDef) for parent in around):
            raise CannotRewriteError(f"{variable.name} is not a plain function of the file.")

    def _function(self, node: cst.FunctionDef, is_traced: bool) -> None:
        key = (node, is_traced, node in self._called)
        if key in self._seen:
            return
        self._seen.add(key)
        name = node.name.value
        decorators = [self._scopes.path_of(decorator.decorator) for decorator in node.decorators]
        if node.asynchronous is not None or (decorators and not (is_traced and decorators == ["tensorflow.function"])):
            raise CannotRewriteError(f"{name} has a decorator, or is asynchronous.")
        self.parts.append(node)
        self._defaults(node.params)
        before, self._is_traced = self._is_traced, is_traced
        self._statement(node.body)
        self._is_traced = before

    def _defaults(self, params: cst.Parameters) -> None:
        for parameter in (*params.posonly_params, *params.params, *params.kwonly_params):
            self._optional(parameter.default)

    def _read(self, variable: Variable, path: str) -> None:
        self.reads.setdefault(variable, set()).add(path)

    def _is_own(self, variable: Variable) -> bool:
        """Whether the code binds the variable itself: it is the target of a statement, or local to one of its functions."""
        if variable in self._targets:
            return True
        around = (variable.scope, *self._source.parents(variable.scope))
        return not isinstance(variable.scope, cst.Module) and any(
            part is node for part in self.parts for node in around
        )

    def _is_rebound(self, node: cst.Name) -> bool:
        """Whether `x += 1` gives the variable another value, and does not extend a list of the script in place."""
        variable = self._scopes.variable(node)
        for binding in variable.bindings:
            if isinstance(binding.node, cst.Param) and variable.scope in self._called:
                return False
            if isinstance(binding.value, cst.Name | cst.Attribute | cst.Subscript):
                return False
        return True

    def _is_fresh(self, variable: Variable) -> bool:
        """Whether the code has made the value itself, so that nothing else sees its changes."""
        return self._is_own(variable) and all(self._makes_new(binding.value) for binding in variable.bindings)

    def _makes_new(self, value: cst.BaseExpression | None) -> bool:
        if isinstance(value, cst.List | cst.Dict | cst.Set | cst.ListComp | cst.DictComp | cst.SetComp):
            return True
        return isinstance(value, cst.Call) and self._scopes.path_of(value.func) == "tensorflow.data.Options"

    # -- messages

    def _refusal(self, node: cst.CSTNode) -> CannotRewriteError:
        text = self._source.code(node)
        short = text if len(text) <= 40 else f"{text[:40]}..."
        return CannotRewriteError(f"`{short}`{self._source.line_note(node)} is not known to do the same every time.")


def _names(node: cst.CSTNode) -> list[cst.Name]:
    """The name in which an expression of attributes begins."""
    while isinstance(node, cst.Attribute):
        node = node.value
    return [node] if isinstance(node, cst.Name) else []
