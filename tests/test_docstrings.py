"""Every public function with three or more parameters says in its docstring what they mean."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
LEAST = 3
"""Parameters without `self` and `cls`, from which on the first line cannot describe them all."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


def test_functions_with_three_parameters_describe_them():
    trees = {file.relative_to(ROOT).as_posix(): ast.parse(file.read_text("utf-8")) for file in public_files()}
    classes = classes_of(trees.values())
    checked, missing = 0, []
    for file, tree in trees.items():
        for function in functions_to_document(tree, classes):
            checked += 1
            if not describes_parameters(function):
                missing.append(f"{file}:{function.lineno} {function.name}")
    assert checked > 250
    assert missing == []


def test_a_function_without_the_section_is_seen():
    function = ast.parse('def f(a, *, b, **c):\n    """Return a.\n\n    Args:\n        a: A number.\n    """')
    assert [describes_parameters(found) for found in functions_to_document(function, {})] == [True]
    function = ast.parse('def f(a, *, b, **c):\n    """Return a, of the Args: a."""')
    assert [describes_parameters(found) for found in functions_to_document(function, {})] == [False]


def test_private_names_overrides_and_commands_need_none():
    text = """
class Base:
    def send(self, a, b, c): ...
    def two(self, a, b): ...
    def _private(self, a, b, c): ...
class Derived(Base):
    def send(self, a, b, c): ...
    def own(self, a, b, c): ...
class _Private:
    def send(self, a, b, c): ...
@click.command("name")
def command(a, b, c): ...
@overload
def overloaded(a, b, c): ...
def short(a, b): ...
"""
    tree = ast.parse(text)
    assert [function.name for function in functions_to_document(tree, classes_of([tree]))] == ["send", "own"]


def public_files() -> Iterator[Path]:
    for file in sorted([*ROOT.glob("advisor/**/*.py"), *ROOT.glob("rules/*.py")]):
        parts = file.relative_to(ROOT).with_suffix("").parts
        if not any(part.startswith("_") and part != "__init__" for part in parts):
            yield file


def classes_of(trees: Iterable[ast.Module]) -> dict[str, ast.ClassDef]:
    return {node.name: node for tree in trees for node in tree.body if isinstance(node, ast.ClassDef)}


def functions_to_document(tree: ast.Module, classes: Mapping[str, ast.ClassDef]) -> Iterator[Function]:
    """The public functions of a module, and the public methods of its public classes, with enough parameters."""
    for node in tree.body:
        if isinstance(node, Function) and needs_section(node):
            yield node
        elif isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            inherited = set(inherited_methods(node, classes))
            for method in node.body:
                if isinstance(method, Function) and method.name not in inherited and needs_section(method):
                    yield method


def needs_section(function: Function) -> bool:
    """Click shows the docstrings of commands as their help, and overloads have none."""
    decorators = [ast.unparse(decorator) for decorator in function.decorator_list]
    is_exempt = any(text.endswith("overload") or ".command(" in text or ".group(" in text for text in decorators)
    return not function.name.startswith("_") and not is_exempt and len(parameters(function)) >= LEAST


def parameters(function: Function) -> list[str]:
    arguments = function.args
    variable = [argument for argument in (arguments.vararg, arguments.kwarg) if argument is not None]
    names = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *variable)]
    return names[1:] if names[:1] in (["self"], ["cls"]) else names


def inherited_methods(node: ast.ClassDef, classes: Mapping[str, ast.ClassDef]) -> Iterator[str]:
    """Names of the methods of its bases in the package: the base describes their parameters."""
    for base in node.bases:
        parent = classes.get(ast.unparse(base).rpartition(".")[2])
        if parent is not None and parent is not node:
            yield from (method.name for method in parent.body if isinstance(method, Function))
            yield from inherited_methods(parent, classes)


def describes_parameters(function: Function) -> bool:
    return "Args:" in (ast.get_docstring(function) or "").splitlines()
