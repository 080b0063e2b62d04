"""What a file calls TensorFlow, so that an inserted `tf.data.AUTOTUNE` is valid there.

In: the imports and assignments of a file.  Out: `Imports.write(code, around)`, the code in the file's own names.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import libcst as cst
from libcst.helpers import get_full_name_for_node

_SAME_MODULE = ("tensorflow.compat.v2", "tensorflow.compat.v1", "tensorflow")
"""Modules that hold the same `data.AUTOTUNE`; longer names first."""

_LITERALS = {"tf.data.AUTOTUNE": "-1"}
"""What a name stands for, where the file imports nothing that leads to it. Source: `dataset_ops.AUTOTUNE = -1`."""


@dataclass(frozen=True, slots=True)
class _Binding:
    path: str
    """`tensorflow.data`."""
    name: str
    """What the file calls it."""
    scope: cst.CSTNode | None
    """The function or class it is imported in; None: the module."""


@dataclass(slots=True)
class Imports:
    """The names of a file that lead to TensorFlow."""

    _bindings: list[_Binding] = field(default_factory=list)
    _assigned: set[str] = field(default_factory=set)

    def add_import(self, node: cst.Import, scopes: Sequence[cst.CSTNode]) -> None:
        """Take note of `import a.b as c`."""
        for alias in node.names:
            path = get_full_name_for_node(alias.name) or ""
            if alias.asname is None:
                path = path.partition(".")[0]
            self._add(path, alias, path, scopes)

    def add_import_from(self, node: cst.ImportFrom, scopes: Sequence[cst.CSTNode]) -> None:
        """Take note of `from a import b as c`."""
        if node.module is None or node.relative or isinstance(node.names, cst.ImportStar):
            return
        module = get_full_name_for_node(node.module)
        for alias in node.names:
            name = get_full_name_for_node(alias.name) or ""
            self._add(f"{module}.{name}", alias, name, scopes)

    def add_assignment(self, target: cst.CSTNode) -> None:
        """Take note that a name is given another meaning somewhere."""
        elements = target.elements if isinstance(target, cst.Tuple | cst.List) else ()
        if isinstance(target, cst.Name):
            self._assigned.add(target.value)
        for element in elements:
            self.add_assignment(element.value)

    def write(self, code: str, around: Collection[cst.CSTNode]) -> str | None:
        """`code` (which says `tf` for TensorFlow) in the names that hold inside the nodes `around`; None: there are none."""
        if not code.startswith("tf."):
            return code
        wanted = "tensorflow" + code.removeprefix("tf")
        candidates = [
            binding.name + wanted.removeprefix(binding.path)
            for binding in self._bindings
            if (wanted == binding.path or wanted.startswith(binding.path + "."))
            and binding.name not in self._assigned
            and (binding.scope is None or any(binding.scope is node for node in around))
        ]
        # The shortest is the most direct import: `AUTOTUNE`, then `data.AUTOTUNE`, then `tf.data.AUTOTUNE`.
        return min(candidates, key=len) if candidates else _LITERALS.get(code)

    def _add(self, path: str, alias: cst.ImportAlias, default: str, scopes: Sequence[cst.CSTNode]) -> None:
        name = alias.evaluated_alias or default
        for module in _SAME_MODULE:
            if path == module or path.startswith(module + "."):
                path = "tensorflow" + path.removeprefix(module)
                break
        else:
            return
        if path == "tensorflow.data.experimental.AUTOTUNE":
            path = "tensorflow.data.AUTOTUNE"
        self._bindings.append(_Binding(path, name, scopes[-1] if scopes else None))
