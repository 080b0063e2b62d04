"""Names the datasets that a change of the text concerns, and that the analysed training does not read.

In: an `Analysis` and one of its calls.  Out: words for people.
"""

from __future__ import annotations

from pathlib import PurePath

from advisor.model.calls import Call, Site
from advisor.model.pipeline import Analysis
from advisor.predict.call_index import graph_of


def dataset_name(analysis: Analysis, call: Call) -> str:
    """The dataset that the call belongs to: `the dataset that train.py:40 reads`, else by the last call that makes it."""
    graph = graph_of(analysis)
    fed = {call.id, *graph.downstream(call)}
    for consumer in analysis.recording.consumers if analysis.recording is not None else ():
        if consumer.site is not None and consumer.call_id in fed:
            return f"the dataset that {_place(consumer.site)} reads"
    last = graph.end_of(call)
    where = f" at {_place(last.site)}" if last.site is not None else ""
    return f"another dataset, which ends with {last.method}{where}"


def _place(site: Site) -> str:
    return f"{PurePath(site.file.replace(chr(92), '/')).name}:{site.line}"
