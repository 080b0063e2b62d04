"""Where in the user's files a call stands, to the column.

In: the Python frame that called us.  Out: a `Site`, the call's source text, and the library the call came through.

The first frame outward that is neither ours, TensorFlow's, the standard library's nor an installed package's is the user's.
`co_positions()` gives the exact span that frame is executing; the method's name inside a chain is found in the file's
syntax tree by the end of that span, which no two calls share.
"""

from __future__ import annotations

import ast
import dis
import itertools
import linecache
import site
import sysconfig
import threading
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType

from advisor.model.recording import Site

_TEXT_LIMIT = 200
_OURS = str(Path(__file__).resolve().parents[2])
_AUTOGRAPH = "/autograph/"
_GENERATED = "__autograph_generated_file"
GET_ITER = dis.opmap["GET_ITER"]
_Syntax = tuple[dict[tuple[int, int], ast.Call], dict[tuple[int, int], ast.For]]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a call was made."""

    site: Site | None
    text: str = ""
    library: str | None = None
    opcode: int = -1
    """What the user's frame was executing; tells `for x in dataset` from `iter(dataset)`."""


@dataclass(frozen=True, slots=True)
class _Span:
    line: int
    end_line: int
    column: int
    """Bytes from 0, as Python counts."""
    end_column: int


