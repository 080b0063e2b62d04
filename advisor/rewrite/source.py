"""Applies edits to the text of one source file, with the smallest possible change.

In: a text, edits and the recorded calls.  Out: the new text, or the reason why the change is unclear: the call is not where it
was recorded, its arguments are hidden in `**kwargs`, an option is set in two places. Comments, line breaks and indentation are
preserved, except that a chain which has become too long is broken, and the result is parsed before it is returned.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import assert_never

import libcst as cst

from advisor.model.calls import Call
from advisor.model.edits import (
    BuildOnce,
    Code,
    Edit,
    InsertAfter,
    MoveAfter,
    Remove,
    SetArgument,
    SetFunction,
    SetOption,
    SplitFlatMap,
    SplitFunction,
    SplitMap,
    StepEdit,
    Value,
    Vectorize,
    VectorizeParts,
    VectorizeRagged,
    WrapData,
)
from advisor.model.finding import Fix
from advisor.model.shared_text import Span, span_of
from advisor.rewrite.aliases import without_aliases
from advisor.rewrite.arguments import set_argument
from advisor.rewrite.batch_function import vectorize
from advisor.rewrite.batch_parts import batch_definition, vectorize_parts
from advisor.rewrite.build_once import build_once
from advisor.rewrite.cannot_rewrite import CannotRewriteError
from advisor.rewrite.chains import move
from advisor.rewrite.halves import first_link, halves_definition, replace_function, second_link
from advisor.rewrite.imported_functions import NO_TEXTS
from advisor.rewrite.inner_links import move_out
from advisor.rewrite.library_calls import insert_after_library
from advisor.rewrite.line_breaks import break_long_lines
from advisor.rewrite.links import insert_link, remove
from advisor.rewrite.names import import_place
from advisor.rewrite.new_function import set_function
from advisor.rewrite.option_lines import change_option, insert_options
from advisor.rewrite.ragged_function import pad_ragged
from advisor.rewrite.splices import Cut, Splice, apply_changes
from advisor.rewrite.step_edits import splices_of
from advisor.rewrite.syntax import LocatedCall, Source
from advisor.rewrite.wrapped_data import check_only_reader, wrap_data

Defining = VectorizeParts | SplitMap | SplitFlatMap
"""Edits that write functions into the file that defines the function of the call, which may be another one."""


def rewrite(text: str, fix: Fix, calls: Mapping[str, Call]) -> str | None:
    """Return the text with the fix's edits, all of whose calls are in this file; None if the change is unclear.

    Args:
        text: The text of the file.
        fix: The fix, with edits of calls and of the training step.
        calls: Calls of the recorded run by id, which tell the lines.
    """
    try:
        after = rewritten(text, fix.edits, calls, fix.step_edits)
    except CannotRewriteError:
        return None
    return after if after != text else None


def rewritten(
    text: str,
    edits: Sequence[Edit],
    calls: Mapping[str, Call],
    step_edits: Sequence[StepEdit] = (),
    others: Mapping[str, str] = NO_TEXTS,
    definitions: Sequence[Defining] = (),
) -> str:
    """Return the text with the edits, applied one after the other.

    Args:
        text: The source text of one file.
        edits: Edits whose calls are all in this file, in the order of `advisor.rewrite.fix_plan.combine`.
        calls: The recorded calls by id.
        step_edits: Changes of the training step in this file.
        others: File -> text of the other files of the project, for datasets that a function of one of them makes.
        definitions: Edits of calls in other files, whose functions this file defines.

    Raises:
        CannotRewriteError: The change is unclear or would not be valid Python; the message gives the reason.
    """
    try:
        source = _parsed(text)
        after = _Rewriting(source, _without_duplicates(edits, calls), calls, others).text(step_edits, definitions)
        ast.parse(after)
        after = break_long_lines(text, without_aliases(text, after))
    except (SyntaxError, ValueError):
        raise CannotRewriteError("The text would not be valid Python after the change.") from None
    except RecursionError:
        raise CannotRewriteError("The text is nested too deeply.") from None
    return after


@lru_cache(maxsize=8)
def _parsed(text: str) -> Source:
    """Parse with a cache: LibCST takes about a millisecond per line, and every fix parses the same few files."""
    return Source(text)


def _without_duplicates(edits: Sequence[Edit], calls: Mapping[str, Call]) -> list[Edit]:
    """The edits without those that make the same change of the same text (a helper that created two datasets)."""
    unique: dict[object, Edit] = {}
    for edit in edits:
        after = span_of(edit.after_id, calls) if isinstance(edit, MoveAfter) else None
        anonymous = replace(edit, call_id="", after_id="") if isinstance(edit, MoveAfter) else replace(edit, call_id="")
        unique.setdefault((span_of(edit.call_id, calls), after, anonymous), edit)
    return list(unique.values())


def _check_new_functions(edits: Sequence[Edit]) -> None:
    """Raise CannotRewriteError if two calls would get different new functions of one name, as one passes `flips=True`."""
    texts: dict[tuple[str, int, str], str] = {}
    for edit in edits:
        if isinstance(edit, VectorizeParts):
            written = {edit.name: edit.text}
        elif isinstance(edit, SplitFunction) and edit.first_name:
            written = {edit.first_name: edit.first, edit.second_name: edit.second}
        else:
            continue
        for name, text in written.items():
            if texts.setdefault((edit.file, edit.line, name), text) != text:
                raise CannotRewriteError(f"Two calls would need different functions with the name {name}.")


class _Rewriting:
    """Converts edits to changes of the text."""

    def __init__(
        self, source: Source, edits: Sequence[Edit], calls: Mapping[str, Call], others: Mapping[str, str]
    ) -> None:
        self._source, self._edits, self._calls, self._others = source, edits, calls, others
        self._imports: dict[str, None] = {}
        self._companions: list[Splice] = []
        self._moves: list[Splice | Cut] = []
        """What `BuildOnce` moves out of a loop."""
        moved = {span_of(edit.call_id, calls) for edit in edits if isinstance(edit, MoveAfter)}
        for edit in edits:
            if not isinstance(edit, SetArgument | MoveAfter | Vectorize) and span_of(edit.call_id, calls) in moved:
                raise CannotRewriteError("A call cannot be moved and changed otherwise at the same time.")

    def text(self, step_edits: Sequence[StepEdit], definitions: Sequence[Defining]) -> str:
        _check_new_functions([*self._edits, *definitions])
        # A link is inserted directly after its call, so that of two links after the same call the later one comes first.
        links = [edit for edit in self._edits if isinstance(edit, InsertAfter | MoveAfter | SetOption | SplitMap)]
        # A call before another one follows the links after the call before it.
        firsts = [edit for edit in self._edits if isinstance(edit, SplitFlatMap)]
        others = [edit for edit in self._edits if edit not in (*links, *firsts)]
        changes: list[Splice | Cut] = []
        for edit in (*others, *reversed(links), *firsts):
            changes += self._changes(edit)
        for step_edit in dict.fromkeys(step_edits):
            changes += splices_of(self._source, step_edit)
        for definition in definitions:
            changes += self._defined(definition)
        self._check_moves(changes)
        return apply_changes(self._source.text, [*self._import_lines(), *changes])

    def _changes(self, edit: Edit) -> Iterator[Splice | Cut]:
        source = self._source
        if isinstance(edit, BuildOnce):  # the call may be in another file
            moves = build_once(source, edit, self._calls, self._others)
            self._moves += moves
            yield from moves
            return
        call = self._located(edit.call_id)
        match edit:
            case SetArgument():
                yield from set_argument(source, call, edit.name, self._write(edit.value, call))
            case VectorizeParts():
                splices = vectorize_parts(source, call, edit, self._write_name, self._companions)
                self._companions += splices[1:]
                yield from splices
            case VectorizeRagged():
                splices = pad_ragged(source, call, edit, self._companions)
                self._companions += splices[1:]
                yield from splices
            case Vectorize():
                splices = vectorize(source, call, edit, self._feeding(edit), self._write_name, self._companions)
                self._companions += splices[1:]
                yield from splices
            case SetFunction():
                splices = set_function(source, call, edit.text, self._write_name, self._companions)
                self._companions += splices[1:]
                yield from splices
            case WrapData():
                yield wrap_data(source, call, edit, self._located, self._write_name)
            case SplitMap():
                yield from self._halves(edit, call)
                changed = {
                    other.name: self._write(other.value, call)
                    for other in self._edits
                    if isinstance(other, SetArgument) and self._span(other) == self._span(edit)
                }
                yield self._link(edit.call_id, call, second_link(source, call, edit, changed))
            case SplitFlatMap():
                yield from self._halves(edit, call)
                yield first_link(source, call, edit, self._write(Code("tf.data.AUTOTUNE"), call))
            case InsertAfter():
                if edit.reader_id:
                    check_only_reader(source, call, self._located(edit.reader_id))
                arguments = [(name, self._write(value, call)) for name, value in edit.arguments]
                written = ", ".join(f"{name}={value}" if name else value for name, value in arguments)
                yield self._link(edit.call_id, call, f".{edit.method}({written})")
            case Remove():
                yield remove(source, call)
            case MoveAfter():
                yield from self._moved(edit, call)
            case SetOption():
                yield from self._option(edit, call)
            case _:
                assert_never(edit)

    def _halves(self, edit: SplitFunction, call: LocatedCall) -> list[Splice]:
        splices = list(replace_function(self._source, call, edit, self._companions))
        self._companions += splices[1:]
        return splices

    def _defined(self, edit: Defining) -> list[Splice]:
        """The new functions of a call in another file, unless another call has them already."""
        if isinstance(edit, VectorizeParts):
            splice = batch_definition(self._source, edit, self._write_name)
        else:
            splice = halves_definition(self._source, edit)
        is_new = splice not in self._companions
        self._companions.append(splice)
        return [splice] if is_new else []

    def _check_moves(self, changes: Sequence[Splice | Cut]) -> None:
        """Raise CannotRewriteError if another change is at the edge of what moves out of a loop, and would stay in it."""
        others = [change for change in changes if isinstance(change, Splice) and change not in self._moves]
        for cut in (change for change in self._moves if isinstance(change, Cut)):
            for other in others:
                is_near = cut.start <= other.start <= cut.end
                is_inside = cut.text_start < other.start and other.end < cut.text_end
                is_next_line = other.start == cut.end and self._source.text[cut.end - 1 : cut.end] in ("\n", "\r")
                if is_near and not is_inside and not is_next_line:
                    raise CannotRewriteError("The lines that make the dataset are changed otherwise at the same time.")

    def _moved(self, edit: MoveAfter, call: LocatedCall) -> Sequence[Splice | Cut]:
        after = self._located(edit.after_id)
        outer, target = self._calls[edit.call_id].nested_in, self._calls[edit.after_id].nested_in
        if outer is None or outer == target:
            return [move(self._source, call, after, self._is_farthest(edit))]
        others = [
            self._located(other.call_id).node
            for other in self._edits
            if isinstance(other, MoveAfter) and self._calls[other.call_id].nested_in == outer
        ]
        return move_out(self._source, call, self._located(outer), after, others)

    def _link(self, call_id: str, call: LocatedCall, link: str) -> Splice:
        if call.form.is_library:
            return insert_after_library(self._source, self._calls[call_id], call, link, self._calls)
        return insert_link(self._source, call, link)

    def _option(self, edit: SetOption, call: LocatedCall) -> Iterator[Splice]:
        value = None if edit.value is None else self._write(edit.value, call)
        changed = change_option(self._source, call, edit.option, value)
        if changed is not None:
            yield from changed
            return
        if call.form.is_library:
            raise CannotRewriteError(f"Options cannot be set after {call.method}, which is called by a library.")
        same = [other for other in self._edits if isinstance(other, SetOption) and other.call_id == edit.call_id]
        if edit is not same[0]:
            return  # the first edit writes all options of the call
        options = {other.option: self._write(other.value, call) for other in same if other.value is not None}
        yield from insert_options(self._source, call, self._write(Code("tf.data.Options"), call), options)

    def _feeding(self, edit: Vectorize) -> Call | None:
        """The call whose elements the function takes."""
        inputs = self._calls[edit.call_id].inputs
        return self._calls.get(inputs[0]) if len(inputs) == 1 else None

    def _is_farthest(self, edit: MoveAfter) -> bool:
        """Whether no other link follows the moved one, so that it may get its own line after the statement."""
        before = self._edits[: self._edits.index(edit)]
        anchor = span_of(edit.after_id, self._calls)
        links = [other for other in before if isinstance(other, InsertAfter | SetOption | SplitMap)]
        return all(self._span(other) != anchor for other in links)

    def _span(self, edit: Edit) -> Span:
        return span_of(edit.call_id, self._calls)

    def _located(self, call_id: str) -> LocatedCall:
        call = self._calls.get(call_id)
        if call is None:
            raise CannotRewriteError("The call was not recorded.")
        return self._source.locate(call)

    def _write(self, value: Value, call: LocatedCall) -> str:
        return self._write_name(value.text, call.node) if isinstance(value, Code) else repr(value)

    def _write_name(self, name: str, node: cst.CSTNode) -> str:
        written = self._source.names.write(name, self._source.parents(node))
        if written is None:
            raise CannotRewriteError(f"{name} cannot be expressed with the names of the file.")
        text, needed = written
        if needed is not None:
            self._imports[needed] = None
        return text

    def _import_lines(self) -> Iterator[Splice]:
        source = self._source
        statement = import_place(source.module)
        for line in self._imports:
            if statement is not None:
                place = source.line_span(statement)[1]
            else:
                place = source.line_span(source.module.body[0])[0]
            has_break = place == 0 or source.text[place - 1] in "\r\n"
            yield Splice(place, place, f"{line}{source.newline}" if has_break else f"{source.newline}{line}")


__all__ = ["rewrite", "rewritten"]
