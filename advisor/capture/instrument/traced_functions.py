"""Collects facts about the user function of a transformation from the graph that TensorFlow traced.

In: a dataset made by a transformation.  Out: `FunctionFacts`: the ops of the function and its nested functions, and which of
them draw random numbers, run Python or keep state.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import replace
from types import FunctionType
from typing import Any

from advisor.capture.instrument.batch_forms import PLUMBING
from advisor.capture.instrument.batch_layers import LayerOps, ops_of_layers
from advisor.capture.instrument.batch_lines import batch_lines
from advisor.capture.instrument.batch_parsing import parses_batches
from advisor.capture.instrument.captured_state import Captured, captured_by, uses_enclosing
from advisor.capture.instrument.data_flow import Dataflow, dataflow_of
from advisor.capture.instrument.function_lines import function_lines, named_function, site_of
from advisor.capture.instrument.numpy_rows import row_wise_ops
from advisor.capture.instrument.padding_kept import keeps_padding
from advisor.capture.instrument.ragged_forms import ragged_results
from advisor.capture.instrument.row_lengths import row_length
from advisor.capture.instrument.straight_code import is_straight_code
from advisor.model.calls import CalledFunction, FunctionFacts, Site
from advisor.model.catalog import PYTHON_OPS
from advisor.model.op_effects import CALLING_OPS, SEED_OPS, is_dataset_op
from advisor.model.state import DATASET, CapturedResource

RANDOM_OPS = frozenset(
    {
        "RandomUniform",
        "RandomUniformInt",
        "RandomStandardNormal",
        "TruncatedNormal",
        "ParameterizedTruncatedNormal",
        "RandomShuffle",
        "RandomGamma",
        "RandomPoisson",
        "RandomPoissonV2",
        "Multinomial",
        "SampleDistortedBoundingBox",
        "SampleDistortedBoundingBoxV2",
        "RandomCrop",
        "FixedUnigramCandidateSampler",
        "LearnedUnigramCandidateSampler",
        "LogUniformCandidateSampler",
        "UniformCandidateSampler",
        "AllCandidateSampler",
        "RngReadAndSkip",
        "RngSkip",
        "StatefulRandomBinomial",
        "StatefulStandardNormal",
        "StatefulStandardNormalV2",
        "StatefulTruncatedNormal",
        "StatefulUniform",
        "StatefulUniformFullInt",
        "StatefulUniformInt",
        "AnonymousRandomSeedGenerator",
        "RandomDataset",
        "RandomDatasetV2",
    }
)
"""Ops that draw different numbers in each run. Source: the stateful ops of `random_ops.cc`, `stateful_random_ops.cc`,
`candidate_sampling_ops.cc` and `image_ops.cc` of TF 2.21."""

_STATELESS_RANDOM = (
    "StatelessRandom",
    "StatelessTruncated",
    "StatelessMultinomial",
    "StatelessParameterized",
    "StatelessShuffle",
    "StatelessSample",
)
"""Prefixes of ops that compute numbers from a seed. They are random only if the seed is a variable that changes (Keras'
`SeedGenerator`). If it is a constant or depends on the element only, they give the same numbers each time."""

_ASSIGNMENTS = ("AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp")

_CALLS = CALLING_OPS | {"SymbolicGradient", "RemoteCall"}
"""Ops that only call other functions, whose ops are examined instead."""

_NEVER_STATEFUL = frozenset({"Assert"})
"""Ops that do not prevent tf.data's graph rewrites. Source: `function_utils.cc`, `IsNodeStateful(..., skip_assert)`."""


