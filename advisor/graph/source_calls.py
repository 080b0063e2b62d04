"""Reads the tf.data calls of a script and the flow of its datasets from the syntax tree, without running the script.

In: a script's syntax tree.  Out: `SourceCall`s that refer to their inputs, for every value that a variable may have.

The reader follows chains, variables, tuples, the script's own functions (datasets as arguments and return values), both branches
of conditions, and the functions passed to `interleave` and `flat_map`. Anything else (a dataset from a container, a function of
another module) is opaque and may be any pipeline.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from advisor.model.catalog import EXPERIMENTAL_READERS, READERS, SOURCE_METHODS, TRANSFORMATIONS

MAX_VALUES = 24
"""Maximum number of datasets that one variable may hold."""
MAX_DEPTH = 12
"""Maximum nesting of calls of the script's functions."""
MAX_STEPS = 200_000
"""Maximum number of evaluated expressions, repeated for each call of a function; bounds the time for malicious scripts."""
OPAQUE = "?"
"""Method of a dataset of unknown origin."""
_READERS = frozenset((*READERS, *EXPERIMENTAL_READERS))
_SOURCES = frozenset((*SOURCE_METHODS, "from_list"))
_STEPS = frozenset(TRANSFORMATIONS)
_SEVERAL_INPUTS = frozenset({"zip", "concatenate", "sample_from_datasets", "choose_from_datasets"})


@dataclass(frozen=True, eq=False)
class SourceCall:
    """One call that creates a dataset, on one path through the script."""

    method: str
    node: ast.Call | None
    inputs: tuple[SourceCall, ...] = ()
    function: ast.expr | None = None
    """The function passed to it, as written."""
    nested: tuple[SourceCall, ...] = ()
    """The datasets that the function may return."""


Value = tuple["SourceCall | tuple[Value, ...]", ...]
"""Everything a variable may hold: datasets, and tuples of values. Empty: no dataset."""
_Environment = dict[str, "Value"]
_NOTHING: Value = ()


def calls_of(tree: ast.Module) -> tuple[SourceCall, ...]:
    """Return every call in a script that creates a dataset, in execution order.

    Raises:
        RecursionError: The script is nested too deeply.
    """
    reader = _Reader(tree)
    reader.read(tree.body)
    return tuple(reader.made)


