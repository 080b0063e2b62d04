"""Finds the first difference between the proved calls and the calls of the patched script.

In: two `CallGraph`s.  Out: one sentence, or None. For `with_options` only the options are compared, because they apply to the
whole pipeline wherever they are set.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import networkx as nx

from advisor.model.call_graph import CallGraph, CallIdentity

Field = tuple[str, str]
"""(id of a call, one of its parameters, or `_TRACED`)."""
_TRACED = "<traced>"


def difference(
    expected: CallGraph,
    actual: CallGraph,
    unstable: Collection[Field] = (),
    changed_code: Mapping[str, str] | None = None,
) -> str | None:
    """Return a sentence on what the patched script does differently, or None.

    Args:
        expected: The proved calls.
        actual: The calls of the patched script.
        unstable: Fields that differ between two runs of the unchanged script and are not compared.
        changed_code: Identities of code changed by the patch, before -> after (a function that creates datasets).
    """
    return _Comparison(expected, actual, frozenset(unstable), changed_code or {}).difference()


def unstable_fields(one: CallGraph, two: CallGraph) -> frozenset[Field] | None:
    """Return the fields that differ between two runs of one text; None if they make different calls altogether."""
    comparison = _Comparison(one, two, frozenset(), {})
    comparison.collected = set()
    return None if comparison.difference() is not None else frozenset(comparison.collected)


class _Side:
    """One of the graphs, indexed for traversal."""

    def __init__(self, graph: CallGraph) -> None:
        self.calls = {call.id: call for call in graph.calls}
        self.consumer = graph.consumer
        self._dataflow: nx.DiGraph[str] = nx.DiGraph()
        self._dataflow.add_nodes_from(self.calls)
        self._dataflow.add_edges_from((i, call.id) for call in graph.calls for i in call.inputs if i in self.calls)
        used = {(input_id, call.outer) for call in graph.calls for input_id in call.inputs}
        self.ends: dict[str | None, list[str]] = {}
        """Call -> datasets that its function creates without using them, in order; None -> those outside of functions."""
        for call in graph.calls:
            if (call.id, call.outer) not in used:
                self.ends.setdefault(call.outer, []).append(call.id)

    def without_options(self, call_id: str) -> tuple[str, dict[str, str]]:
        """Return the nearest upstream call other than `with_options`, and the options set on the way."""
        options: dict[str, str] = {}
        call = self.calls.get(call_id)
        while call is not None and call.method == "with_options" and call.inputs:
            options = {**call.options, **options}
            call_id = call.inputs[0]
            call = self.calls.get(call_id)
        return call_id, options

    def options_of(self, call_id: str) -> list[tuple[str, str]]:
        """Return the options of a call and all its upstream calls."""
        if call_id not in self.calls:
            return []
        upstream = {call_id, *nx.ancestors(self._dataflow, call_id)}
        return sorted({option for other_id in upstream for option in self.calls[other_id].options.items()})


class _Comparison:
    def __init__(
        self, expected: CallGraph, actual: CallGraph, unstable: frozenset[Field], changed_code: Mapping[str, str]
    ) -> None:
        self._expected, self._actual = _Side(expected), _Side(actual)
        self._unstable, self._changed_code = unstable, changed_code
        self._known: dict[tuple[str, str], str | None] = {}
        self.collected: set[Field] | None = None
        """If set, collects differing fields instead of reporting them."""

    def difference(self) -> str | None:
        consumed = self._dataset(self._expected.consumer, self._actual.consumer)
        if consumed is not None:
            return consumed
        return self._ends(None, None, "The script")

    def _ends(self, expected_id: str | None, actual_id: str | None, maker: str) -> str | None:
        """Match the datasets created by the script, or by the function of a call, with their counterparts."""
        wanted = self._expected.ends.get(expected_id, [])
        left = list(self._actual.ends.get(actual_id, []))
        if len(wanted) != len(left):
            return f"{maker} creates {len(left)} datasets instead of {len(wanted)}."
        reason: str | None = None
        for end in wanted:
            # They usually come in the same order, but a moved line may change it.
            reasons: list[str] = []
            for other in left:
                why = self._dataset(end, other)
                if why is None:
                    left.remove(other)
                    break
                reasons.append(why)
            else:
                reason = reason or reasons[0]
        return reason

    def _dataset(self, expected_id: str, actual_id: str) -> str | None:
        """Compare two datasets with all their inputs, without recursion, as chains may be long."""
        options = self._expected.options_of(expected_id), self._actual.options_of(actual_id)
        todo = [(expected_id, actual_id)]
        seen = set(todo)
        while todo:
            pair = todo.pop()
            one, two = self._expected.without_options(pair[0])[0], self._actual.without_options(pair[1])[0]
            reason = self._pair(one, two)
            if reason is not None:
                return reason
            a, b = self._expected.calls.get(one), self._actual.calls.get(two)
            for following in zip(a.inputs if a else (), b.inputs if b else (), strict=False):
                if following not in seen:
                    seen.add(following)
                    todo.append(following)
        return None if options[0] == options[1] else _options_differ(*options)

    def _pair(self, expected_id: str, actual_id: str) -> str | None:
        key = (expected_id, actual_id)
        if key not in self._known:
            self._known[key] = None  # stops at a function that captures the dataset being compared
            self._known[key] = self._calls(expected_id, actual_id)
        return self._known[key]

    def _calls(self, expected_id: str, actual_id: str) -> str | None:
        expected, actual = self._expected.calls.get(expected_id), self._actual.calls.get(actual_id)
        if expected is None or actual is None:
            return None if (expected is None) == (actual is None) else "A dataset is created by an unrecorded call."
        place = actual.method if actual.line is None else f"{actual.method} at line {actual.line}"
        if expected.method != actual.method:
            return f"{place} is called instead of {expected.method}."
        if len(expected.inputs) != len(actual.inputs):
            return f"{place} takes {len(actual.inputs)} datasets instead of {len(expected.inputs)}."
        return (
            self._arguments(expected, actual, place)
            or self._traced(expected, actual, place)
            or (None if expected.has_new_function else self._ends(expected_id, actual_id, f"The function of {place}"))
        )

    def _arguments(self, expected: CallIdentity, actual: CallIdentity, place: str) -> str | None:
        names = {*expected.arguments, *(actual.given if expected.is_new else actual.arguments)}
        for name in sorted(names - {"map_func"} if expected.is_wrapped else names):
            was, now = expected.arguments.get(name), actual.arguments.get(name)
            if was == now or self._patched(was) == now or self._is_excused(expected.id, name):
                continue
            if expected.is_shortened and was and now and _is_part(now, self._patched(was) or ""):
                continue
            if was is not None and now is not None and "<function" in was and "<function" in now:
                return f"The function passed to {place} as {name} differs from the one that was proved."
            return f"{place} has {name}={now or 'its default'} instead of the proved {was or 'its default'}."
        return None

    def _patched(self, value: str | None) -> str | None:
        """The argument with the identities of code as changed by the patch."""
        for before, after in self._changed_code.items():
            value = value and value.replace(before, after)
        return value

    def _traced(self, expected: CallIdentity, actual: CallIdentity, place: str) -> str | None:
        """Compare traced functions, if they were traced for the same element spec. Wrapped ones have no other identity."""
        if expected.is_wrapped:
            is_proved = (expected.traced, expected.input_spec) == (actual.traced, actual.input_spec)
            return None if is_proved else f"The changed function of {place} differs from the one that was proved."
        is_comparable = expected.traced and actual.traced and expected.input_spec == actual.input_spec
        if not is_comparable or expected.traced == actual.traced or self._is_excused(expected.id, _TRACED):
            return None
        return (
            None
            if self._holds_edit(expected.id)
            else f"The function of {place} computes something different from the one that was proved."
        )

    def _holds_edit(self, call_id: str) -> bool:
        """Whether the function creates datasets: edits of those change its graph, so they are compared call by call."""
        return bool(self._expected.ends.get(call_id))

    def _is_excused(self, call_id: str, name: str) -> bool:
        if self.collected is not None:
            self.collected.add((call_id, name))
            return True
        return (call_id, name) in self._unstable


def _is_part(now: str, was: str) -> bool:
    """Whether a function has this code and reads no other values from outside; see `code_identity.function_identity`."""
    code, _, values = now.partition(" [")
    code_before, _, values_before = was.partition(" [")
    read, read_before = (set(text.removesuffix("]>").removesuffix(">").split("; ")) for text in (values, values_before))
    return code.removesuffix(">") == code_before.removesuffix(">") and read - {""} <= read_before


def _options_differ(expected: list[tuple[str, str]], actual: list[tuple[str, str]]) -> str:
    def text(options: list[tuple[str, str]]) -> str:
        return ", ".join(f"{name} = {value}" for name, value in options) or "none"

    return f"The options are {text(actual)} instead of the proved {text(expected)}."
