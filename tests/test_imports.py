"""No two files of the package import each other, directly or through others, not even inside functions."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import networkx as nx

ROOT = Path(__file__).parents[1]


def test_no_file_imports_itself_through_others() -> None:
    files = [*ROOT.glob("advisor/**/*.py"), *ROOT.glob("rules/*.py")]
    modules = {_name(file): file for file in files}
    assert len(modules) > 500
    graph: nx.DiGraph[str] = nx.DiGraph()
    for name, file in modules.items():
        for imported in _imports(ast.parse(file.read_text(encoding="utf-8"))):
            while imported not in modules and "." in imported:
                imported = imported.rpartition(".")[0]
            if imported in modules and imported != name:
                graph.add_edge(name, imported)
    cycles = [sorted(cycle) for cycle in nx.strongly_connected_components(graph) if len(cycle) > 1]
    assert graph.number_of_edges() > 2000 and cycles == []


def test_a_cycle_is_seen_inside_functions_and_not_in_types() -> None:
    text = "if TYPE_CHECKING:\n    from a import types\ndef f():\n    from b import c\n    import d.e"
    assert list(_imports(ast.parse(text))) == ["b.c", "d.e"]


def test_a_file_name_occurs_twice_only_in_packages_that_are_counterparts() -> None:
    """`workflows/fix.py` runs what `commands/fix.py` parses, and `replay/` and `rewrite/` do the same to objects and to text."""
    folders: dict[str, set[str]] = {}
    for file in (ROOT / "advisor").rglob("*.py"):
        folder = file.parent.relative_to(ROOT / "advisor").as_posix()
        if file.name != "__init__.py" and folder not in (
            "rules",
            "host/calibration",
        ):  # named after what uses the constants
            folders.setdefault(file.name, set()).add(folder)
    pairs = {"commands", "workflows"}, {"replay", "rewrite"}
    assert {name: places for name, places in folders.items() if len(places) > 1 and places not in pairs} == {}


def _name(file: Path) -> str:
    parts = file.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imports(tree: ast.AST) -> Iterator[str]:
    """The dotted names that a module imports when it runs; those for type checkers alone do not count."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        else:
            yield from _imports(node)
