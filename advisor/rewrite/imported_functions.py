"""Finds the functions that a file imports from modules beside it, and checks that they do nothing but make a dataset.

In: the file with the loop, and the texts of other files of the project.  Out: `ImportedFunctions`, which `PureCode` asks. What
such a function reads of its own module must be a function, an import, or a number or string that is assigned once. No file of
the project may assign to an attribute of the same name, which may be that of the module.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from pathlib import PurePath
from types import MappingProxyType

import libcst as cst

from advisor.model.calls import Call
from advisor.rewrite.cannot_rewrite import CannotRewriteError
from advisor.rewrite.pure_code import PureCode
from advisor.rewrite.scopes import Scopes, Variable
from advisor.rewrite.syntax import LocatedCall, Source

NO_TEXTS: Mapping[str, str] = MappingProxyType({})
_CHANGING_NAMES = frozenset({"setattr", "reload", "import_module", "exec", "eval", "vars"})
_CHANGING_ATTRIBUTES = frozenset({"reload", "import_module", "modules", "__dict__", "__setattr__"})
"""Names and attributes with which a variable of another module can be changed without being mentioned."""


def recorded_in(source: Source, calls: Mapping[str, Call], file: str) -> set[cst.Call]:
    """Return the calls in a text that were recorded making datasets.

    Args:
        source: The text.
        calls: The recorded calls by id.
        file: The file, as the calls name it.
    """
    nodes = set()
    for call in calls.values():
        site = call.site
        if site is None or site.file != file or call.library is not None:
            continue
        node = source.call_ending_at(site.end_line, site.end_column - 1)
        if node is None:
            continue
        name = node.func.attr if isinstance(node.func, cst.Attribute) else node.func
        if source.place(name)[:2] == (site.line, site.column - 1):
            nodes.add(node)
    return nodes


class ImportedFunctions:
    """The functions of modules beside a file."""

    def __init__(
        self, source: Source, scopes: Scopes, file: str, calls: Mapping[str, Call], others: Mapping[str, str]
    ) -> None:
        """Create it without parsing anything.

        Args:
            source: The text with the loop.
            scopes: Its variables.
            file: Its file, as recorded calls name it.
            calls: The recorded calls by id.
            others: File -> text of the other files of the project.
        """
        self._source, self._scopes, self._calls, self._others = source, scopes, calls, others
        self._folder = PurePath(file).parent
        self._modules: dict[str, _Module] = {}

    def has(self, path: str) -> bool:
        """Return whether a full name (`data.make_dataset`) is that of a function of a module beside the file."""
        module, _, name = path.rpartition(".")
        return bool(module) and not path.startswith(".") and self._file(module) in self._others and name.isidentifier()

    def check(self, path: str, is_called: bool) -> None:
        """Raise CannotRewriteError if the function may do something else in a later epoch.

        Args:
            path: Its full name.
            is_called: Whether it is called by Python; otherwise TensorFlow traces it.
        """
        module, _, name = path.rpartition(".")
        self._module(self._file(module)).check(name, is_called, self)

    def located(self, call: Call) -> LocatedCall:
        """Return a call in one of the other files.

        Raises:
            CannotRewriteError: It is not where it was recorded.
        """
        assert call.site is not None
        return self._module(call.site.file).source.locate(call)

    def is_in(self, node: cst.CSTNode, parts: Iterable[cst.CSTNode]) -> bool:
        """Return whether a node is in one of these parts of the file, or in a function that was checked.

        Args:
            node: A node of the file, or of a module whose function was checked.
            parts: Nodes of the file; everything below them counts as inside.
        """
        sources = [(self._source, list(parts)), *((module.source, module.parts) for module in self._modules.values())]
        return any(part is outer for source, own in sources for outer in (node, *source.parents(node)) for part in own)

    def check_unchanged(self, module: str, names: Iterable[str]) -> None:
        """Raise CannotRewriteError if some file may assign to a variable of a module from outside.

        Args:
            module: The module's file.
            names: The variables.
        """
        wanted, name = set(names), PurePath(module).name
        for file, text in (("The script", self._source.text), *self._others.items()):
            for node in _nodes(text):
                is_stored = (
                    isinstance(node, ast.Attribute) and node.attr in wanted and not isinstance(node.ctx, ast.Load)
                )
                if is_stored:
                    raise CannotRewriteError(
                        f"{PurePath(file).name} assigns to {ast.unparse(node)}, which may be that of {name}."
                    )
                if _may_change_anything(node):
                    raise CannotRewriteError(
                        f"{PurePath(file).name} uses {ast.unparse(node)}, which may change what {name} holds."
                    )

    def _file(self, module: str) -> str:
        return str(self._folder.joinpath(*module.split(".")).with_suffix(".py"))

    def _module(self, file: str) -> _Module:
        if file not in self._modules:
            self._modules[file] = _Module(file, self._others[file], self._calls)
        return self._modules[file]


class _Module:
    """One of the other files."""

    def __init__(self, file: str, text: str, calls: Mapping[str, Call]) -> None:
        try:
            self.source = Source(text)
        except (cst.ParserSyntaxError, SyntaxError, ValueError, RecursionError):
            raise CannotRewriteError(f"{PurePath(file).name} cannot be parsed.") from None
        self._file, self._calls = file, calls
        self._scopes = Scopes(self.source.module)
        self.parts: list[cst.CSTNode] = []
        """The functions that were checked."""
        self._checked: set[tuple[str, bool]] = set()

    def check(self, name: str, is_called: bool, functions: ImportedFunctions) -> None:
        """Raise CannotRewriteError if a function may do something else in a later epoch."""
        if (name, is_called) in self._checked:
            return
        self._checked.add((name, is_called))
        file = PurePath(self._file).name
        if self._scopes.has_star_import:
            raise CannotRewriteError(f"{file} imports all names of a module, so it is unclear what they mean.")
        variable = self._scopes.at_top(name)
        if variable is None or variable.is_shared or (variable.function is None and is_called):
            raise CannotRewriteError(f"{name} is not a plain function of {file}.")
        if variable.function is None:
            self._check_constant(variable, functions)
            return
        recorded = recorded_in(self.source, self._calls, self._file)
        pure = PureCode(self.source, self._scopes, recorded, imported=functions)
        try:
            pure.add_function(variable, is_called)
            for read in pure.reads:
                _check_value(read)
        except CannotRewriteError as error:
            raise CannotRewriteError(f"In {file}: {error}") from None
        self.parts += pure.parts
        functions.check_unchanged(self._file, [read.name for read in (variable, *pure.reads)])

    def _check_constant(self, variable: Variable, functions: ImportedFunctions) -> None:
        try:
            _check_value(variable)
        except CannotRewriteError as error:
            raise CannotRewriteError(f"In {PurePath(self._file).name}: {error}") from None
        functions.check_unchanged(self._file, [variable.name])


def _check_value(variable: Variable) -> None:
    """Raise CannotRewriteError unless a variable of a module is always the same."""
    if variable.is_shared:
        raise CannotRewriteError(f"{variable.name} is declared global or nonlocal in a function, so it may change.")
    if variable.imported is not None or variable.function is not None:
        return
    binding = variable.bindings[0] if len(variable.bindings) == 1 else None
    if binding is None or binding.is_part or binding.value is None or not _is_literal(binding.value):
        raise CannotRewriteError(f"{variable.name} is not a number or a string that is assigned once.")


def _is_literal(node: cst.BaseExpression) -> bool:
    match node:
        case cst.Integer() | cst.Float() | cst.SimpleString() | cst.ConcatenatedString():
            return True
        case cst.Name():
            return node.value in ("True", "False", "None")
        case cst.UnaryOperation():
            return _is_literal(node.expression)
        case cst.BinaryOperation():
            return _is_literal(node.left) and _is_literal(node.right)
        case cst.Tuple():
            return all(_is_literal(element.value) for element in node.elements)
        case _:
            return False


def _nodes(text: str) -> Iterable[ast.AST]:
    """The nodes of a file; none of one that cannot be parsed, and so not be imported."""
    try:
        return ast.walk(ast.parse(text))
    except (SyntaxError, ValueError, RecursionError):
        return ()


def _may_change_anything(node: ast.AST) -> bool:
    if isinstance(node, ast.Name):
        return node.id in _CHANGING_NAMES
    return isinstance(node, ast.Attribute) and node.attr in _CHANGING_ATTRIBUTES
