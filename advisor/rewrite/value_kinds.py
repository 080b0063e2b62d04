"""Tells what the text shows of a variable's value: whether it can change in place, and whether reading it runs code.

In: `Scopes` and a variable.  Out: a `Kind`. Everything is judged by lists of what is known; the rest is UNKNOWN.
"""

from __future__ import annotations

from enum import IntEnum

import libcst as cst

from advisor.model.catalog import EXPERIMENTAL_READERS, READERS, SOURCE_METHODS, TRANSFORMATIONS
from advisor.rewrite.scopes import Binding, Scopes, Variable
from advisor.rewrite.syntax import find_all

_DEPTH = 12
"""Assignments that are followed from one variable to the next."""


class Kind(IntEnum):
    """What is known of a value, the most first."""

    FIXED = 0
    """A number, string, tensor, dataset, or a tuple of those: it cannot change in place."""
    PLAIN = 1
    """A list, dictionary, array or the like: it may change in place, and reading it runs no code of the script."""
    NAMESPACE = 2
    """An object with plain attributes, such as the result of `parse_args`."""
    UNKNOWN = 3


PURE_BUILTINS = frozenset({
    "abs", "bool", "dict", "divmod", "enumerate", "float", "frozenset", "int", "isinstance", "len", "list", "max", "min", "pow",
    "range", "reversed", "round", "set", "sorted", "str", "sum", "tuple", "zip",
})  # fmt: skip
"""Builtin functions that only compute a value, of plain arguments."""
_FIXED_BUILTINS = frozenset({"abs", "bool", "float", "int", "isinstance", "len", "range", "round", "str"})
_CONSTANTS = frozenset({"False", "None", "True"})
_PURE_FUNCTIONS = frozenset({
    "os.fspath", "os.path.basename", "os.path.dirname", "os.path.join", "os.path.normpath", "os.path.split", "os.path.splitext",
    "pathlib.Path", "pathlib.PurePath",
})  # fmt: skip
"""Functions on paths that do not look at the disk."""
_TEXT_FUNCTIONS = frozenset({"os.environ.get", "os.getenv", "os.path.abspath", "os.path.expanduser"})
_PLAIN_FUNCTIONS = frozenset({
    "glob.glob", "json.load", "json.loads", "os.listdir", "tensorflow.io.gfile.glob", "tensorflow.io.gfile.listdir",
})  # fmt: skip
EAGER_FUNCTIONS = frozenset({
    "cast", "concat", "constant", "convert_to_tensor", "expand_dims", "eye", "fill", "io.FixedLenFeature",
    "io.FixedLenSequenceFeature", "io.RaggedFeature", "io.SparseFeature", "io.VarLenFeature", "linspace", "ones", "range",
    "reshape", "shape", "stack", "RaggedTensorSpec", "SparseTensorSpec", "TensorShape", "TensorSpec", "zeros",
})  # fmt: skip
"""Functions of TensorFlow that give the same value for the same arguments, and do nothing else."""
_DATASET_METHODS = frozenset(TRANSFORMATIONS) - {"apply"}
"""Methods of a dataset that return another dataset; `apply` returns what its function returns."""
_DATASET_FUNCTIONS = frozenset({
    *(f"Dataset.{method}" for method in SOURCE_METHODS), *READERS, *EXPERIMENTAL_READERS, "Counter", "choose_from_datasets",
    "from_list", "load", "make_batched_features_dataset", "make_csv_dataset", "sample_from_datasets",
})  # fmt: skip
"""Functions of `tf.data` and `tf.data.experimental` that return a dataset."""
_TFDS_LOAD = "tensorflow_datasets.load"
_NUMPY_NOT_PLAIN = frozenset({"default_rng", "memmap", "nditer", "vectorize", "frompyfunc", "load"})
KEEPING_METHODS = frozenset({
    "as_posix", "astype", "copy", "count", "flatten", "format", "get", "index", "items", "join", "keys", "lower", "max", "mean",
    "min", "numpy", "ravel", "replace", "reshape", "split", "std", "strip", "sum", "tolist", "transpose", "upper", "values",
})  # fmt: skip
"""Methods of plain values that do not change them."""
PLAIN_ATTRIBUTES = frozenset({"dtype", "ndim", "shape", "size"})


