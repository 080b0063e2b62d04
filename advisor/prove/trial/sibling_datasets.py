"""Finds the other datasets that a fix changes: a line that creates the training dataset may create the validation dataset too.

In: the recorded calls, the dataset under test, and the edits of all calls that the same text makes
(`advisor.rewrite.shared_calls.spread`).  Out: `SiblingDataset`s: existing datasets of the script that depend on an edited call
and are not part of the dataset under test.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import networkx as nx

from advisor.capture.instrument.recorder import Recorder
from advisor.model.edits import Edit, MoveAfter
from advisor.replay.upstream import replayed_calls
from advisor.rewrite.shared_calls import MAX_JUDGED

MAX_SIBLINGS = MAX_JUDGED - 1
"""Maximum number of siblings to compare; the dataset under test counts as one of MAX_JUDGED."""


@dataclass(frozen=True, slots=True)
class SiblingDataset:
    """Another dataset that the edits change."""

    call_id: str
    """The last call of its pipeline."""
    edits: tuple[Edit, ...]
    """The edits that affect it."""
    name: str
    """For messages: `the dataset of batch at line 12`."""


def sibling_datasets(recorder: Recorder, call_id: str, edits: Sequence[Edit]) -> list[SiblingDataset]:
    """Return the datasets other than that of `call_id` that the edits change, at most `MAX_SIBLINGS`.

    Args:
        recorder: A closed recorder.
        call_id: The call that made the dataset under trial.
        edits: Edits with the call ids of this recorder.
    """
    own = upstream_ids(recorder, call_id)
    siblings = []
    for last in filter(None, map(recorder.call, leaf_datasets(recorder, call_id))):
        upstream = upstream_ids(recorder, last.id)
        own_edits = tuple(edit for edit in edits if _ids(edit) <= upstream)
        if any(not _ids(edit) <= own for edit in own_edits):
            where = f" at line {last.site.line}" if last.site is not None else ""
            siblings.append(SiblingDataset(last.id, own_edits, f"the dataset of {last.method}{where}"))
    return siblings[:MAX_SIBLINGS]


def leaf_datasets(recorder: Recorder, call_id: str) -> list[str]:
    """Return the ids of the calls whose datasets are no input of another call, without those upstream of `call_id`."""
    assert recorder.replay_log is not None
    logged = recorder.replay_log.calls
    calls = [call for call in recorder.calls() if call.id in logged and logged[call.id].parent not in logged]
    used = {input_id for call in calls for input_id in call.inputs}
    own = upstream_ids(recorder, call_id)
    return [call.id for call in calls if call.id not in used and call.id not in own]


def upstream_ids(recorder: Recorder, call_id: str) -> set[str]:
    """Return the ids of the call and of all calls it depends on, including those inside functions."""
    assert recorder.replay_log is not None
    graph = replayed_calls(recorder, recorder.replay_log)
    return {call_id, *(nx.ancestors(graph, call_id) if call_id in graph else ())}


def _ids(edit: Edit) -> set[str]:
    return {edit.call_id, edit.after_id} if isinstance(edit, MoveAfter) else {edit.call_id}