class _Reader:
    """Walks statements in order and tracks the possible values of each variable."""

    def __init__(self, tree: ast.Module) -> None:
        self.made: list[SourceCall] = []
        self._functions = {n.name: n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)}
        self._called: set[str] = set()
        self._reader_calls: dict[int, SourceCall] = {}
        self._steps = 0

    def read(self, body: Sequence[ast.stmt]) -> None:
        """Read the module, then every function that the module does not call."""
        self._block(body, {}, 0)
        for name, function in self._functions.items():
            if name not in self._called:
                self._call_function(function, [], {}, 0)

    def _block(self, body: Iterable[ast.stmt], env: _Environment, depth: int) -> list[Value]:
        """Evaluate statements and return the values of their `return` statements."""
        returned: list[Value] = []
        for statement in body:
            returned += self._statement(statement, env, depth)
        return returned

    def _statement(self, statement: ast.stmt, env: _Environment, depth: int) -> list[Value]:
        match statement:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                return []
            case ast.ClassDef():
                self._block([s for s in statement.body if not isinstance(s, ast.FunctionDef)], env, depth)
                return []
            case ast.Assign():
                value = self._value(statement.value, env, depth)
                for target in statement.targets:
                    self._assign(target, value, env)
                return []
            case ast.AnnAssign(value=ast.expr() as given):
                self._assign(statement.target, self._value(given, env, depth), env)
                return []
            case ast.Return(value=ast.expr() as given):
                return [self._value(given, env, depth)]
            case ast.If():
                self._value(statement.test, env, depth)
                return self._branches([statement.body, statement.orelse], env, depth)
            case ast.For() | ast.AsyncFor():
                self._value(statement.iter, env, depth)
                return self._branches([statement.body, []], env, depth) + self._block(statement.orelse, env, depth)
            case ast.While():
                return self._branches([statement.body, []], env, depth)
            case ast.With() | ast.AsyncWith():
                for item in statement.items:
                    self._value(item.context_expr, env, depth)
                return self._block(statement.body, env, depth)
            case ast.Try():
                handlers = [handler.body for handler in statement.handlers]
                returned = self._branches([statement.body, *handlers], env, depth)
                return returned + self._block([*statement.orelse, *statement.finalbody], env, depth)
            case ast.Expr():
                self._value(statement.value, env, depth)
        return []

    def _branches(self, bodies: Sequence[Sequence[ast.stmt]], env: _Environment, depth: int) -> list[Value]:
        """Evaluate alternative branches; afterwards a variable may hold its value from any of them."""
        returned: list[Value] = []
        ends = []
        for body in bodies:
            copy = dict(env)
            returned += self._block(body, copy, depth)
            ends.append(copy)
        for name in {name for end in ends for name in end}:
            env[name] = _union(end.get(name, _NOTHING) for end in ends)
        return returned

    def _assign(self, target: ast.expr, value: Value, env: _Environment) -> None:
        if isinstance(target, ast.Tuple | ast.List):
            for place, element in enumerate(target.elts):
                parts = [item[place] for item in value if isinstance(item, tuple) and place < len(item)]
                opaque = tuple(item for item in value if isinstance(item, SourceCall) and item.method == OPAQUE)
                self._assign(element, _union([*parts, opaque]), env)
        elif (name := _dotted(target)) is not None:
            env[name] = value

    def _value(self, node: ast.expr, env: _Environment, depth: int) -> Value:
        """The possible values of an expression, as far as datasets are concerned."""
        self._steps += 1
        if self._steps > MAX_STEPS:
            return _NOTHING
        match node:
            case ast.Name() | ast.Attribute():
                return env.get(_dotted(node) or "", _NOTHING)
            case ast.Call():
                return self._call(node, env, depth)
            case ast.IfExp():
                self._value(node.test, env, depth)
                return _union([self._value(node.body, env, depth), self._value(node.orelse, env, depth)])
            case ast.Tuple() | ast.List():
                return (tuple(self._value(element, env, depth) for element in node.elts),)
            case ast.NamedExpr():
                value = self._value(node.value, env, depth)
                self._assign(node.target, value, env)
                return value
            case ast.Await() | ast.Starred():
                return self._value(node.value, env, depth)
            case ast.Lambda():
                return _NOTHING
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self._value(child, env, depth)
        return _NOTHING

    def _call(self, node: ast.Call, env: _Environment, depth: int) -> Value:
        function = node.func
        name = function.attr if isinstance(function, ast.Attribute) else _dotted(function) or ""
        receiver = self._value(function.value, env, depth) if isinstance(function, ast.Attribute) else _NOTHING
        positional = [self._value(argument, env, depth) for argument in node.args]
        named = {word.arg: self._value(word.value, env, depth) for word in node.keywords}
        datasets = _datasets(receiver)
        if datasets and name in _STEPS:
            given = [*positional, *named.values()]
            return self._step(node, name, datasets, given, env, depth)
        if name in _READERS or (name in _SOURCES and _is_dataset_class(function)):
            return self._source(node, name, [*positional, *named.values()])
        if name in self._functions and depth < MAX_DEPTH:
            return self._call_function(self._functions[name], positional, named, depth + 1)
        if name == "experimental_distribute_dataset" and positional:
            return positional[0]
        return self._made([SourceCall(OPAQUE, node)]) if _makes_datasets_elsewhere(name) else _NOTHING

    def _step(
        self, node: ast.Call, name: str, datasets: list[SourceCall], given: list[Value], env: _Environment, depth: int
    ) -> Value:
        """Apply a transformation to each of `datasets`."""
        if name == "apply":
            made = self._applied(node, datasets, depth)
            return made or self._made([SourceCall(OPAQUE, node, (dataset,)) for dataset in datasets])
        function = _function_argument(node)
        nested = self._nested(function, env, depth) if function is not None else ()
        others = [_datasets(value) for value in given]
        calls = []
        for dataset in datasets:
            inputs: list[tuple[SourceCall, ...]] = [(dataset,)]
            if name in _SEVERAL_INPUTS:
                for other in others:
                    inputs = [(*before, more) for before in inputs for more in other][:MAX_VALUES]
            calls += [SourceCall(name, node, tuple(way), function, nested) for way in inputs]
        return self._made(calls)

    def _applied(self, node: ast.Call, datasets: list[SourceCall], depth: int) -> Value:
        given = _dotted(node.args[0]) if node.args else None
        function = self._functions.get(given or "")
        if function is None or depth >= MAX_DEPTH:
            return _NOTHING
        return self._call_function(function, [tuple(datasets)], {}, depth + 1)

    def _source(self, node: ast.Call, name: str, given: list[Value]) -> Value:
        ways: list[tuple[SourceCall, ...]] = [()]
        for value in given:
            parts = [_datasets(part) for part in _flat(value)]
            for part in parts:
                if part:
                    ways = [(*before, dataset) for before in ways for dataset in part][:MAX_VALUES]
        return self._made([SourceCall(name, node, way, _function_argument(node)) for way in ways])

    def _nested(self, function: ast.expr, env: _Environment, depth: int) -> tuple[SourceCall, ...]:
        """The datasets that a function passed to a transformation returns."""
        if depth >= MAX_DEPTH:
            return ()
        if isinstance(function, ast.Lambda):
            inner = {**env, **{argument.arg: _NOTHING for argument in function.args.args}}
            return tuple(_datasets(self._value(function.body, inner, depth + 1)))
        known = self._functions.get(_dotted(function) or "")
        name = (_dotted(function) or "").rpartition(".")[2]
        if known is None and name in _READERS:  # interleave(tf.data.TFRecordDataset)
            if id(function) not in self._reader_calls:
                node = ast.copy_location(ast.Call(function, [], []), function)
                self._reader_calls[id(function)] = SourceCall(name, node)
            return (self._reader_calls[id(function)],)
        return tuple(_datasets(self._call_function(known, [], {}, depth + 1))) if known is not None else ()

    def _call_function(
        self,
        function: ast.FunctionDef | ast.AsyncFunctionDef,
        positional: Sequence[Value],
        named: dict[str | None, Value],
        depth: int,
    ) -> Value:
        self._called.add(function.name)
        if depth >= MAX_DEPTH:
            return _NOTHING
        arguments = function.args
        names = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)]
        if names[:1] == ["self"] or names[:1] == ["cls"]:
            names = names[1:]
        env: _Environment = dict(zip(names, positional, strict=False))
        env.update({word: value for word, value in named.items() if word is not None})
        return _union(self._block(function.body, env, depth))

    def _made(self, calls: Sequence[SourceCall]) -> Value:
        kept = list(calls)[:MAX_VALUES]
        self.made += kept
        return tuple(kept)