class ValueKinds:
    """The kinds of the variables of a module."""

    def __init__(self, scopes: Scopes) -> None:
        self._scopes = scopes

    def of(self, variable: Variable, depth: int = _DEPTH) -> Kind:
        """Return the kind of everything that a variable is bound to.

        Args:
            variable: A name in one scope.
            depth: Assignments that are still followed; at 0 the kind is unknown.
        """
        if not variable.bindings or depth <= 0:
            return Kind.UNKNOWN
        return max(self._binding(binding, depth - 1) for binding in variable.bindings)

    def _binding(self, binding: Binding, depth: int) -> Kind:
        if isinstance(binding.node, cst.ClassDef):
            return Kind.NAMESPACE if self._has_only_values(binding.node, depth) else Kind.UNKNOWN
        if binding.value is None:
            return Kind.UNKNOWN
        kind = self._expression(binding.value, depth)
        if not binding.is_part:
            return kind
        return kind if kind is Kind.FIXED else Kind.PLAIN if kind is Kind.PLAIN else Kind.UNKNOWN

    def _expression(self, node: cst.BaseExpression, depth: int) -> Kind:
        match node:
            case cst.Integer() | cst.Float() | cst.Imaginary() | cst.SimpleString() | cst.ConcatenatedString():
                return Kind.FIXED
            case cst.FormattedString() | cst.Comparison() | cst.Ellipsis():
                return Kind.FIXED
            case cst.Name():
                variable = self._scopes.variable(node)
                return Kind.FIXED if not variable.bindings and node.value in _CONSTANTS else self.of(variable, depth)
            case cst.UnaryOperation():
                return self._expression(node.expression, depth)
            case cst.BinaryOperation() | cst.BooleanOperation():
                return max(self._expression(node.left, depth), self._expression(node.right, depth))
            case cst.IfExp():
                return max(self._expression(node.body, depth), self._expression(node.orelse, depth))
            case cst.Tuple():
                return max((self._expression(part.value, depth) for part in node.elements), default=Kind.FIXED)
            case cst.List() | cst.Set():
                return self._held(*(part.value for part in node.elements), depth=depth)
            case cst.Dict():
                return self._held(*(part.value for part in node.elements), depth=depth)
            case cst.ListComp() | cst.SetComp() | cst.GeneratorExp():
                return Kind.UNKNOWN if isinstance(node, cst.GeneratorExp) else self._comprehension(node, depth)
            case cst.Subscript():
                return max(Kind.PLAIN, self._plain(node.value, depth))
            case cst.Attribute():
                return self._attribute(node, depth)
            case cst.Call():
                return self._call(node, depth)
        return Kind.UNKNOWN

    def _held(self, *parts: cst.BaseExpression, depth: int) -> Kind:
        """The kind of a container of these values."""
        kind = max((self._expression(part, depth) for part in parts), default=Kind.FIXED)
        return Kind.PLAIN if kind <= Kind.PLAIN else Kind.UNKNOWN

    def _plain(self, node: cst.BaseExpression, depth: int) -> Kind:
        kind = self._expression(node, depth)
        return kind if kind <= Kind.PLAIN else Kind.UNKNOWN

    def _comprehension(self, node: cst.CSTNode, depth: int) -> Kind:
        calls = [self._call(call, depth) for call in find_all(node, cst.Call)]
        return Kind.PLAIN if max(calls, default=Kind.PLAIN) <= Kind.PLAIN else Kind.UNKNOWN

    def _attribute(self, node: cst.Attribute, depth: int) -> Kind:
        path = self._scopes.path_of(node)
        if path is not None:
            return Kind.FIXED if path.startswith(("tensorflow.", "numpy.", "math.")) else Kind.UNKNOWN
        kind = self._expression(node.value, depth)
        if kind is Kind.NAMESPACE:
            return Kind.PLAIN
        return Kind.FIXED if kind <= Kind.PLAIN and node.attr.value in PLAIN_ATTRIBUTES else Kind.UNKNOWN

    def _call(self, node: cst.Call, depth: int) -> Kind:
        function = node.func
        if isinstance(function, cst.Name):
            variable = self._scopes.variable(function)
            if not variable.bindings:
                name = function.value
                return Kind.FIXED if name in _FIXED_BUILTINS else Kind.PLAIN if name in PURE_BUILTINS else Kind.UNKNOWN
            if variable.function is not None:
                return self._returned(variable.function, depth)
            if isinstance(variable.bindings[0].node, cst.ClassDef):
                return self.of(variable, depth)
        path = self._scopes.path_of(function)
        if path is not None:
            return Kind.FIXED if path == _TFDS_LOAD and _names_a_split(node) else kind_of_call(path)
        if not isinstance(function, cst.Attribute):
            return Kind.UNKNOWN
        if function.attr.value == "parse_args":
            return Kind.NAMESPACE
        if function.attr.value in _DATASET_METHODS and self.is_dataset(function.value):
            return Kind.FIXED
        if function.attr.value in KEEPING_METHODS:
            return max(Kind.PLAIN, self._plain(function.value, depth))
        return Kind.UNKNOWN

    def is_dataset(self, node: cst.BaseExpression, within: frozenset[Variable] = frozenset()) -> bool:
        """Return whether the text shows that an expression is a dataset.

        Args:
            node: The expression.
            within: Variables whose bindings are being judged: `ds = ds.map(f)` is a dataset if the other bindings are.
        """
        if isinstance(node, cst.Name):
            variable = self._scopes.variable(node)
            return variable in within or (
                bool(variable.bindings)
                and all(
                    binding.value is not None
                    and not binding.is_part
                    and self.is_dataset(binding.value, within | {variable})
                    for binding in variable.bindings
                )
            )
        if not isinstance(node, cst.Call):
            return False
        path = self._scopes.path_of(node.func)
        if path is not None:
            return _makes_dataset(path) or (path == _TFDS_LOAD and _names_a_split(node))
        is_method = isinstance(node.func, cst.Attribute) and node.func.attr.value in _DATASET_METHODS
        return is_method and isinstance(node.func, cst.Attribute) and self.is_dataset(node.func.value, within)

    def _returned(self, function: cst.FunctionDef, depth: int) -> Kind:
        """The kind of what a function of the file returns."""
        yields: list[cst.Yield] = find_all(function.body, cst.Yield)
        if depth <= 0 or function.decorators or yields:
            return Kind.UNKNOWN
        returns = [node.value for node in find_all(function.body, cst.Return)]
        return max(
            (Kind.FIXED if value is None else self._expression(value, depth - 1) for value in returns),
            default=Kind.FIXED,
        )

    def _has_only_values(self, node: cst.ClassDef, depth: int) -> bool:
        """Whether a class has nothing but plain values: no methods, properties, bases or metaclass."""
        if node.bases or node.keywords or not isinstance(node.body, cst.IndentedBlock):
            return False
        for decorator in node.decorators:
            if self._scopes.path_of(decorator.decorator) != "dataclasses.dataclass":
                return False
        lines = [line.body if isinstance(line, cst.SimpleStatementLine) else [line] for line in node.body.body]
        return all(self._is_value(part, depth) for parts in lines for part in parts)

    def _is_value(self, node: cst.CSTNode, depth: int) -> bool:
        """Whether a line of a class is a docstring, or assigns a plain value."""
        match node:
            case cst.Assign(value=value):
                return self._expression(value, depth) <= Kind.PLAIN
            case cst.AnnAssign(value=value):
                return value is None or self._expression(value, depth) <= Kind.PLAIN
            case cst.Expr(value=value):
                return isinstance(value, cst.SimpleString | cst.ConcatenatedString)
        return isinstance(node, cst.Pass)


