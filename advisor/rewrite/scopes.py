"""Resolves the names of a file to variables: which scope binds a name, with what, and where it is read.

In: a parsed module.  Out: `Scopes`. Unlike a list of names, it tells a global from a parameter that is called the same.

LibCST's own `ScopeProvider` does not suffice: it misses what `match` captures and what `del` unbinds, and a dataset may only move
before its loop if no binding is missed.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import libcst as cst
from libcst.helpers import get_full_name_for_node

_COMPREHENSIONS = (cst.ListComp, cst.SetComp, cst.DictComp, cst.GeneratorExp)


@dataclass(frozen=True, slots=True, eq=False)
class Binding:
    """One place that binds a variable."""

    node: cst.CSTNode
    """The bound name, the definition of a function or class, the parameter, or the import."""
    value: cst.BaseExpression | None = None
    """The assigned expression; None if it is no assignment."""
    is_part: bool = False
    """Whether the variable gets an element of the value: `a, b = value`."""
    path: str = ""
    """Of an import: what it imports, `tensorflow.data`."""


@dataclass(slots=True, eq=False)
class Variable:
    """A name in one scope."""

    name: str
    scope: cst.CSTNode
    """The module, function, lambda, class or comprehension that binds it; the module if nothing does."""
    bindings: list[Binding] = field(default_factory=list)
    reads: list[cst.Name] = field(default_factory=list)
    is_shared: bool = False
    """Whether a function declares it `global` or `nonlocal`."""

    @property
    def imported(self) -> str | None:
        """What it imports, if imports of the same are its only bindings: `tensorflow`."""
        paths = {binding.path for binding in self.bindings}
        return (paths.pop() or None) if len(paths) == 1 else None

    @property
    def function(self) -> cst.FunctionDef | None:
        """The definition, if that is its only binding."""
        node = self.bindings[0].node if len(self.bindings) == 1 else None
        return node if isinstance(node, cst.FunctionDef) else None


class Scopes:
    """The variables of a module."""

    def __init__(self, module: cst.Module) -> None:
        finder = _Finder(module)
        module.visit(finder)
        self._of: dict[cst.Name, Variable] = {}
        variables = {key: Variable(key[1], key[0], bindings) for key, bindings in finder.bindings.items()}
        for scopes, name in finder.declared:
            self._resolve(variables, finder, scopes, name).is_shared = True
        for scopes, node in finder.reads:
            variable = self._of[node] = self._resolve(variables, finder, scopes, node.value)
            variable.reads.append(node)
        for variable in variables.values():
            for binding in variable.bindings:
                if isinstance(binding.node, cst.Name):
                    self._of[binding.node] = variable
        self._top = {name: variable for (scope, name), variable in variables.items() if scope is module}
        self.names = {node.value for _, node in finder.reads}
        """Every name that is read."""
        self.has_star_import = finder.has_star_import
        """Whether any name may come from another module."""

    def variable(self, node: cst.Name) -> Variable:
        """Return the variable that a name reads or binds."""
        return self._of[node]

    def find(self, node: cst.Name) -> Variable | None:
        """Return the variable that a name reads or binds; None for the name of an attribute, a keyword, and in annotations."""
        return self._of.get(node)

    def at_top(self, name: str) -> Variable | None:
        """Return the variable of the module with this name; None if nothing there binds or reads it."""
        return self._top.get(name)

    def path_of(self, node: cst.BaseExpression) -> str | None:
        """Return what an expression of names and attributes means by the imports, `tensorflow.data.Dataset`; None for others."""
        parts: list[str] = []
        while isinstance(node, cst.Attribute):
            parts.insert(0, node.attr.value)
            node = node.value
        imported = self._of[node].imported if isinstance(node, cst.Name) and node in self._of else None
        return None if imported is None else ".".join([imported, *parts])

    @staticmethod
    def _resolve(
        variables: dict[tuple[cst.CSTNode, str], Variable], finder: _Finder, scopes: tuple[cst.CSTNode, ...], name: str
    ) -> Variable:
        module, inner = scopes[0], scopes[-1]
        for scope in reversed(scopes):
            if isinstance(scope, cst.ClassDef) and scope is not inner:
                continue  # its names are not visible in its methods
            if (scope, name) in finder.globals:
                break
            if (scope, name) in variables and (scope, name) not in finder.nonlocals:
                return variables[scope, name]
        return variables.setdefault((module, name), Variable(name, module))


class _Finder(cst.CSTVisitor):
    def __init__(self, module: cst.Module) -> None:
        super().__init__()
        self.bindings: dict[tuple[cst.CSTNode, str], list[Binding]] = {}
        self.reads: list[tuple[tuple[cst.CSTNode, ...], cst.Name]] = []
        """(the scopes around it, outermost first; the name)."""
        self.declared: list[tuple[tuple[cst.CSTNode, ...], str]] = []
        self.globals: set[tuple[cst.CSTNode, str]] = set()
        self.nonlocals: set[tuple[cst.CSTNode, str]] = set()
        self.has_star_import = False
        self._scopes: tuple[cst.CSTNode, ...] = (module,)
        self._stored: set[cst.Name] = set()

    def visit_Name(self, node: cst.Name) -> None:
        if node not in self._stored:
            self.reads.append((self._scopes, node))

    def visit_Attribute(self, node: cst.Attribute) -> bool:
        node.value.visit(self)
        return False

    def visit_Arg(self, node: cst.Arg) -> bool:
        node.value.visit(self)
        return False

    # -- bindings

    def visit_Assign(self, node: cst.Assign) -> None:
        for target in node.targets:
            self._bind(target.target, node.value)

    def visit_AnnAssign(self, node: cst.AnnAssign) -> None:
        if node.value is not None:
            self._bind(node.target, node.value)

    def visit_AugAssign(self, node: cst.AugAssign) -> None:
        self._bind(node.target)

    def visit_Del(self, node: cst.Del) -> None:
        self._bind(node.target)

    def visit_For(self, node: cst.For) -> None:
        self._bind(node.target)

    def visit_CompFor(self, node: cst.CompFor) -> None:
        self._bind(node.target)

    def visit_AsName(self, node: cst.AsName) -> None:
        self._bind(node.name)

    def visit_MatchAs(self, node: cst.MatchAs) -> None:
        self._bind(node.name)

    def visit_MatchStar(self, node: cst.MatchStar) -> None:
        self._bind(node.name)

    def visit_MatchMapping(self, node: cst.MatchMapping) -> None:
        self._bind(node.rest)

    def visit_NamedExpr(self, node: cst.NamedExpr) -> None:
        scopes = self._scopes
        while isinstance(scopes[-1], _COMPREHENSIONS):
            scopes = scopes[:-1]
        self._bind(node.target, node.value, scope=scopes[-1])

    def visit_Import(self, node: cst.Import) -> bool:
        for alias in node.names:
            path = get_full_name_for_node(alias.name) or ""
            name = alias.evaluated_alias
            self._add(name or path.partition(".")[0], Binding(node, path=path if name else path.partition(".")[0]))
        return False

    def visit_ImportFrom(self, node: cst.ImportFrom) -> bool:
        if isinstance(node.names, cst.ImportStar):
            self.has_star_import = True
        else:
            module = "." if node.relative or node.module is None else get_full_name_for_node(node.module)
            for alias in node.names:
                name = get_full_name_for_node(alias.name) or ""
                self._add(alias.evaluated_alias or name, Binding(node, path=f"{module}.{name}"))
        return False

    def visit_Global(self, node: cst.Global) -> bool:
        for item in node.names:
            self.globals.add((self._scopes[-1], item.name.value))
            self.declared.append((self._scopes[:1], item.name.value))
        return False

    def visit_Nonlocal(self, node: cst.Nonlocal) -> bool:
        for item in node.names:
            self.nonlocals.add((self._scopes[-1], item.name.value))
            self.declared.append((self._scopes[:-1], item.name.value))
        return False

    # -- scopes

    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:
        self._add(node.name.value, Binding(node))
        for decorator in node.decorators:
            decorator.visit(self)
        self._enter(node, node.params, node.body)
        return False

    def visit_Lambda(self, node: cst.Lambda) -> bool:
        self._enter(node, node.params, node.body)
        return False

    def visit_ClassDef(self, node: cst.ClassDef) -> bool:
        self._add(node.name.value, Binding(node))
        for part in (*node.decorators, *node.bases, *node.keywords):
            part.visit(self)
        self._inside(node, node.body)
        return False

    def visit_ListComp(self, node: cst.ListComp) -> bool:
        self._inside(node, node.for_in, node.elt)
        return False

    def visit_SetComp(self, node: cst.SetComp) -> bool:
        self._inside(node, node.for_in, node.elt)
        return False

    def visit_GeneratorExp(self, node: cst.GeneratorExp) -> bool:
        self._inside(node, node.for_in, node.elt)
        return False

    def visit_DictComp(self, node: cst.DictComp) -> bool:
        self._inside(node, node.for_in, node.key, node.value)
        return False

    def _enter(self, scope: cst.FunctionDef | cst.Lambda, params: cst.Parameters, body: cst.CSTNode) -> None:
        stars = [star for star in (params.star_arg, params.star_kwarg) if isinstance(star, cst.Param)]
        parameters = [*params.posonly_params, *params.params, *params.kwonly_params, *stars]
        for parameter in parameters:
            if parameter.default is not None:
                parameter.default.visit(self)
        before, self._scopes = self._scopes, (*self._scopes, scope)
        for parameter in parameters:
            self._add(parameter.name.value, Binding(parameter))
        body.visit(self)
        self._scopes = before

    def _inside(self, scope: cst.CSTNode, *parts: cst.CSTNode) -> None:
        before, self._scopes = self._scopes, (*self._scopes, scope)
        for part in parts:
            part.visit(self)
        self._scopes = before

    def _bind(
        self,
        target: cst.CSTNode | None,
        value: cst.BaseExpression | None = None,
        is_part: bool = False,
        scope: cst.CSTNode | None = None,
    ) -> None:
        if isinstance(target, cst.Name):
            self._stored.add(target)
            self._add(target.value, Binding(target, value, is_part), scope)
        elif isinstance(target, cst.Tuple | cst.List):
            for element in target.elements:
                self._bind(element.value, value, True, scope)

    def _add(self, name: str, binding: Binding, scope: cst.CSTNode | None = None) -> None:
        """Add a binding; those of a name that the function declares to be of another scope belong there."""
        own = scope or self._scopes[-1]
        if (own, name) in self.globals:
            own = self._scopes[0]
        self.bindings.setdefault((own, name), []).append(binding)
