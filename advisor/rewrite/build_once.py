"""Moves what makes a dataset from the body of a loop to the lines before the loop.

In: `Source`, a call that the dataset ends with, and the place where the loop reads it.  Out: the splices and cuts, or
CannotRewriteError with the first thing in the text that may make another dataset in a later pass.

Two forms are supported: assignments directly in the body (`ds = make_dataset(files)`), which move as they are, and an
expression in the line that reads it (`for batch in make_dataset(files):`), which gets a name. The functions may be those of a
module beside the file (`imported_functions`).
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

import libcst as cst

from advisor.model.calls import Call, Site
from advisor.model.edits import BuildOnce
from advisor.rewrite.cannot_rewrite import CannotRewriteError
from advisor.rewrite.imported_functions import NO_TEXTS, ImportedFunctions, recorded_in
from advisor.rewrite.moved_lines import move_lines
from advisor.rewrite.pure_code import PureCode
from advisor.rewrite.scopes import Scopes, Variable
from advisor.rewrite.splices import Cut, Splice
from advisor.rewrite.syntax import LocatedCall, Source, find_all
from advisor.rewrite.unchanged_names import UnchangedNames

_Loop = cst.For | cst.While
_READING_METHODS = frozenset({"evaluate", "fit", "predict"})
_READING_FUNCTIONS = frozenset({"enumerate", "iter"})
_LEAVING = (cst.Break, cst.Continue, cst.Return, cst.Raise, cst.Yield, cst.Await)
_WITHIN = cst.Arg | cst.Call | cst.Expr | cst.Assign | cst.AnnAssign | cst.SimpleStatementLine
"""What may lie between an expression and its statement, so that the statement evaluates it once."""


def build_once(
    source: Source, edit: BuildOnce, calls: Mapping[str, Call], others: Mapping[str, str] = NO_TEXTS
) -> list[Splice | Cut]:
    """Move the statements or the expression that make a dataset before the loop.

    Args:
        source: The text with the loop.
        edit: The edit.
        calls: The recorded calls by id.
        others: File -> text of the other files of the project, as recorded calls name them; a function of one of them may make
            the dataset.

    Raises:
        CannotRewriteError: The text does not show that every pass of the loop makes an equal dataset.
    """
    site = calls[edit.call_id].site
    if site is None or (site.file != edit.reader.file and site.file not in others):
        raise CannotRewriteError("The dataset is made in another file, which is not a module beside that of the loop.")
    scopes = Scopes(source.module)
    imported = ImportedFunctions(source, scopes, edit.reader.file, calls, others)
    statement, dataset = _read_at(source, scopes, edit.reader)
    moving = _Moving(source, scopes, recorded_in(source, calls, edit.reader.file), imported)
    located = (
        source.locate(calls[edit.call_id]) if site.file == edit.reader.file else imported.located(calls[edit.call_id])
    )
    if isinstance(dataset, cst.Name):
        return moving.statements(scopes.variable(dataset), statement, located)
    return moving.expression(dataset, statement, located)


def _read_at(source: Source, scopes: Scopes, reader: Site) -> tuple[cst.CSTNode, cst.BaseExpression]:
    """Return the statement that reads a dataset at a recorded place, and the expression for the dataset."""
    end = (reader.end_line, reader.end_column - 1)
    loop = next((node for node in find_all(source.module, cst.For) if source.place(node.iter)[2:] == end), None)
    call = source.call_ending_at(*end)
    if loop is not None and not _is_reading(scopes, call):
        return loop, loop.iter
    if call is None:
        raise CannotRewriteError(f"The text does not show which dataset is read at line {reader.line}.")
    given = [arg for arg in call.args if arg.keyword is None or arg.keyword.value == "x"]
    if not _is_reading(scopes, call) or not given or given[0].star:
        raise CannotRewriteError(f"The text does not show which dataset is read at line {reader.line}.")
    return (source.statement(call)[0] if loop is None else loop), given[0].value


def _is_reading(scopes: Scopes, call: cst.Call | None) -> bool:
    """Whether a call reads its first argument: `model.fit(dataset)`, `enumerate(dataset)`."""
    if call is None:
        return False
    if isinstance(call.func, cst.Name):
        return call.func.value in _READING_FUNCTIONS and not scopes.variable(call.func).bindings
    return isinstance(call.func, cst.Attribute) and call.func.attr.value in _READING_METHODS


class _Moving:
    """One move; `statements` or `expression` is called once."""

    def __init__(self, source: Source, scopes: Scopes, recorded: set[cst.Call], imported: ImportedFunctions) -> None:
        self._source, self._scopes, self._recorded, self._imported = source, scopes, recorded, imported

    def statements(self, variable: Variable, reader: cst.CSTNode, located: LocatedCall) -> list[Splice | Cut]:
        """Move the assignments of the variable that the reader reads."""
        source = self._source
        bound = [binding.node for binding in variable.bindings]
        loop = next((loop for loop in self._loops(reader) if any(self._is_in(node, loop) for node in bound)), None)
        if loop is None:
            raise CannotRewriteError(
                f"{variable.name} is not assigned in a loop around line {source.line_number(reader)}, which reads it."
            )
        body = self._body(loop)
        inside = [node for node in bound if self._is_in(node, loop)]
        indices = [self._assignment(node, body) for node in inside]
        if any(index is None for index in indices):
            raise CannotRewriteError(
                f"{variable.name} is not only assigned by statements directly in the body of the loop."
            )
        positions = sorted(index for index in indices if index is not None)
        first, last = positions[0], positions[-1]
        first = self._with_what_it_reads(loop, body, first, last)
        block = body[first : last + 1]
        targets = self._targets(block)
        if self._index_of(reader, body) <= last:
            raise CannotRewriteError(f"{variable.name} is read before it is assigned.")
        self._check_before(body[:first])
        for target in targets:
            self._check_target(target, loop, block)
        pure = PureCode(source, self._scopes, self._recorded, targets, self._imported)
        for line in block:
            pure.add_statement(line)
        self._check(loop, pure, located)
        return self._cuts(loop, block, is_first=first == 0)

    def expression(self, dataset: cst.BaseExpression, reader: cst.CSTNode, located: LocatedCall) -> list[Splice | Cut]:
        """Move an expression, and give it a name."""
        source = self._source
        loop = next(iter(self._loops(reader)), None)
        if loop is None:
            raise CannotRewriteError(
                f"Line {source.line_number(reader)}, which reads the dataset, is not in a loop of its function."
            )
        body = self._body(loop)
        if not any(line is reader for line in body):
            raise CannotRewriteError(
                f"Line {source.line_number(reader)}, which reads the dataset, is not directly in the body of the loop."
            )
        for parent in source.parents(dataset):
            if parent is reader:
                break
            if not isinstance(parent, _WITHIN):
                raise CannotRewriteError(f"The dataset is not made in every pass (line {source.line_number(dataset)}).")
        self._check_before(body[: self._index_of(reader, body)])
        pure = PureCode(source, self._scopes, self._recorded, imported=self._imported)
        pure.add_expression(dataset)
        self._check(loop, pure, located)
        return self._named(loop, dataset)

    # -- where the code is

    def _loops(self, node: cst.CSTNode) -> list[_Loop]:
        """The loops of its function around a node, innermost first."""
        loops: list[_Loop] = []
        for parent in self._source.parents(node):
            if isinstance(parent, cst.FunctionDef | cst.Lambda | cst.ClassDef):
                break
            if isinstance(parent, _Loop):
                loops.append(parent)
        return loops

    def _body(self, loop: _Loop) -> list[cst.BaseStatement]:
        if not isinstance(loop.body, cst.IndentedBlock) or (
            isinstance(loop, cst.For) and loop.asynchronous is not None
        ):
            raise CannotRewriteError("The loop is asynchronous, or its body is in its own line.")
        if isinstance(self._source.scope(loop), cst.ClassDef):
            raise CannotRewriteError("The loop is in the body of a class.")
        return list(loop.body.body)

    def _assignment(self, name: cst.CSTNode, body: Sequence[cst.BaseStatement]) -> int | None:
        """The index of the statement in the body that does nothing but assign to this name; None if there is none."""
        for index, line in enumerate(body):
            if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1:
                part = line.body[0]
                targets = [target.target for target in part.targets] if isinstance(part, cst.Assign) else []
                if isinstance(part, cst.AnnAssign) and part.value is not None:
                    targets = [part.target]
                if len(targets) == 1 and targets[0] is name:
                    return index
        return None

    def _targets(self, block: Sequence[cst.CSTNode]) -> list[Variable]:
        """The variables that a block of assignments binds."""
        nodes: list[cst.AssignTarget | cst.AnnAssign] = []
        for line in block:
            nodes += [*find_all(line, cst.AssignTarget), *find_all(line, cst.AnnAssign)]
        names = [node.target for node in nodes if isinstance(node.target, cst.Name)]
        if len(names) != len(block):
            raise CannotRewriteError("The lines that make the dataset are not consecutive.")
        return list(dict.fromkeys(self._scopes.variable(name) for name in names))

    def _with_what_it_reads(self, loop: _Loop, body: Sequence[cst.BaseStatement], first: int, last: int) -> int:
        """Extend a block upwards by assignments directly before it whose variables nothing but the block needs."""
        while first > 0:
            line = body[first - 1]
            names = [name for name in find_all(line, cst.Name) if self._assignment(name, [line]) == 0]
            if len(names) != 1:
                break
            variable = self._scopes.variable(names[0])
            block = body[first : last + 1]
            if not any(self._is_in(read, part) for read in variable.reads for part in block):
                break
            if sum(self._is_in(binding.node, loop) for binding in variable.bindings) != 1:
                break
            first -= 1
        return first

    def _index_of(self, node: cst.CSTNode, body: Sequence[cst.CSTNode]) -> int:
        around = (node, *self._source.parents(node))
        return next((index for index, line in enumerate(body) if any(line is parent for parent in around)), -1)

    def _is_in(self, node: cst.CSTNode, outer: cst.CSTNode) -> bool:
        return any(parent is outer for parent in self._source.parents(node))

    # -- what must hold

    def _check_before(self, lines: Sequence[cst.CSTNode]) -> None:
        for line in lines:
            for kind in _LEAVING:
                if find_all(line, kind):
                    raise CannotRewriteError(
                        f"Line {self._source.line_number(line)} may leave the pass before the dataset is made."
                    )

    def _check_target(self, variable: Variable, loop: _Loop, block: Sequence[cst.CSTNode]) -> None:
        """Check that a variable of the block means the same before it is assigned, in the first pass and in later ones."""
        name, source = variable.name, self._source
        if variable.is_shared:
            raise CannotRewriteError(f"{name} is declared global or nonlocal in a function.")
        for binding in variable.bindings:
            if self._is_in(binding.node, loop) and not any(self._is_in(binding.node, line) for line in block):
                raise CannotRewriteError(f"{name} is also assigned in line {source.line_number(binding.node)}.")
        bound_at = min(
            index
            for index, line in enumerate(block)
            for binding in variable.bindings
            if self._is_in(binding.node, line)
        )
        end = source.span(block[-1])[1]
        for read in variable.reads:
            index = self._index_of(read, block)
            if index > bound_at:
                continue
            is_here = source.scope(read) is source.scope(loop)
            is_after = source.span(read)[0] >= end
            if index >= 0 or not is_here or (self._is_in(read, loop) and not is_after):
                raise CannotRewriteError(f"{name} is also read in line {source.line_number(read)}.")

    def _check(self, loop: _Loop, pure: PureCode, located: LocatedCall) -> None:
        """Check that the code makes the recorded dataset, and reads the same in every pass."""
        if not self._imported.is_in(located.node, pure.parts):
            raise CannotRewriteError(f"The text does not show that the dataset comes from {located.method}.")
        unchanged = UnchangedNames(self._source, self._scopes, loop)
        for variable, paths in pure.reads.items():
            if variable.imported is None and variable.function is None:
                unchanged.check(variable, paths, pure.parts)
            elif variable.is_shared or any(self._is_in(binding.node, loop) for binding in variable.bindings):
                raise CannotRewriteError(f"{variable.name} may mean something else in a later pass.")

    # -- the change

    def _cuts(self, loop: _Loop, block: Sequence[cst.CSTNode], is_first: bool) -> list[Splice | Cut]:
        """Move whole lines, comments directly above them included, and indent them as the loop."""
        place = self._source.line_span(loop)[0]
        return [*move_lines(self._source, block, place, self._source.indent(loop), with_blank_lines=is_first)]

    def _named(self, loop: _Loop, dataset: cst.BaseExpression) -> list[Splice | Cut]:
        """Assign an expression to a new name before the loop."""
        source = self._source
        place, name = source.line_span(loop)[0], source.names.fresh("dataset")
        start, end = source.outer_span(dataset)
        is_open = not _is_expression(source.text[start:end])
        before = f"{source.indent(loop)}{name} = {'(' if is_open else ''}"
        after = f"{')' if is_open else ''}{source.newline}"
        return [Cut(start, end, start, end, place, before), Splice(place, place, after), Splice(start, start, name)]


def _is_expression(text: str) -> bool:
    """Whether a text is a whole expression; one over several lines may need the parentheses around it."""
    try:
        ast.parse(f"_ = {text}\n")
    except SyntaxError:
        return False
    return True