def kind_of_call(path: str) -> Kind:
    """Return the kind of what an imported function returns, given its full name."""
    name = path.removeprefix("tensorflow.")
    if name in EAGER_FUNCTIONS or name.startswith(("random.stateless_", "random.normal", "random.uniform")):
        return Kind.FIXED
    if path.startswith("math.") or path in _PURE_FUNCTIONS | _TEXT_FUNCTIONS or _makes_dataset(path):
        return Kind.FIXED
    if path in _PLAIN_FUNCTIONS or path.endswith(".load_data"):
        return Kind.PLAIN
    if path == "types.SimpleNamespace":
        return Kind.NAMESPACE
    if path.startswith("numpy."):
        last = path.rpartition(".")[2]
        return Kind.PLAIN if last.islower() and last not in _NUMPY_NOT_PLAIN else Kind.UNKNOWN
    return Kind.UNKNOWN


def _makes_dataset(path: str) -> bool:
    """Whether a function, given its full name, returns a dataset: `tensorflow.data.Dataset.range`."""
    if path.startswith(("tensorflow.keras.", "keras.")):
        return path.endswith(("_dataset_from_directory", ".timeseries_dataset_from_array"))
    name = path.removeprefix("tensorflow.data.").removeprefix("experimental.")
    return name != path and name in _DATASET_FUNCTIONS


def _names_a_split(call: cst.Call) -> bool:
    """Whether a call of `tfds.load` names one split, so that it returns a dataset and not a dictionary of them."""
    keywords = {arg.keyword.value: arg.value for arg in call.args if arg.keyword is not None}
    return isinstance(keywords.get("split"), cst.SimpleString)


def is_pure_call(path: str) -> bool:
    """Whether an imported function, given its full name, only computes a value that its arguments determine."""
    name = path.removeprefix("tensorflow.")
    return (name != path and name in EAGER_FUNCTIONS) or path.startswith("math.") or path in _PURE_FUNCTIONS


__all__ = [
    "EAGER_FUNCTIONS",
    "KEEPING_METHODS",
    "PLAIN_ATTRIBUTES",
    "PURE_BUILTINS",
    "Kind",
    "ValueKinds",
    "is_pure_call",
    "kind_of_call",
]
