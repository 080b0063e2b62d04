"""The end of a pipeline in which a `map` takes batches: parallel calls and a prefetch.

In: a fix that moves a `map` behind its `batch`.  Out: the fix with both, where they change the data no more than the fix does.

One change with all three is proved in one trial. Without them, six of the fifteen scripts in `benchmarks/expert.py` that have
such a fix needed a second trial, which made the same map parallel. In three others and one of the six, passes of a training were
1.01x to 1.06x as fast with both [measured, 2026-11-29, 13 to 25 turns each, alone], which is mostly too little to be proved.
"""

from __future__ import annotations

from dataclasses import replace

from advisor.model.calls import Call
from advisor.model.edits import Code, InsertAfter, MoveAfter, SetArgument
from advisor.model.finding import Fix, Safety
from advisor.model.pipeline import Analysis, Pipeline
from advisor.predict.capacity import core_use
from advisor.predict.determinism import parallel_safety
from advisor.predict.rewrites import is_rewrite_forbidden

_AUTOTUNE = Code("tf.data.AUTOTUNE")
_PARALLEL = "num_parallel_calls"


def with_parallel_end(analysis: Analysis, pipeline: Pipeline, call: Call, batched: Call, fix: Fix | None) -> Fix | None:
    """Return a fix that also runs the moved `map` in parallel, and prefetches if it is then the end of the pipeline.

    It does neither if the function runs Python code, if an option turns tf.data's tuning off, if there is a single core, or if
    the `map` is made inside another function. Nor if the script fixes a seed and the function draws random numbers: parallel
    calls draw them in no fixed order, so that two runs would differ.

    Args:
        analysis: The run.
        pipeline: The executed pipeline.
        call: The `map`.
        batched: The `batch` or `padded_batch` behind which the fix moves it.
        fix: The fix; None stays None.
    """
    if fix is None or call.nested_in is not None or batched.nested_in is not None or call.function is None:
        return fix
    if call.function.python_ops or is_rewrite_forbidden(analysis, pipeline):
        return fix
    use = core_use(analysis, pipeline)
    if use is None or use.usable <= 1:
        return fix
    safety = parallel_safety(call)
    is_seeded = analysis.recording is None or analysis.recording.is_reproducible
    if safety is not Safety.EXACT and (safety is not fix.safety or is_seeded):
        return fix
    edits = fix.edits
    if call.arguments.get(_PARALLEL) is None:
        edits += (SetArgument(call.id, _PARALLEL, _AUTOTUNE),)
    if not any(batched.id in other.inputs for other in analysis.calls):
        moves = (edit for edit in edits if isinstance(edit, MoveAfter) and edit.call_id == call.id)
        last = next((move.after_id for move in moves), call.id)
        # Of the links after one call, the first edit ends up last.
        edits = (InsertAfter(last, "prefetch", (("", _AUTOTUNE),)), *edits)
    return replace(fix, edits=edits)


def parallel_calls(analysis: Analysis, pipeline: Pipeline, call: Call, fix: Fix | None) -> int:
    """Return how many calls of a `map` run at the same time at most if a fix makes it parallel; 1 if it does not.

    Args:
        analysis: The run.
        pipeline: The executed pipeline.
        call: The `map`.
        fix: The fix.
    """
    use = core_use(analysis, pipeline)
    if fix is None or use is None:
        return 1
    is_set = any(
        isinstance(edit, SetArgument) and (edit.call_id, edit.name) == (call.id, _PARALLEL) for edit in fix.edits
    )
    return max(1, round(use.usable)) if is_set else 1
