"""The fix that lets maps run in parallel.

In: calls of `map` and the pipeline in which they ran.  Out: `Fix`, or None.
"""

from __future__ import annotations

from collections.abc import Sequence

from advisor.model import catalog
from advisor.model.calls import Call
from advisor.model.edits import Code, Edit, InsertAfter, SetArgument
from advisor.model.finding import Fix, Safety
from advisor.model.pipeline import Iterator, Pipeline
from advisor.predict.determinism import parallel_safety
from advisor.predict.editable_calls import is_editable
from advisor.predict.rewrites import top_iterator

_AUTOTUNE = Code("tf.data.AUTOTUNE")


def parallel_fix(calls: Sequence[Call], is_prefetched: bool = False) -> Fix | None:
    """Return the fix that sets `num_parallel_calls=tf.data.AUTOTUNE` in these maps.

    `advisor fix` tries it unasked even if the lower bound of the prediction is no gain: whether a second thread helps a map of
    about 60 us per element cannot be predicted [measured: 1.04x (0.97 to 1.23), predicted: 1.25x (1.00 to 1.63)], and the proof
    decides. It does not if one of the maps runs Python code: only the author knows whether that is safe to run concurrently.

    Args:
        calls: The maps, source first.
        is_prefetched: Whether the prefetch after the last of them is one that tf.data adds only behind a sequential map, see
            `is_prefetched_by_tensorflow`. The fix then writes one.

    Returns:
        The fix; None if one of the maps is not in the user's code.
    """
    if not all(is_editable(call) for call in calls):
        return None
    edits: tuple[Edit, ...] = tuple(SetArgument(call.id, "num_parallel_calls", _AUTOTUNE) for call in calls)
    if is_prefetched:
        edits += (InsertAfter(calls[-1].id, "prefetch", (("", _AUTOTUNE),)),)
    safety = max((parallel_safety(call) for call in calls), key=list(Safety).index)
    has_python = any(call.function is not None and call.function.python_ops for call in calls)
    return Fix(edits, safety, is_auto=not has_python)


def is_prefetched_by_tensorflow(pipeline: Pipeline, iterator: Iterator) -> bool:
    """Whether tf.data added the prefetch after a sequential map, which it does only at the end of a pipeline.

    It adds none behind a parallel map, which holds as many elements as it has parallel calls: with one or two, a pipeline that
    is about as fast as the training stops and starts with each step [measured: 1.12x (1.07 to 1.14) with a prefetch after
    the parallel map of `raw_frames`, of 22 scripts the one with the largest difference].

    Args:
        pipeline: The pipeline.
        iterator: The iterator of the map.
    """
    top = top_iterator(pipeline)
    return (
        top is not None
        and top.injected_by_tensorflow
        and catalog.base_type(top.name) == "Prefetch"
        and catalog.base_type(iterator.name) == "Map"
        and iterator.parent_id == top.id
    )
