"""Writes changes of the training step into a text: an argument of `compile` or `fit`, Keras' policy, a decorator, a batch size.

In: `Source`, a `StepEdit`.  Out: the splices. What is not plain is refused: arguments hidden in `**`, a value that is set
already, a function that is defined twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

import libcst as cst
from libcst.helpers import get_full_name_for_node

from advisor.model.calls import Call
from advisor.model.edits import (
    Code,
    DecorateFunction,
    SetBatchSize,
    SetCompileArgument,
    SetFitArgument,
    SetFunctionArgument,
    SetPolicy,
    StepEdit,
    Value,
)
from advisor.rewrite.arguments import find_argument, set_keyword
from advisor.rewrite.cannot_rewrite import CannotRewriteError
from advisor.rewrite.decorated_step import decorate
from advisor.rewrite.function_argument import set_function_argument
from advisor.rewrite.only_reader import check_only_reader
from advisor.rewrite.splices import Splice
from advisor.rewrite.syntax import Source, find_all

_POLICY_NAMES = frozenset(
    {"set_global_policy", "set_dtype_policy", "set_policy", "mixed_precision", "DTypePolicy", "dtype_policy"}
)
"""Names that show that the script chooses the types of its layers itself."""
_MAX_POSITIONAL = 4
"""Arguments of `compile` that may be given by position: Keras 2 and 3 have `run_eagerly` and those behind it later."""

_MAX_POSITIONAL_OF_FIT = 12
"""Arguments of `fit` before `steps_per_epoch`, in Keras 2 and 3."""


def splices_of(source: Source, edit: StepEdit) -> Iterator[Splice]:
    """Return the splices of one edit.

    Raises:
        CannotRewriteError: The change is unclear; the message gives the reason.
    """
    match edit:
        case SetCompileArgument():
            call = source.locate(Call("compile", "compile", edit.site, text=edit.text))
            yield from set_keyword(source, call, edit.name, _text(edit.value), _MAX_POSITIONAL)
        case SetFitArgument():
            yield from _set_fit_argument(source, edit)
        case SetPolicy():
            yield _policy(source, edit.policy)
        case SetFunctionArgument():
            yield from set_function_argument(source, edit)
        case SetBatchSize():
            yield _batch_size(source, edit)
        case DecorateFunction():
            yield decorate(source, edit)
        case _:
            assert_never(edit)


def _set_fit_argument(source: Source, edit: SetFitArgument) -> Iterator[Splice]:
    """Set an argument of `fit` that it does not set yet."""
    fit = source.locate(Call("fit", "fit", edit.site))
    if edit.dataset.file != edit.site.file:
        raise CannotRewriteError("The dataset is made in another file than that of fit, so others may read it.")
    made = source.locate(Call(edit.method, edit.method, edit.dataset))
    check_only_reader(source, made.node, fit.node)
    present = next((argument for argument in fit.arguments if argument.keyword == edit.name), None)
    if present is not None and source.text[present.start : present.end] != "None":
        raise CannotRewriteError(f"fit already sets {edit.name} (line {edit.site.line}).")
    yield from set_keyword(source, fit, edit.name, _text(edit.value), _MAX_POSITIONAL_OF_FIT)


def _policy(source: Source, policy: str) -> Splice:
    """A line after the imports around the one that makes Keras known."""
    for name in find_all(source.module, cst.Name):
        if name.value in _POLICY_NAMES:
            raise CannotRewriteError(
                f"The script chooses the types of its layers itself (line {source.line_number(name)})."
            )
    body = list(source.module.body)
    places = [(rank, index, name) for index, line in enumerate(body) for rank, name in _keras_names(source, line)]
    if not places:
        raise CannotRewriteError("No import at the top of the script makes Keras known.")
    _, index, keras = min(places)
    while index + 1 < len(body) and _imports(body[index + 1]):
        index += 1
    place = source.line_span(body[index])[1]
    line = f'{keras}.mixed_precision.set_global_policy("{policy}")'
    has_break = source.text[place - 1 : place] in ("\n", "\r")
    return Splice(place, place, f"{line}{source.newline}" if has_break else f"{source.newline}{line}")


def _imports(line: cst.CSTNode) -> list[cst.Import | cst.ImportFrom]:
    """The imports of a line that has nothing else."""
    parts = line.body if isinstance(line, cst.SimpleStatementLine) else ()
    imports = [part for part in parts if isinstance(part, cst.Import | cst.ImportFrom)]
    return imports if len(imports) == len(parts) else []


def _keras_names(source: Source, line: cst.CSTNode) -> Iterator[tuple[int, str]]:
    """How Keras can be written after a line of imports; the smallest rank is the most direct."""
    for statement in _imports(line):
        if isinstance(statement.names, cst.ImportStar):
            continue
        module = ""
        if isinstance(statement, cst.ImportFrom):
            if statement.relative or statement.module is None:
                continue
            module = f"{get_full_name_for_node(statement.module)}."
        for alias in statement.names:
            path = f"{module}{get_full_name_for_node(alias.name)}"
            if isinstance(statement, cst.Import) and alias.asname is None:
                path = path.partition(".")[0]
            name = alias.evaluated_alias or path.rpartition(".")[2]
            num_bound = source.names.bound[name]
            if (path in ("keras", "tf_keras") and num_bound == 1) or (path == "tensorflow.keras" and not num_bound):
                yield 0, name
            elif path == "tensorflow" and not num_bound:
                yield 1, f"{name}.keras"


def _batch_size(source: Source, edit: SetBatchSize) -> Splice:
    call = source.locate(Call("batch", "batch", edit.site, text=edit.text))
    if any(argument.star for argument in call.arguments):
        raise CannotRewriteError("The arguments of batch include * or **, which may contain batch_size.")
    argument = find_argument(call, "batch_size")
    if argument is None or not source.text[argument.start : argument.end].isdigit():
        raise CannotRewriteError("The batch size is not a number in the call, so other code may depend on it.")
    return Splice(argument.start, argument.end, str(edit.size))


def _text(value: Value) -> str:
    return value.text if isinstance(value, Code) else repr(value)
