"""Wraps the function of a `map` so that it can be applied to whole batches.

In: the function as the script passed it.  Out: a function of a batch, which has the same graph as the text that
`advisor.rewrite.batch_function` writes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from advisor.capture.instrument.traced_functions import RANDOM_OPS


def batch_function(function: Callable[..., Any], is_plain: bool, tensorflow: Any) -> Callable[..., Any]:  # noqa: ANN401
    """Return a function that applies `function` to every row of a batch at once.

    Tracing it raises a ValueError if an op of `function` has no vectorised form. `tf.function` is needed because AutoGraph does
    not convert functions that TensorFlow itself calls.

    Args:
        function: The function of one element, with an argument per component.
        is_plain: Whether it needs no AutoGraph.
        tensorflow: The imported module.
    """

    def on_batch(*rows: Any) -> Any:  # noqa: ANN401
        called = function if is_plain else tensorflow.function(function)
        return tensorflow.vectorized_map(lambda row: called(*row), rows, fallback_to_while_loop=False)

    return tensorflow.autograph.experimental.do_not_convert(on_batch)  # type: ignore[no-any-return]


def draws_per_row(before: Any, after: Any, *, joins_rows: bool = False) -> bool:  # noqa: ANN401
    """Return whether a vectorised function draws numbers of its own for each row of a batch.

    Args:
        before: The dataset with the function of one element.
        after: The dataset with the function of a batch. Each of its random ops must draw a shape to which the number of rows was
            prepended, and there must be as many as before.
        joins_rows: Whether the rows of a batch follow each other in one vector. Each op must then draw a shape that consists of
            the sum of their lengths, or is that of such a vector.
    """
    drawing, shaped = _random_ops(after, _is_sum_or_shape if joins_rows else _is_concatenation)
    return drawing == shaped and drawing == _random_ops(before, _is_concatenation)[0]


def _is_concatenation(shape: Any, nodes: Mapping[str, Any]) -> bool:  # noqa: ANN401
    return bool(shape.op == "ConcatV2")


def _is_sum_or_shape(shape: Any, nodes: Mapping[str, Any]) -> bool:  # noqa: ANN401
    sizes = [nodes.get(_source(size)) for size in shape.input]
    is_sum = shape.op == "Pack" and len(sizes) == 1 and sizes[0] is not None and sizes[0].op == "Sum"
    return bool(is_sum or shape.op == "Shape")


def _random_ops(
    dataset: Any,  # noqa: ANN401
    is_for_all: Callable[[Any, Mapping[str, Any]], bool],
) -> tuple[Counter[str], Counter[str]]:
    """Count the random ops behind the results of a dataset's functions, and those whose shape is for all rows, by type."""
    drawing, shaped = Counter[str](), Counter[str]()
    for wrapper in dataset._functions():
        graph = wrapper.function.graph
        definition = graph.as_graph_def()
        library = {body.signature.name: body for body in definition.library.function}
        pending = [(definition.node, [output.op.name for output in graph.outputs])]
        seen: set[str] = set()
        while pending:
            nodes, ends = pending.pop()
            by_name = {node.name: node for node in nodes}
            for node in _computing(nodes, ends):
                if node.op in RANDOM_OPS:
                    drawing[node.op] += 1
                    shape = by_name.get(_source(node.input[0])) if node.input else None
                    shaped[node.op] += shape is not None and is_for_all(shape, by_name)
                for name in (*(value.func.name for value in node.attr.values()), *_listed(node)):
                    if name in library and name not in seen:
                        seen.add(name)
                        body = library[name]
                        pending.append((body.node_def, [_source(end) for end in body.ret.values()]))
    return +drawing, +shaped


def _computing(nodes: Iterable[Any], ends: Iterable[str]) -> Iterator[Any]:
    """Yield the nodes from which these ends are computed: what `tf.vectorized_map` has converted stays in the graph beside it."""
    by_name = {node.name: node for node in nodes}
    pending, seen = list(ends), set[str]()
    while pending:
        name = pending.pop()
        if name in by_name and name not in seen:
            seen.add(name)
            yield by_name[name]
            pending += [_source(input_name) for input_name in by_name[name].input if not input_name.startswith("^")]


def _source(tensor: str) -> str:
    """The node of a tensor: `add` for `add:z:0`."""
    return tensor.partition(":")[0]


def _listed(node: Any) -> list[str]:  # noqa: ANN401
    return [function.name for value in node.attr.values() for function in value.list.func]
