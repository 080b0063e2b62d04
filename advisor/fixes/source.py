"""Fixes written into the user's source: the smallest change of the text that does it.

In: a `Fix` and the recorded calls.  Out: the new text (`rewrite`) or a unified diff (`diff_for`); None wherever it is not
plain what to change: the call is not where it was recorded, its arguments hide behind `**kwargs`, an option is set in two
places. Comments, line breaks and indentation stay as they are, and the result is parsed before anybody sees it.
"""

from __future__ import annotations

import ast
import difflib
import io
import re
import tokenize
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import assert_never

import libcst as cst

from advisor.fixes.chains import assignments, is_assigned_between, is_chained, self_assignment, whole_line
from advisor.fixes.syntax import LocatedCall, Source
from advisor.model.finding import Code, Edit, Fix, InsertAfter, MoveAfter, Remove, SetArgument, SetOption, Value
from advisor.model.recording import Call

Splice = tuple[int, int, str]
"""Replace the characters from start to end by a text."""

PARAMETERS = {
    "FixedLengthRecordDataset": (
        "filenames", "record_bytes", "header_bytes", "footer_bytes", "buffer_size", "compression_type",
        "num_parallel_reads",
    ),
    "TFRecordDataset": ("filenames", "compression_type", "buffer_size", "num_parallel_reads"),
    "TextLineDataset": ("filenames", "compression_type", "buffer_size", "num_parallel_reads"),
    "batch": ("batch_size", "drop_remainder", "num_parallel_calls", "deterministic"),
    "cache": ("filename",),
    "interleave": ("map_func", "cycle_length", "block_length", "num_parallel_calls", "deterministic"),
    "list_files": ("file_pattern", "shuffle", "seed"),
    "map": ("map_func", "num_parallel_calls", "deterministic"),
    "padded_batch": ("batch_size", "padded_shapes", "padding_values", "drop_remainder"),
    "prefetch": ("buffer_size",),
    "repeat": ("count",),
    "shuffle": ("buffer_size", "seed", "reshuffle_each_iteration"),
}  # fmt: skip
"""Parameters in the order of TF 2.16 to 2.21, for arguments passed by position; other methods are not edited."""

_BREAK = re.compile(r"\r\n|\r|\n")


class _NotPlain(Exception):
    """It is not plain what to change."""


def diff_for(fix: Fix, calls: Mapping[str, Call], root: Path) -> str | None:
    """Unified diff of a fix, with paths relative to `root`; None if a file is not the user's under `root` or it is not plain."""
    root = root.resolve()
    diffs: list[str] = []
    by_file: dict[str, list[Edit]] = {}
    for edit in fix.edits:
        call = calls.get(edit.call_id)
        if call is None or call.site is None:
            return None
        by_file.setdefault(call.site.file, []).append(edit)
    for file, edits in by_file.items():
        path = (root / file).resolve()
        if not path.is_relative_to(root) or "site-packages" in path.parts:
            return None
        before = _read(path)
        after = None if before is None else rewrite(before, Fix(tuple(edits), fix.safety, fix.is_auto), calls)
        if before is None or after is None:
            return None
        diffs.append(_diff(before, after, path.relative_to(root).as_posix()))
    return "".join(diffs) or None


def rewrite(text: str, fix: Fix, calls: Mapping[str, Call]) -> str | None:
    """The text with the fix's edits, whose calls all stand in this file; None if it is not plain what to change."""
    try:
        source = Source(text)
        # Each link goes directly behind its call, so that of two behind the same call the later one comes first.
        links = [edit for edit in fix.edits if isinstance(edit, InsertAfter | MoveAfter)]
        others = [edit for edit in fix.edits if edit not in links]
        splices = [splice for edit in (*others, *reversed(links)) for splice in _splices(source, edit, calls)]
        after = _apply(text, splices)
        ast.parse(after)
    except (_NotPlain, cst.ParserSyntaxError, SyntaxError, ValueError, RecursionError):
        return None
    return after if after != text else None


def _splices(source: Source, edit: Edit, calls: Mapping[str, Call]) -> Iterator[Splice]:
    call = _locate(source, calls, edit.call_id)
    match edit:
        case SetArgument():
            yield from _set_argument(source, call, edit.name, _write(source, edit.value, call))
        case InsertAfter():
            yield _insert_link(source, call, _link(source, edit, call))
        case Remove():
            yield from _remove(source, call)
        case MoveAfter():
            yield from _move(source, call, _locate(source, calls, edit.after_id))
        case SetOption():
            yield _set_option(source, call, edit.option, edit.value)
        case _:
            assert_never(edit)


def _locate(source: Source, calls: Mapping[str, Call], call_id: str) -> LocatedCall:
    call = calls.get(call_id)
    found = source.locate(call) if call is not None else None
    if found is None:
        raise _NotPlain
    return found


def _write(source: Source, value: Value, call: LocatedCall) -> str:
    if not isinstance(value, Code):
        return repr(value)
    text = source.imports.write(value.text, source.parents(call.node))
    if text is None:
        raise _NotPlain
    return text


