"""Names calls and the limits of a pipeline in a sentence."""

from __future__ import annotations

from pathlib import PurePath

from advisor.model.calls import Call
from advisor.model.outlook import Limit
from advisor.model.pipeline import Pipeline

_NAMES = {
    "consumer": "the consumer itself is",
    "cpu": "the cores are",
    "gil": "the GIL is",
    "disk": "the disk is",
}


def call_and_line(call: Call) -> str:
    """Return `map(decode) (train.py:17)`, or less if the function has no name or the line is unknown."""
    function = f"({call.function.name})" if call.function is not None and call.function.name else ""
    site = call.site
    where = f" ({PurePath(site.file.replace(chr(92), '/')).name}:{site.line})" if site is not None else ""
    return f"{call.method}{function}{where}"


def name_of_limit(pipeline: Pipeline, limit: Limit) -> str:
    """Return the beginning of a clause, such as `the cores are` or `map (as ParallelMapV2) is`.

    Args:
        pipeline: The pipeline to which the iterator of the limit belongs.
        limit: What bounds the step time: an iterator, or a resource of the machine.
    """
    if limit.iterator_id is None:
        return _NAMES[limit.resource]
    iterator = pipeline.iterator(limit.iterator_id)
    call = iterator.main_call
    return f"{call.method} (as {iterator.name}) is" if call is not None else f"{iterator.name} is"
