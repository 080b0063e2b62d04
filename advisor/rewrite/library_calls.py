"""Adds links to datasets returned by a library: `tfds.load(...)`, `keras.utils.image_dataset_from_directory(...)`.

In: the user's call of the library and the recorded calls.  Out: the splice that inserts a link after the call, after the line
that unpacks its result, or before its only use. It must be clear that the result is the dataset: from the next recorded call,
or because the library's function is known.
"""

from __future__ import annotations

from collections.abc import Mapping

import libcst as cst
from libcst.helpers import get_full_name_for_node

from advisor.model.calls import Call
from advisor.rewrite.cannot_rewrite import CannotRewriteError
from advisor.rewrite.links import insert_link
from advisor.rewrite.splices import Splice
from advisor.rewrite.syntax import LocatedCall, Source

_GIVE_A_DATASET = frozenset(
    {
        "apply",
        "audio_dataset_from_directory",
        "image_dataset_from_directory",
        "text_dataset_from_directory",
        "timeseries_dataset_from_array",
    }
)
"""Functions of Keras, and `Dataset.apply`, that return one dataset (without `subset="both"`)."""


def insert_after_library(
    source: Source, call: Call, located: LocatedCall, link: str, calls: Mapping[str, Call]
) -> Splice:
    """Insert a link after the dataset that a line gets from a library.

    Args:
        source: The parsed file.
        call: The recorded call inside the library.
        located: Its place in the file.
        link: The text to insert, such as `.prefetch(tf.data.AUTOTUNE)`.
        calls: The recorded calls by id.

    Raises:
        CannotRewriteError: It is unclear whether the result is the dataset.
    """
    uses = _uses(source, call, calls)
    statement, _ = source.statement(located.node)
    assign = source.parents(located.node)[0]
    target = assign.targets[0].target if isinstance(assign, cst.Assign) and len(assign.targets) == 1 else None
    receivers = [use.node.func.value for use in uses if isinstance(use.node.func, cst.Attribute)]
    names = {receiver.value for receiver in receivers if isinstance(receiver, cst.Name)}
    if any(receiver is located.node for receiver in receivers):
        return insert_link(source, located, link)
    if isinstance(target, cst.Name) and target.value in names:
        return insert_link(source, located, link)
    if isinstance(target, cst.Tuple | cst.List) and len(names) == 1 and _names_in(target).count(next(iter(names))) == 1:
        name = next(iter(names))
        place = source.line_span(statement)[1]
        text = f"{source.indent(statement)}{name} = {name}{link}"
        has_break = source.text[place - 1 : place] in ("\n", "\r")
        return Splice(place, place, text + source.newline if has_break else source.newline + text)
    if len(uses) == 1 and len(receivers) == 1 and isinstance(receivers[0], cst.Subscript):
        use = uses[0]
        assert use.link_start is not None
        return Splice(use.link_start, use.link_start, link)
    if not uses and _is_known(located.node):
        return insert_link(source, located, link)
    raise CannotRewriteError(
        f"The text does not show whether {source.code(located.node.func)} returns the dataset itself."
    )


def _uses(source: Source, call: Call, calls: Mapping[str, Call]) -> list[LocatedCall]:
    """The script's own calls on the dataset created by `call` in this file, each place once."""
    uses: dict[int, LocatedCall] = {}
    for other in calls.values():
        if other.inputs[:1] != (call.id,) or other.library is not None or other.site is None or call.site is None:
            continue
        if other.site.file == call.site.file:
            use = source.locate(other)
            uses[use.end] = use
    return list(uses.values())


def _is_known(node: cst.Call) -> bool:
    name = (get_full_name_for_node(node.func) or "").rpartition(".")[2]
    subset = [
        argument.value for argument in node.args if argument.keyword is not None and argument.keyword.value == "subset"
    ]
    is_one = not subset or (
        isinstance(subset[0], cst.SimpleString) and subset[0].evaluated_value in ("training", "validation")
    )
    has_stars = any(argument.star for argument in node.args)
    return name in _GIVE_A_DATASET and is_one and not has_stars


def _names_in(target: cst.BaseExpression) -> list[str]:
    if isinstance(target, cst.Name):
        return [target.value]
    if isinstance(target, cst.Tuple | cst.List):
        return [name for element in target.elements for name in _names_in(element.value)]
    return []
