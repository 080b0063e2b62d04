"""The fix that lets maps run in parallel.

In: calls of `map`.  Out: `Fix`, or None.
"""

from __future__ import annotations

from collections.abc import Sequence

from advisor.model.calls import Call
from advisor.model.edits import Code, SetArgument
from advisor.model.finding import Fix, Safety
from advisor.predict.determinism import parallel_safety
from advisor.predict.editable_calls import is_editable

_AUTOTUNE = Code("tf.data.AUTOTUNE")


def parallel_fix(calls: Sequence[Call]) -> Fix | None:
    """Return the fix that sets `num_parallel_calls=tf.data.AUTOTUNE` in these maps.

    `advisor fix` tries it unasked even if the lower bound of the prediction is no gain: whether a second thread helps a map of
    about 60 us per element cannot be predicted [measured: 1.04x (0.97 to 1.23), predicted: 1.25x (1.00 to 1.63)], and the proof
    decides. It does not if one of the maps runs Python code: only the author knows whether that is safe to run concurrently.

    Args:
        calls: The maps.

    Returns:
        The fix; None if one of the maps is not in the user's code.
    """
    if not all(is_editable(call) for call in calls):
        return None
    edits = tuple(SetArgument(call.id, "num_parallel_calls", _AUTOTUNE) for call in calls)
    safety = max((parallel_safety(call) for call in calls), key=list(Safety).index)
    has_python = any(call.function is not None and call.function.python_ops for call in calls)
    return Fix(edits, safety, is_auto=not has_python)