def function_facts(
    dataset: Any,  # noqa: ANN401
    function: object,
    site: Site | None,
    resource_id: Callable[[Captured], str] = lambda captured: "",
    is_user_file: Callable[[str], bool] = lambda file: False,
) -> FunctionFacts | None:
    """Return the facts of all functions of a dataset; None if it has no function.

    Args:
        dataset: Dataset made by a transformation.
        function: The callable that the user passed to the transformation.
        site: Where the callable is defined.
        resource_id: Returns the id of a captured resource in the `StateWatch`.
        is_user_file: Returns whether a file belongs to the user's code; needed for functions that a lambda imports.
    """
    wrappers: list[Any] = getattr(dataset, "_functions", list)()
    if not wrappers:
        return None
    ops: dict[str, int] = {}
    captured: list[Captured] = []
    is_seeded = False
    for wrapper in wrappers:
        graph = wrapper.function.graph
        definition = graph.as_graph_def()
        bodies = [definition.node, *(body.node_def for body in definition.library.function)]
        for node in (node for body in bodies for node in body):
            ops[node.op] = ops.get(node.op, 0) + 1
            is_seeded = is_seeded or _is_seeded(node)
        captured += captured_by(graph, function)
    has_assignment = any(op in ops for op in _ASSIGNMENTS)
    random_ops = {op for op in ops if op in RANDOM_OPS or (has_assignment and op.startswith(_STATELESS_RANDOM))}
    of_layers = _of_layers(wrappers, function, site)
    row_wise = _row_wise(wrappers)
    of_layers = replace(of_layers, alike=of_layers.alike | row_wise)
    flow = _dataflow(wrappers, random_ops, site, of_layers)
    is_split = flow is not None and bool(random_ops or any(is_dataset_op(op) for op in ops))
    is_drawing = bool(random_ops and row_wise)  # no rule takes such a function to be element-wise
    is_mixed = flow is not None and (not flow.is_elementwise or is_drawing)
    is_parser = flow is not None and "ParseExampleV2" in ops and _parses_batches(wrappers, of_layers)
    length = _row_length(wrappers)
    return FunctionFacts(
        name=function_name(function),
        site=site,
        is_stateful=any(_is_stateful(op) for op in ops),
        random_ops=tuple(sorted(random_ops)),
        python_ops=tuple(sorted(op for op in ops if op in PYTHON_OPS)),
        ops={op: count for op, count in sorted(ops.items()) if op not in PLUMBING},
        captured=tuple(dict.fromkeys(capture.op_type for capture in captured if capture.kind != DATASET)),
        resources=tuple(
            dict.fromkeys(CapturedResource(capture.kind, capture.name, resource_id(capture)) for capture in captured)
        ),
        stateful_ops=tuple(sorted(op for op in ops if _may_have_state(op))),
        is_seeded=is_seeded,
        is_elementwise=None if flow is None else flow.is_elementwise,
        flow=() if flow is None else flow.flow,
        fixed_ops={} if flow is None else flow.fixed_ops,
        random_site=None if flow is None else flow.random_site,
        lines=function_lines(wrappers[0].function.graph, random_ops, function, site) if is_split else (),
        called=_called(
            wrappers[0].function.graph,
            random_ops,
            named_function(function, is_user_file) if is_split or is_mixed else None,
            is_split,
            of_layers if is_mixed else None,
            is_parser or length is not None,
        ),
        unchanged=() if flow is None else flow.unchanged,
        used_inputs=None if flow is None else flow.used_inputs,
        uses_enclosing=any(uses_enclosing(wrapper.function.graph) for wrapper in wrappers),
        batch_lines=batch_lines(wrappers[0].function.graph, function, site, of_layers.alike, of_layers.unlike)
        if is_mixed
        else (),
        ragged_results=() if flow is None or "StringSplitV2" not in ops else ragged_results(wrappers[0].function.graph),
        parses_batches=is_parser,
        row_length=length,
        keeps_padding=_keeps_padding(wrappers, ops)
        if flow is not None and flow.is_elementwise and not of_layers.alike
        else None,
        varying_parameters=() if flow is None else flow.varying_parameters,
        batch_layers=of_layers.classes,
        is_straight_code=is_straight_code(function),
        is_python_row_wise=bool(row_wise) and len(row_wise) == sum(ops[op] for op in ops if op in PYTHON_OPS),
    )


def _called(
    graph: Any,  # noqa: ANN401
    random_ops: set[str],
    called: FunctionType | None,
    is_split: bool,
    of_layers: LayerOps | None,
    is_copied: bool,
) -> CalledFunction | None:
    """Describe the function that a lambda calls, as far as that is of use; None if it is of none.

    Args:
        graph: The traced `FuncGraph`.
        random_ops: Types of ops that draw random numbers.
        called: The function; None if the lambda names none.
        is_split: Whether it may be split, so that its lines are needed.
        of_layers: The ops of layers, if it may be called with batches in parts; None if not.
        is_copied: Whether it may be called with batches if some of its calls are exchanged.
    """
    if called is None:
        return None
    site = site_of(called.__code__)
    of_batches = () if of_layers is None else batch_lines(graph, called, site, of_layers.alike, of_layers.unlike)
    if not is_split and not of_batches and not is_copied:
        return None
    return CalledFunction(site, function_lines(graph, random_ops, called, site) if is_split else (), of_batches)


