"""Computes the calls that the patched script is expected to make.

In: the `CallGraph` of the original script, and the proved edits.  Out: another `CallGraph`, in which links are at the same places
as in `advisor.replay.replay`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from advisor.model.call_graph import CallGraph, CallIdentity
from advisor.model.call_parameters import POSITIONS
from advisor.model.edits import Code, Edit, InsertAfter, MoveAfter, SetOption, SplitFlatMap, SplitMap, Value
from advisor.replay.call_arguments import INTEGERS
from advisor.replay.edited import CannotReplay, EditedCalls, Link, first_id, lay_out

_AUTOTUNE = str(INTEGERS["tf.data.AUTOTUNE"])
_LITERALS = ("True", "False", "None")


def edited_graph(graph: CallGraph, edits: Sequence[Edit]) -> CallGraph:
    """Return the graph with the edits.

    Args:
        graph: The graph of the original script.
        edits: The edits. Those of calls that are not in the graph, because they were made later in the run, are ignored.

    Raises:
        CannotReplay: The edits contradict each other, or the graph of a function that they wrap is unknown.
    """
    ids = {call.id for call in graph.calls}
    known = tuple(edit for edit in edits if _is_known(edit, ids))
    options = frozenset(call.id for call in graph.calls if call.method == "with_options")
    return _Editing(graph, lay_out(known, options)).graph()


def _is_known(edit: Edit, ids: set[str]) -> bool:
    return edit.call_id in ids and (not isinstance(edit, MoveAfter) or edit.after_id in ids)


class _Editing:
    def __init__(self, graph: CallGraph, laid: EditedCalls) -> None:
        self._graph, self._laid = graph, laid
        self._calls = {call.id: call for call in graph.calls}
        self._shortened = {
            self._calls[link.id].outer
            for anchor, links in laid.links_after.items()
            for link in links
            if isinstance(link.edit, MoveAfter) and self._calls[link.id].outer != self._calls[anchor].outer
        }
        """Calls out of whose function another call is moved; None for those that are in no function."""

    def graph(self) -> CallGraph:
        """Return all calls in the order of the original script; links follow their call."""
        calls: list[CallIdentity] = []
        for call in self._graph.calls:
            if call.outer in self._laid.functions:
                continue  # made by the function that is replaced
            if call.id not in self._laid.absent:
                inputs = tuple(self._place(input_id) for input_id in call.inputs)
                if isinstance(self._laid.split.get(call.id), SplitFlatMap):
                    calls.append(self._first_half(call, inputs))
                    inputs = (calls[-1].id, *inputs[1:])
                calls.append(replace(self._own(call), inputs=inputs))
            before = self._before(call.id)
            for link in self._laid.links_after.get(call.id, ()):
                calls.append(self._linked(link, before, call))
                before = link.id
        return replace(self._graph, calls=tuple(calls), consumer=self._place(self._graph.consumer))

    def _place(self, call_id: str) -> str:
        """Return the id of the call or link whose dataset replaces that of a call."""
        links = self._laid.links_after.get(call_id)
        return links[-1].id if links else self._before(call_id)

    def _before(self, call_id: str) -> str:
        """Return the same as `_place`, ignoring the links that follow the call."""
        if call_id not in self._laid.absent:
            return call_id
        inputs = self._calls[call_id].inputs
        return self._place(inputs[0]) if inputs else call_id

    def _own(self, call: CallIdentity) -> CallIdentity:
        changed = {name: written(value) for name, value in self._laid.arguments.get(call.id, {}).items()}
        options = {**call.options}
        for name, value in self._laid.options.get(call.id, {}).items():
            if value is None:
                options.pop(name, None)
            else:
                options[name] = option_written(value)
        is_shortened = call.id in self._shortened
        call = replace(call, arguments={**call.arguments, **changed}, options=options, is_shortened=is_shortened)
        has_new_function = call.id in self._laid.functions
        call = replace(call, has_new_function=has_new_function)
        is_changed = has_new_function or call.id in (*self._laid.vectorized, *self._laid.split)
        return self._wrapped(call) if is_changed else call

    def _first_half(self, call: CallIdentity, inputs: tuple[str, ...]) -> CallIdentity:
        """The parallel `map` before a `flat_map` whose function is split."""
        arguments = {"num_parallel_calls": _AUTOTUNE}
        new = CallIdentity(first_id(call.id), "map", inputs[:1], arguments, tuple(arguments), outer=call.outer)
        return self._wrapped(replace(new, line=call.line, is_new=True))

    def _wrapped(self, call: CallIdentity) -> CallIdentity:
        if call.id not in self._graph.wrapped:
            raise CannotReplay(call.method, "the graph of its changed function is unknown")
        traced, input_spec = self._graph.wrapped[call.id]
        return replace(call, traced=traced, input_spec=input_spec, is_wrapped=True)

    def _linked(self, link: Link, before: str, anchor: CallIdentity) -> CallIdentity:
        edit = link.edit
        if isinstance(edit, MoveAfter):
            call = self._own(self._calls[link.id])
            if call.outer != anchor.outer and call.id in self._graph.wrapped and not call.is_wrapped:
                call = self._wrapped(call)
            others = tuple(self._place(input_id) for input_id in call.inputs[1:])
            return replace(call, inputs=(before, *others), outer=anchor.outer)
        if isinstance(edit, SplitMap):
            others = tuple(self._place(input_id) for input_id in anchor.inputs[1:])
            return self._wrapped(replace(self._own(anchor), id=link.id, inputs=(before, *others)))
        new = CallIdentity(link.id, "with_options", (before,), outer=anchor.outer, line=anchor.line, is_new=True)
        if isinstance(edit, SetOption):
            return replace(new, options={edit.option: option_written(edit.value)})
        arguments = _named(edit) | {
            name: written(value) for name, value in self._laid.arguments.get(link.id, {}).items()
        }
        return replace(new, method=edit.method, arguments=arguments, given=tuple(arguments))


def _named(edit: InsertAfter) -> dict[str, str]:
    names = POSITIONS.get(edit.method, ())
    arguments = {}
    for place, (name, value) in enumerate(edit.arguments):
        arguments[name or (names[place] if place < len(names) else f"arg{place}")] = written(value)
    return arguments


def written(value: Value) -> str:
    """Return the description of an edit's value in the format of `advisor.capture.instrument.code_identity`."""
    if not isinstance(value, Code):
        return repr(value)
    name = value.text.rpartition(".")[2]
    if value.text in INTEGERS:
        return str(INTEGERS[value.text])
    return name if value.text in _LITERALS else ".".join(value.text.split(".")[-2:])


def option_written(value: Value) -> str:
    """Return the description of an option in the format of `advisor.capture.instrument.value_summaries`.

    Members of enumerations are described by their name only.
    """
    is_name = isinstance(value, Code) and written(value) not in (_AUTOTUNE, *_LITERALS)
    return repr(value.text.rpartition(".")[2]) if is_name and isinstance(value, Code) else written(value)