def _union(values: Iterable[Value]) -> Value:
    seen: dict[int, object] = {}
    for value in values:
        for item in value:
            seen.setdefault(id(item), item)
    return tuple(list(seen.values())[:MAX_VALUES])  # type: ignore[arg-type]


def _datasets(value: Value) -> list[SourceCall]:
    return [item for item in value if isinstance(item, SourceCall)]


def _flat(value: Value) -> Iterator[Value]:
    """Yield the value and the parts of the tuples in it: `zip((a, b))` takes both."""
    yield tuple(item for item in value if isinstance(item, SourceCall))
    for item in value:
        if isinstance(item, tuple):
            for part in item:
                yield from _flat(part)


def _dotted(node: ast.expr) -> str | None:
    """`ds`, `self.ds`; None for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (before := _dotted(node.value)) is not None:
        return f"{before}.{node.attr}"
    return None


def _is_dataset_class(function: ast.expr) -> bool:
    """Whether `function` is a method of a dataset class or module, such as `tf.data.Dataset.range`."""
    if not isinstance(function, ast.Attribute):
        return False
    owner = _dotted(function.value) or ""
    return owner.rpartition(".")[2] in ("Dataset", "data", "experimental")


def _makes_datasets_elsewhere(name: str) -> bool:
    """Whether a library function of that name likely returns datasets: `tfds.load`, `image_dataset_from_directory`."""
    return name in ("load", "as_dataset", "make_csv_dataset", "make_batched_features_dataset") or "dataset_from" in name


def _function_argument(node: ast.Call) -> ast.expr | None:
    """The function passed to a transformation: its first argument or a known keyword argument."""
    for word in node.keywords:
        if word.arg in ("map_func", "predicate", "generator", "reduce_func", "key_func", "scan_func"):
            return word.value
    first = node.args[0] if node.args else None
    return first if isinstance(first, ast.Lambda | ast.Name | ast.Attribute) else None
