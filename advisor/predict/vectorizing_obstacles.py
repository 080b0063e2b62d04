"""Says what keeps the function of a `map` from being called once per batch by `tf.vectorized_map`.

In: an `Analysis`, a `map` and the `batch` after it.  Out: a clause for the report. `batch_functions` decides; this module names
the reason, for the reader who rewrites the function by hand.
"""

from __future__ import annotations

from advisor.model.calls import Call
from advisor.model.pipeline import Analysis
from advisor.model.vectorizable_ops import DRAWING_OPS, LOOP_INVARIANT_OPS, VECTORIZABLE_OPS
from advisor.predict.batch_functions import is_vectorizable, padding_obstacle, varying_parameter, vectorizing_fix

_SHOWN_OPS = 3
"""Maximum number of ops named."""


def vectorizing_obstacle(analysis: Analysis, call: Call, batched: Call) -> str | None:
    """Return the first reason why a `map` is not vectorised automatically, as a clause; None if nothing is in the way.

    Args:
        analysis: The analysis.
        call: The `map`.
        batched: The `batch` after it.
    """
    function = call.function
    if vectorizing_fix(analysis, call, batched) is not None:
        return None
    if function is None or not function.is_traced:
        return "its function is not known"
    if function.python_ops:
        return f"it runs Python code ({_listed(function.python_ops)})"
    if call.nested_in is not None and function.uses_enclosing:
        return "it uses a value of the function inside which it is called, such as the name of the file"
    drawing = tuple(op for op in function.random_ops if op not in DRAWING_OPS)
    if drawing:
        return f"{_listed(drawing)} has no form that is known to draw numbers of its own for each row of a batch"
    if function.resources or function.captured:
        return "it reads state outside its element (a variable or a table)"
    unknown = [op for op in function.ops if op not in VECTORIZABLE_OPS | LOOP_INVARIANT_OPS | DRAWING_OPS]
    if unknown:
        return f"{_listed(unknown)} {'has' if len(unknown) == 1 else 'have'} no form for batches that is known to be the same"
    if function.varying_parameters:
        return varying_parameter(function)
    padding = padding_obstacle(analysis, call, batched) if batched.method == "padded_batch" else None
    if padding is not None:
        return padding
    if function.stateful_ops is None:
        return "which of its ops have state was not recorded"
    if not is_vectorizable(function):
        return "it has stateful ops"
    return "its elements are not known to have equal shapes, or another call between it and the batch depends on single elements"


def _listed(ops: tuple[str, ...] | list[str]) -> str:
    names = list(dict.fromkeys(ops))
    return ", ".join(names[:_SHOWN_OPS]) + (f" and {len(names) - _SHOWN_OPS} more" if len(names) > _SHOWN_OPS else "")