class SiteFinder:
    """Finds places; one per recording, so that parsed files and answers are kept."""

    def __init__(self, own_roots: tuple[str, ...] = ()) -> None:
        """`own_roots`: folders that count as the user's although they are installed (the module of `-m`)."""
        self._own_roots = own_roots
        paths = sysconfig.get_paths()
        packages = {paths["purelib"], paths["platlib"], site.getusersitepackages(), *site.getsitepackages()}
        self._packages = tuple(_with_slash(p) for p in packages)
        self._stdlib = tuple(_with_slash(p) for p in {paths["stdlib"], paths["platstdlib"]})
        self._kinds: dict[str, str | None] = {}
        self._places: dict[tuple[CodeType, str, int, str | None], Place] = {}
        self._parsed: dict[str, _Syntax] = {}
        self._source_maps: dict[str, dict[int, tuple[str, int]]] = {}
        self._lock = threading.Lock()

    def add_source_map(self, generated: str, lines: dict[int, tuple[str, int]]) -> None:
        """Remember which of the user's lines AutoGraph's generated file came from: line -> (file, line)."""
        self._source_maps[generated] = lines

    def place(self, frame: FrameType | None, method: str = "") -> Place:
        """The user's place that `frame` (or a caller of it) belongs to; `method` is what is called there."""
        library: str | None = None
        if (
            frame is not None
            and self._kind(frame.f_code.co_filename) == "tensorflow"
            and (_AUTOGRAPH not in frame.f_code.co_filename)
        ):
            library = "tensorflow"  # TensorFlow's own code made the call (distribution, `from_generator`)
        while frame is not None:
            kind = self._kind(frame.f_code.co_filename)
            if kind == "user" and (found := self._in_frame(frame, method if library is None else "", library)):
                return found
            if kind is not None and kind not in ("user", "tensorflow") and library is None:
                library = kind
            frame = frame.f_back
        return Place(None, library=library)

    def is_user_file(self, filename: str) -> bool:
        """Whether that file is the user's own code."""
        return self._kind(filename) == "user"

    def _kind(self, filename: str) -> str | None:
        """`user`, `tensorflow`, a package's name, or None for what is never anybody's: ours, the standard library."""
        try:
            return self._kinds[filename]
        except KeyError:
            kind = self._kinds[filename] = self._classify(filename)
            return kind

    def _classify(self, filename: str) -> str | None:
        if _GENERATED in filename:
            return "user"
        if filename.startswith("<") or filename.startswith(_OURS):
            return None
        path = str(Path(filename).absolute())
        if any(path.startswith(root) for root in self._own_roots):
            return "user"
        for root in self._packages:
            if path.startswith(root):
                return path[len(root) :].split("/")[0].removesuffix(".py")
        if any(path.startswith(root) for root in self._stdlib):
            return None
        return "user"

    def _in_frame(self, frame: FrameType, method: str, library: str | None) -> Place | None:
        code, lasti = frame.f_code, frame.f_lasti
        key = (code, code.co_filename, lasti, method)  # equal code of two files is equal
        found = self._places.get(key)
        if found is None:
            if _GENERATED in code.co_filename:
                found = self._behind_autograph(code.co_filename, frame.f_lineno, method)
                if found is None:
                    return None
            else:
                found = self._at(code, lasti)
            self._places[key] = found
        return Place(found.site, found.text, library, found.opcode)

    def _at(self, code: CodeType, lasti: int) -> Place:
        # One position per 2-byte code unit; f_lasti is the byte offset of the running instruction.
        line, end_line, column, end_column = next(itertools.islice(code.co_positions(), lasti // 2, None))
        opcode = code.co_code[lasti]
        line = line or code.co_firstlineno
        if end_line is None or column is None or end_column is None:  # stripped by -X no_debug_ranges
            return Place(Site(code.co_filename, line, 1, line, 1), opcode=opcode)
        return self._refine(code.co_filename, _Span(line, end_line, column, end_column), opcode)

    def _refine(self, filename: str, span: _Span, opcode: int) -> Place:
        """Start the span where the method's name stands."""
        loop = self._loops_of(filename).get((span.line, span.column)) if opcode == GET_ITER else None
        if loop is not None:  # up to Python 3.11 the span is the whole loop; what is iterated over is meant
            iterated = loop.iter
            span = _Span(
                iterated.lineno,
                iterated.end_lineno or iterated.lineno,
                iterated.col_offset,
                iterated.end_col_offset or iterated.col_offset,
            )
        call = self._calls_of(filename).get((span.end_line, span.end_column))
        text_start = (span.line, span.column)
        line, column = span.line, span.column
        if call is not None:
            function = call.func
            if isinstance(function, ast.Attribute):
                line = function.end_lineno or line
                column = (function.end_col_offset or 0) - len(function.attr.encode())
                text_start = (
                    (line, column - 1)
                    if column and self._bytes(filename, line)[column - 1 : column] == b"."
                    else (line, column)
                )
            else:
                line, column = function.lineno, function.col_offset
                text_start = (line, column)
        found = Site(
            str(Path(filename).absolute()),
            line,
            self._character(filename, line, column) + 1,
            span.end_line,
            self._character(filename, span.end_line, span.end_column) + 1,
        )
        return Place(found, self._text(filename, text_start, (span.end_line, span.end_column)), opcode=opcode)

    def _behind_autograph(self, generated: str, line: int, method: str) -> Place | None:
        """The user's line that a generated one came from, and on it the call of that method."""
        origin = self._source_maps.get(generated, {}).get(line)
        if origin is None:
            return None
        filename, origin_line = origin
        candidates = [
            call
            for call in self._calls_of(filename).values()
            if call.lineno <= origin_line <= (call.end_lineno or call.lineno) and _called_name(call) == method
        ]
        if len(candidates) == 1:
            call = candidates[0]
            return self._refine(
                filename,
                _Span(
                    call.lineno, call.end_lineno or call.lineno, call.col_offset, call.end_col_offset or call.col_offset
                ),
                -1,
            )
        raw = self._bytes(filename, origin_line).decode("utf-8", "replace").rstrip("\n")
        indent = len(raw) - len(raw.lstrip())
        return Place(
            Site(str(Path(filename).absolute()), origin_line, indent + 1, origin_line, len(raw) + 1),
            raw.strip()[:_TEXT_LIMIT],
        )

    def _calls_of(self, filename: str) -> dict[tuple[int, int], ast.Call]:
        """(end line, end column) -> call."""
        return self._syntax(filename)[0]

    def _loops_of(self, filename: str) -> dict[tuple[int, int], ast.For]:
        """(line, column) -> loop."""
        return self._syntax(filename)[1]

    def _syntax(self, filename: str) -> _Syntax:
        with self._lock:
            found = self._parsed.get(filename)
            if found is None:
                found = ({}, {})
                try:
                    tree = ast.parse("".join(linecache.getlines(filename)))
                except (SyntaxError, ValueError, RecursionError):
                    tree = ast.Module([], [])
                for node in ast.walk(tree):
                    if isinstance(node, ast.Call):
                        found[0][node.end_lineno or 0, node.end_col_offset or 0] = node
                    elif isinstance(node, ast.For):
                        found[1][node.lineno, node.col_offset] = node
                self._parsed[filename] = found
            return found

    def _bytes(self, filename: str, line: int) -> bytes:
        return linecache.getline(filename, line).encode()

    def _character(self, filename: str, line: int, byte_column: int) -> int:
        return len(self._bytes(filename, line)[:byte_column].decode("utf-8", "replace"))

    def _text(self, filename: str, start: tuple[int, int], end: tuple[int, int]) -> str:
        pieces = [self._bytes(filename, line) for line in range(start[0], end[0] + 1)]
        if not pieces:
            return ""
        pieces[-1] = pieces[-1][: end[1]]
        pieces[0] = pieces[0][start[1] :]
        text = " ".join(piece.decode("utf-8", "replace").strip() for piece in pieces)
        return text if len(text) <= _TEXT_LIMIT else text[: _TEXT_LIMIT - 1] + "…"


def _called_name(call: ast.Call) -> str:
    function = call.func
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _with_slash(path: str) -> str:
    return str(Path(path).absolute()) + "/"
