"""What ends an epoch at once: a pipeline without AUTOTUNE, whose iterator is destroyed without waiting for AUTOTUNE's thread.

In: the pipeline as it ran.  Out: `Fix`, or None where AUTOTUNE does more than to keep what a pipeline starts with.

Without AUTOTUNE, parallel calls stay at the number with which they start, and tf.data makes no map parallel and appends no
prefetch. The fix therefore writes what tf.data had added.
"""

from __future__ import annotations

from advisor.model import catalog
from advisor.model.calls import Call
from advisor.model.edits import AUTOTUNE_OPTION, Code, Edit, InsertAfter, SetArgument, SetOption
from advisor.model.finding import Fix, Safety
from advisor.model.pipeline import Analysis, Iterator, Pipeline
from advisor.predict.editable_calls import is_editable, last_editable_call
from advisor.predict.rewrites import is_rewrite_forbidden, top_iterator

STARTING_CALLS = 16
"""Parallel calls with which `tf.data.AUTOTUNE` starts, if there are as many cores; without autotuning, they stay at that
[measured with TensorFlow 2.21: 2 calls on two cores, 8 with a pool of 8 threads, 16 with one of 32]."""

_AUTOTUNE = Code("tf.data.AUTOTUNE")


def without_autotune(analysis: Analysis, pipeline: Pipeline) -> Fix | None:
    """Return the fix that turns AUTOTUNE off and writes what tf.data had added to the pipeline because of it.

    Args:
        analysis: The run.
        pipeline: The executed pipeline.

    Returns:
        The fix; None if AUTOTUNE is off, if it runs more calls in parallel than a pipeline starts with, or if a call to change is
        not in the user's code.
    """
    last = last_editable_call(analysis, pipeline)
    if last is None or is_rewrite_forbidden(analysis, pipeline):
        return None
    if any(it.is_autotuned and (it.parallelism or 0) > STARTING_CALLS for it in pipeline.iterators):
        return None
    made_parallel = {call.id: call for it in pipeline.iterators for call in _made_parallel(it)}
    if not all(map(is_editable, made_parallel.values())):
        return None
    edits: list[Edit] = [SetOption(last.id, AUTOTUNE_OPTION, value=False)]
    top = top_iterator(pipeline)
    if top is not None and top.injected_by_tensorflow and catalog.base_type(top.name) == "Prefetch":
        edits.append(InsertAfter(last.id, "prefetch", (("", _AUTOTUNE),)))
    edits += [SetArgument(call_id, "num_parallel_calls", _AUTOTUNE) for call_id in made_parallel]
    return Fix(tuple(edits), Safety.EXACT, is_auto=True)


def _made_parallel(iterator: Iterator) -> tuple[Call, ...]:
    """The maps that tf.data runs in parallel although the script does not ask for that."""
    if iterator.parallelism is None or catalog.base_type(iterator.name) not in ("ParallelMap", "MapAndBatch"):
        return ()
    if not iterator.is_autotuned and iterator.parallelism == 1:
        return ()
    return tuple(
        call for call in iterator.calls if call.method == "map" and call.arguments.get("num_parallel_calls") is None
    )