def _set_argument(source: Source, call: LocatedCall, name: str, value: str) -> Iterator[Splice]:
    order = PARAMETERS.get(call.name, ())
    if name not in order or any(argument.star for argument in call.arguments):
        raise _NotPlain
    for position, argument in enumerate(call.arguments):
        if argument.keyword == name or (argument.keyword is None and order.index(name) == position):
            yield argument.start, argument.end, value
            return
    text = f"{name}={value}"
    if not call.arguments:
        yield call.open_end, call.open_end, text
        return
    last = call.arguments[-1]
    indent = source.line_before(last.start if last.keyword is None else last.start - len(last.keyword) - 1)
    has_own_line = not indent.strip() and _BREAK.search(source.text, call.open_end, last.end) is not None
    if not has_own_line:
        yield last.end, last.end, f", {text}"
        return
    # One argument a line: the new one gets its own, behind what may stand on the line of the last one (a comment).
    after = last.end if last.comma_end is None else last.comma_end
    rest = source.line_after(after)
    if last.comma_end is None:
        yield last.end, last.end, ","
    place = after + len(rest.rstrip()) if rest.lstrip().startswith("#") else after
    yield place, place, f"{source.newline}{indent}{text}{',' if last.comma_end is not None else ''}"


def _link(source: Source, edit: InsertAfter, call: LocatedCall) -> str:
    arguments = [
        f"{name}={_write(source, value, call)}" if name else _write(source, value, call)
        for name, value in edit.arguments
    ]
    return f".{edit.method}({', '.join(arguments)})"


def _insert_link(source: Source, call: LocatedCall, link: str) -> Splice:
    """Put `.method(...)` behind a call, on its own line where the chain is written one call a line."""
    space = call.dot_space
    if not _BREAK.search(space):  # the first of a chain: do as the next one does
        following = re.match(r"\s*?(\\?(?:\r\n|\r|\n)[ \t]*)(?=\.)", source.text[call.end :])
        space = following.group(1) if following else ""
        if space.startswith("\\"):
            space = " " + space
    if not _BREAK.search(space):
        return call.end, call.end, link
    if "\\" not in space:
        space = source.newline + _BREAK.split(space)[-1]  # without the comments of the link before
        rest = source.line_after(call.end)
        if rest.lstrip().startswith("#"):
            place = call.end + len(rest.rstrip())
            return place, place, space + link
    return call.end, call.end, space + link


def _remove(source: Source, call: LocatedCall) -> Iterator[Splice]:
    if call.link_start is None:
        raise _NotPlain
    statement = self_assignment(source, call)
    if statement is not None:
        yield *source.line_span(statement), ""
    else:
        yield call.link_start, call.end, ""


def _move(source: Source, call: LocatedCall, after: LocatedCall) -> Iterator[Splice]:
    """Cut a call out of its chain and put it behind another of the same chain, or its line behind the other's line."""
    if call.link_start is not None and (is_chained(call.node, after.node) or is_chained(after.node, call.node)):
        yield call.link_start, call.end, ""
        yield after.end, after.end, source.text[call.link_start : call.end]
        return
    line, behind = self_assignment(source, call), source.parents(after.node)[1]
    if line is None or not is_assigned_between(source, line, after):
        raise _NotPlain
    start, end = source.line_span(line)
    place = source.line_span(behind)[1]
    yield start, end, ""
    yield place, place, source.text[start:end]


def _set_option(source: Source, call: LocatedCall, option: str, value: Value) -> Splice:
    """Change or remove the one line `options.<option> = ...` before `with_options(options)`."""
    argument = call.node.args[0].value if len(call.node.args) == 1 else None
    if call.name != "with_options" or not isinstance(argument, cst.Name):
        raise _NotPlain
    parents = source.parents(call.node)
    scope = next(node for node in parents if isinstance(node, cst.FunctionDef | cst.Module))
    found = assignments(scope, f"{argument.value}.{option}")
    if len(found) != 1 or source.span(found[0])[0] > call.end:
        raise _NotPlain
    if value is not None:
        return *source.span(found[0].value), _write(source, value, call)
    around = source.parents(found[0])
    line = whole_line(around[0], around[1])
    if line is None:
        raise _NotPlain
    return *source.line_span(line), ""


def _apply(text: str, splices: list[Splice]) -> str:
    """The text with all splices; those at one place come in the order given. Raises _NotPlain where they overlap."""
    pieces, position = [], 0
    for start, end, new in sorted(splices, key=lambda splice: splice[0]):
        if start < position:
            raise _NotPlain
        pieces += [text[position:start], new]
        position = end
    return "".join([*pieces, text[position:]])


def _read(path: Path) -> str | None:
    """The text in the file's own encoding, line breaks as they are; None if it cannot be read."""
    try:
        data = path.read_bytes()
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        return data.decode(encoding)
    except (OSError, SyntaxError, UnicodeDecodeError, LookupError):
        return None


def _diff(before: str, after: str, name: str) -> str:
    lines = difflib.unified_diff(
        _lines(before), _lines(after), fromfile=f"a/{name}", tofile=f"b/{name}", n=1, lineterm="\n"
    )
    return "".join(line if line.endswith(("\n", "\r")) else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _lines(text: str) -> list[str]:
    """Lines with their breaks, split only where Python ends a line (a form feed does not)."""
    return [line for line in re.findall(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+$", text) if line]
