"""Resolves the names of a file, so that an inserted `tf.data.AUTOTUNE` is valid in it.

In: the imports and assignments of a file.  Out: `Names.write(code, around)`, the code with the file's own names, and the
import it needs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field

import libcst as cst
from libcst.helpers import get_full_name_for_node

_SAME_MODULE = ("tensorflow.compat.v2", "tensorflow.compat.v1", "tensorflow")
"""Modules with the same `data.AUTOTUNE`; longer names first."""

_LITERALS = {"tf.data.AUTOTUNE": "-1"}
"""Values of names, used where the name cannot be imported safely. Source: `dataset_ops.AUTOTUNE = -1`."""

_SCOPES = cst.FunctionDef | cst.ClassDef


@dataclass(frozen=True, slots=True)
class _Binding:
    path: str
    """`tensorflow.data`."""
    name: str
    """Its name in the file."""
    scope: cst.CSTNode | None
    """The function or class that contains the import; None for the module."""


@dataclass(slots=True)
class Names:
    """The names of a file."""

    bindings: list[_Binding] = field(default_factory=list)
    """Imports of TensorFlow or of parts of it."""
    bound: Counter[str] = field(default_factory=Counter)
    """How often a name is bound by anything but those imports."""
    values: dict[str, cst.BaseExpression] = field(default_factory=dict)
    """Name -> the last value assigned to it alone."""
    used: set[str] = field(default_factory=set)
    """Every name in the file."""

    def path_of(self, name: str) -> str | None:
        """Return the path of an imported name, such as `tensorflow.data.Dataset`; None if it may be something else."""
        paths = {binding.path for binding in self.bindings if binding.name == name}
        return paths.pop() if len(paths) == 1 and not self.bound[name] else None

    def value_of(self, name: str) -> cst.BaseExpression | None:
        """Return the value of a name that the file assigns exactly once."""
        return self.values.get(name) if self.bound[name] == 1 else None

    def fresh(self, name: str) -> str:
        """Return `name`, with a number appended if the file already uses it."""
        candidates = [name, *(f"{name}_{number}" for number in range(2, 100))]
        return next(candidate for candidate in candidates if candidate not in self.used)

    def write(self, code: str, around: Collection[cst.CSTNode]) -> tuple[str, str | None] | None:
        """Express code with the names of the file.

        Args:
            code: An expression in which `tf` is TensorFlow.
            around: The nodes that enclose the place of the code.

        Returns:
            The code and the import statement it needs, if any; None if it cannot be expressed there.
        """
        if not code.startswith("tf."):
            return code, None
        wanted = "tensorflow" + code.removeprefix("tf")
        candidates = [
            binding.name + wanted.removeprefix(binding.path)
            for binding in self.bindings
            if (wanted == binding.path or wanted.startswith(binding.path + "."))
            and not self.bound[binding.name]
            and (binding.scope is None or any(binding.scope is node for node in around))
        ]
        if candidates:  # the shortest is the most direct: `AUTOTUNE`, then `data.AUTOTUNE`, then `tf.data.AUTOTUNE`
            return min(candidates, key=len), None
        if "tf" not in self.used:
            return code, "import tensorflow as tf"
        literal = _LITERALS.get(code)
        if literal is not None:
            return literal, None
        return (wanted, "import tensorflow") if "tensorflow" not in self.used else None


class _NamesFinder(cst.CSTVisitor):
    def __init__(self) -> None:
        super().__init__()
        self.names = Names()
        self._scopes: list[cst.CSTNode] = []
        self._typing = 0
        """Number of enclosing `if TYPE_CHECKING:`, whose imports do not exist at run time."""

    def visit_Name(self, node: cst.Name) -> None:
        self.names.used.add(node.value)

    def visit_Import(self, node: cst.Import) -> None:
        for alias in node.names:
            path = get_full_name_for_node(alias.name) or ""
            if alias.asname is None:
                path = path.partition(".")[0]
            self._import(path, alias.evaluated_alias or path)

    def visit_ImportFrom(self, node: cst.ImportFrom) -> None:
        if isinstance(node.names, cst.ImportStar):
            return
        module = "" if node.relative or node.module is None else get_full_name_for_node(node.module)
        for alias in node.names:
            name = get_full_name_for_node(alias.name) or ""
            self._import(f"{module}.{name}", alias.evaluated_alias or name)

    def visit_Assign(self, node: cst.Assign) -> None:
        for target in node.targets:
            self._bind(target.target)
            if isinstance(target.target, cst.Name):
                self.names.values[target.target.value] = node.value

    def visit_AnnAssign(self, node: cst.AnnAssign) -> None:
        self._bind(node.target)
        if isinstance(node.target, cst.Name) and node.value is not None:
            self.names.values[node.target.value] = node.value

    def visit_AugAssign(self, node: cst.AugAssign) -> None:
        self._bind(node.target)

    def visit_NamedExpr(self, node: cst.NamedExpr) -> None:
        self._bind(node.target)

    def visit_For(self, node: cst.For) -> None:
        self._bind(node.target)

    def visit_CompFor(self, node: cst.CompFor) -> None:
        self._bind(node.target)

    def visit_AsName(self, node: cst.AsName) -> None:
        self._bind(node.name)

    def visit_Del(self, node: cst.Del) -> None:
        self._bind(node.target)

    def visit_Param(self, node: cst.Param) -> None:
        self._bind(node.name)

    def visit_ImportAlias(self, node: cst.ImportAlias) -> bool:
        return False  # its names are handled by visit_Import and visit_ImportFrom

    def visit_If(self, node: cst.If) -> None:
        self._typing += _is_type_checking(node)

    def leave_If(self, original_node: cst.If) -> None:
        self._typing -= _is_type_checking(original_node)

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        self._bind(node.name)
        self._scopes.append(node)

    def leave_FunctionDef(self, original_node: cst.FunctionDef) -> None:
        self._scopes.pop()

    def visit_ClassDef(self, node: cst.ClassDef) -> None:
        self._bind(node.name)
        self._scopes.append(node)

    def leave_ClassDef(self, original_node: cst.ClassDef) -> None:
        self._scopes.pop()

    def _import(self, path: str, name: str) -> None:
        self.names.used.add(name)
        for module in _SAME_MODULE:
            if path == module or path.startswith(module + "."):
                path = "tensorflow" + path.removeprefix(module)
                break
        else:
            self.names.bound[name] += 1
            return
        if path == "tensorflow.data.experimental.AUTOTUNE":
            path = "tensorflow.data.AUTOTUNE"
        if not self._typing:
            self.names.bindings.append(_Binding(path, name, self._scopes[-1] if self._scopes else None))

    def _bind(self, target: cst.CSTNode) -> None:
        if isinstance(target, cst.Name):
            self.names.bound[target.value] += 1
        elif isinstance(target, cst.Tuple | cst.List):
            for element in target.elements:
                self._bind(element.value)
        elif isinstance(target, cst.StarredElement):
            self._bind(target.value)


def _is_type_checking(node: cst.If) -> bool:
    return (get_full_name_for_node(node.test) or "").rpartition(".")[2] == "TYPE_CHECKING"


def names_in(node: cst.CSTNode) -> Names:
    """Collect the names of a module, or of a part of one."""
    finder = _NamesFinder()
    node.visit(finder)
    return finder.names


def import_place(module: cst.Module) -> cst.CSTNode | None:
    """Return the statement after which an import is inserted: the last import, else the docstring; None for the very top."""
    place: cst.CSTNode | None = None
    for index, statement in enumerate(module.body):
        if not isinstance(statement, cst.SimpleStatementLine):
            break
        first = statement.body[0]
        is_docstring = (
            index == 0
            and isinstance(first, cst.Expr)
            and isinstance(first.value, cst.SimpleString | cst.ConcatenatedString)
        )
        if not is_docstring and not isinstance(first, cst.Import | cst.ImportFrom):
            break
        place = statement
    return place
