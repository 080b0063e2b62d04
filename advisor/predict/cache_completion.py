"""Whether a cache is ever complete: a pass that ends early discards what it has stored.

In: an `Analysis`, a pipeline and recorded calls.  Out: yes or no.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from advisor.host.calibration.prediction import WHOLE_EPOCH_SHARE
from advisor.model.calls import Call
from advisor.model.pipeline import Analysis, Pipeline
from advisor.predict.cache_size import steps_per_epoch

_KEEPING_COUNT = ("map", "prefetch", "with_options", "shuffle", "enumerate")
"""Methods that return as many elements as they receive."""


def leaves_early(analysis: Analysis, pipeline: Pipeline, consumed: Call) -> bool:
    """Whether the consumer leaves epochs before their end; an incomplete cache is discarded each time.

    Args:
        analysis: The run.
        pipeline: The executed pipeline that the consumer reads.
        consumed: The call whose dataset the consumer reads; its cardinality is the length of an epoch.
    """
    steps, whole = steps_per_epoch(analysis, pipeline), consumed.cardinality or 0
    return steps is not None and whole > 0 and steps < WHOLE_EPOCH_SHARE.value * whole


def is_cut(call: Call, below: Sequence[Call]) -> bool:
    """Whether a downstream call takes only a part of the elements of `call`, so that a cache is never completed.

    Args:
        call: The call after which a cache would be.
        below: The calls between it and the consumer, which is where a `take` or a `zip` cuts.
    """
    fed = {call.id, *(other.id for other in below)}
    by_id = {other.id: other for other in (call, *below)}
    for other in below:
        if other.method == "take_while" or (other.method == "take" and not _takes_a_whole_pass(other, by_id)):
            return True
        if len(other.inputs) > 1 and other.method != "concatenate":
            is_whole = other.method == "zip" and other.cardinality is not None and other.cardinality == call.cardinality
            if not (
                is_whole and (other.cardinality or 0) > 0 and sum(input_id in fed for input_id in other.inputs) == 1
            ):
                return True
    return False


def _takes_a_whole_pass(take: Call, by_id: Mapping[str, Call]) -> bool:
    """Whether a `take` asks for more than one pass over the calls before it, so that their first pass reaches its end.

    As many elements as there are do not suffice: `take` ends without asking for the end of its input.
    """
    count, node = take.arguments.get("count"), by_id.get(take.inputs[0]) if take.inputs else None
    if count == -1:
        return True
    while node is not None and node.method in _KEEPING_COUNT and len(node.inputs) == 1:
        node = by_id.get(node.inputs[0])
    if node is not None and node.method == "repeat" and node.inputs:
        node = by_id.get(node.inputs[0])
    elements = node.cardinality if node is not None else None
    return isinstance(count, int) and elements is not None and 0 <= elements < count
