"""Writes the halves of a split function: their definitions, and a second call: a `map` after the first, or before a `flat_map`.

In: `Source`, the located call and the `SplitFunction`, which contains the two texts.  Out: the splices; the definitions may be in
another file than the call. `advisor.replay.halves` compiles the same texts for the proof.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

import libcst as cst

from advisor.model.edits import SplitFlatMap, SplitFunction, SplitMap
from advisor.rewrite.arguments import find_argument
from advisor.rewrite.cannot_rewrite import CannotRewriteError
from advisor.rewrite.new_imports import import_beside
from advisor.rewrite.splices import Splice
from advisor.rewrite.syntax import NEWLINE, LocatedCall, Source, find_all


def replace_function(
    source: Source, call: LocatedCall, edit: SplitFunction, written: Collection[Splice] = ()
) -> Iterator[Splice]:
    """Write the definitions of both halves, and pass the one that the call keeps: a `map` the first, a `flat_map` the second.

    Args:
        source: The text of the file.
        call: The `map` or `flat_map` whose function is split.
        edit: Texts and names of both halves, and the definition that they replace.
        written: The changes that were made for other calls.

    Raises:
        CannotRewriteError: The function is not passed in this call, or its definition has changed.
    """
    argument = find_argument(call, "map_func")
    if argument is None or not call.form.is_link:
        raise CannotRewriteError(f"The function of {call.method} is not an argument in this line.")
    kept = edit.second_argument if isinstance(edit, SplitFlatMap) else edit.first_argument
    yield Splice(argument.start, argument.end, kept)
    companions = []
    if edit.file:
        companions = [import_beside(source, edit.beside, [edit.first_name, edit.second_name])] if edit.beside else []
    elif edit.first_name:
        companions = [halves_definition(source, edit)]
    yield from (companion for companion in companions if companion not in written)


def halves_definition(source: Source, edit: SplitFunction) -> Splice:
    """Write the definitions of both halves, after that of the function or in its place.

    Args:
        source: The text of the file that defines the function.
        edit: Texts and names of both halves, and the definition.

    Raises:
        CannotRewriteError: The definition has changed.
    """
    text, newline = source.text, source.newline
    lines = [0, *(match.end() for match in NEWLINE.finditer(text)), len(text)]
    start = lines[edit.line - 1] if 0 < edit.line < len(lines) else len(text)
    end = start + len(edit.original)
    if not edit.original or text[start:end] != edit.original:
        raise CannotRewriteError("The definition of the function has changed.")
    gap = newline * (2 if edit.first[:1] in " \t" else 3)
    halves = f"{edit.first}{gap[len(newline) :]}{edit.second}"
    if edit.is_replaced:
        return Splice(start, end, halves if text[end - 1 : end] in ("\n", "\r") else halves.rstrip("\r\n"))
    before = "" if text[end - 1 : end] in ("\n", "\r") else newline
    return Splice(end, end, f"{before}{gap[len(newline) :]}{halves}")


def first_link(source: Source, call: LocatedCall, edit: SplitFlatMap, autotune: str) -> Splice:
    """Insert `.map(...)` with the first half before a `flat_map`, on a line of its own if the `flat_map` is on one.

    Args:
        source: The text.
        call: The `flat_map`.
        edit: The texts.
        autotune: `tf.data.AUTOTUNE` in the names of the file.
    """
    assert call.link_start is not None  # `replace_function` requires a link
    link = f".map({edit.first_argument}, num_parallel_calls={autotune})"
    place = call.link_start + len(call.dot_space)
    lines = NEWLINE.split(call.dot_space)
    backslash = " \\" if "\\" in call.dot_space else ""
    return Splice(place, place, f"{link}{backslash}{source.newline}{lines[-1]}" if len(lines) > 1 else link)


def second_link(source: Source, call: LocatedCall, edit: SplitMap, changed: Mapping[str, str]) -> str:
    """Return `.map(...)` with the second half and the other arguments of the first `map`.

    Args:
        source: The text.
        call: The `map`.
        edit: The texts.
        changed: Parameter -> text of the new value, of arguments that other edits change.

    Raises:
        CannotRewriteError: An argument does more than name a value, so that it cannot be written twice.
    """
    texts = {"map_func": edit.second_argument}
    nodes = {argument.keyword: argument.value for argument in call.form.holder.args if argument.keyword}
    for argument in call.arguments:
        keyword = argument.keyword
        text = source.text[argument.start : argument.end]
        if find_argument(call, "map_func") is argument or keyword == "name":
            continue
        if keyword is None or argument.star or NEWLINE.search(text) or "#" in text:
            raise CannotRewriteError(f"The arguments of {call.method} cannot be written twice.")
        texts[keyword] = text
    if any(
        find_all(node, cst.Call) for name, node in nodes.items() if name.value not in ("map_func", "name", *changed)
    ):
        raise CannotRewriteError(f"The arguments of {call.method} cannot be written twice.")
    texts |= changed
    function = texts.pop("map_func")
    return f".map({', '.join([function, *(f'{name}={text}' for name, text in texts.items())])})"