def _of_layers(wrappers: list[Any], function: object, site: Site | None) -> LayerOps:
    """The ops of layers of which it is known what they do with a batch; none if that cannot be found out."""
    try:
        return ops_of_layers(wrappers[0].function.graph, function, site) if len(wrappers) == 1 else LayerOps()
    except (AttributeError, TypeError, ValueError):  # as in `_dataflow`
        return LayerOps()


def _row_wise(wrappers: list[Any]) -> frozenset[str]:
    """The ops whose Python functions compute for a batch what they compute for each row; none if that cannot be found out."""
    try:
        return row_wise_ops(wrappers[0].function.graph) if len(wrappers) == 1 else frozenset()
    except (AttributeError, TypeError, ValueError):  # as in `_dataflow`
        return frozenset()


def _dataflow(wrappers: list[Any], random_ops: set[str], site: Site | None, of_layers: LayerOps) -> Dataflow | None:
    """Return the data flow if there is exactly one function; None otherwise or if the graph cannot be analyzed."""
    if len(wrappers) != 1:
        return None
    try:
        return dataflow_of(wrappers[0].function.graph, random_ops, site, of_layers.alike, of_layers.unlike)
    except (
        AttributeError,
        TypeError,
        ValueError,
    ):  # `dataflow_of` uses private attributes of the graph, which may not exist
        return None


def _parses_batches(wrappers: list[Any], of_layers: LayerOps) -> bool:
    """Return what `FunctionFacts.parses_batches` holds for the only function; False if that cannot be found out."""
    try:
        return parses_batches(wrappers[0].function.graph, of_layers.alike, of_layers.unlike)
    except (AttributeError, IndexError, TypeError, ValueError):  # as in `_dataflow`; another version of the op
        return False


def _row_length(wrappers: list[Any]) -> int | None:
    """Return what `FunctionFacts.row_length` holds for the only function; None if that cannot be found out."""
    try:
        return row_length(wrappers[0].function.graph) if len(wrappers) == 1 else None
    except (AttributeError, IndexError, TypeError, ValueError):  # as in `_dataflow`
        return None


def _keeps_padding(wrappers: list[Any], ops: Iterable[str]) -> bool | None:
    """Return what `FunctionFacts.keeps_padding` holds for an element-wise function."""
    try:
        return keeps_padding(wrappers[0].function, ops)
    except Exception:  # private attributes, or an op that cannot run here: then it is unknown
        return None


def function_name(function: object) -> str:
    """Return the name of a function, e.g. `augment`, `<lambda>` or `Model.preprocess`, or the type of a callable object."""
    while hasattr(function, "func"):  # functools.partial
        function = function.func
    name = getattr(function, "__qualname__", None) or getattr(function, "__name__", None)
    return str(name or type(function).__name__).replace("<locals>.", "").rsplit(".", 2)[-1]


def function_site(function: object, is_user_file: Any) -> Site | None:  # noqa: ANN401
    """Return where a function is defined; None for functions of libraries and C functions.

    Args:
        function: A function, partial, `tf.function` or callable object.
        is_user_file: Returns whether a file belongs to the user's code.
    """
    while hasattr(function, "func"):
        function = function.func
    function = getattr(function, "python_function", function)
    code = getattr(inspect.unwrap(function) if callable(function) else function, "__code__", None)
    if code is None or not is_user_file(code.co_filename):
        return None
    return site_of(code)


def _is_seeded(node: Any) -> bool:  # noqa: ANN401
    """Return whether a random op draws the same numbers in each run. Unseeded ops have two zero seeds."""
    if node.op not in RANDOM_OPS:
        return False
    if node.op.startswith("Rng"):
        return True
    return any(node.attr[name].i != 0 for name in ("seed", "seed2") if name in node.attr)


def _is_stateful(op: str) -> bool:
    if op in _CALLS or op in _NEVER_STATEFUL or op.rstrip("V0123456789").endswith("Dataset"):
        return False
    from tensorflow.python.framework import op_def_registry  # private API; the caller handles an ImportError

    definition = op_def_registry.get(op)
    return bool(definition is not None and definition.is_stateful)


def _may_have_state(op: str) -> bool:
    """Return whether the op is stateful or not in TensorFlow's registry, or makes a seed or a dataset."""
    from tensorflow.python.framework import op_def_registry

    if op in CALLING_OPS:
        return False
    definition = op_def_registry.get(op)
    return definition is None or definition.is_stateful or op in SEED_OPS or is_dataset_op(op)
