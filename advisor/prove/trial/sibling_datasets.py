"""The other datasets that a fix changes: a line that makes the training's dataset may make the validation's too.

In: the recorded calls, the dataset that is judged, edits of all calls that the same text makes (`fixes.sharing.spread`).
Out: `Companion`s: datasets of the script that exist by now, come from an edited call and are no part of the judged one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from advisor.capture.instrument.recorder import Recorder
from advisor.model.finding import Edit, MoveAfter
from advisor.rewrite.shared_calls import MAX_JUDGED

MAX_COMPANIONS = MAX_JUDGED - 1


@dataclass(frozen=True, slots=True)
class Companion:
    """One other dataset."""

    call_id: str
    """The last call that makes it."""
    edits: tuple[Edit, ...]
    """Those of the edits that concern it."""
    name: str
    """For people: `the dataset of batch at line 12`."""


def companions(recorder: Recorder, call_id: str, edits: Sequence[Edit]) -> list[Companion]:
    """The datasets besides that of `call_id` that the edits change, at most `MAX_COMPANIONS`."""
    assert recorder.kept is not None
    kept = recorder.kept.calls
    calls = [call for call in recorder.calls() if call.id in kept and kept[call.id].parent not in kept]
    used = {each for call in calls for each in call.inputs}
    own = _upstream(recorder, call_id)
    found = []
    for last in (call for call in calls if call.id not in used and call.id not in own):
        upstream = _upstream(recorder, last.id)
        touching = tuple(each for each in edits if _ids(each) <= upstream)
        if any(not _ids(each) <= own for each in touching):
            where = f" at line {last.site.line}" if last.site is not None else ""
            found.append(Companion(last.id, touching, f"the dataset of {last.method}{where}"))
    return found[:MAX_COMPANIONS]


def _upstream(recorder: Recorder, call_id: str) -> set[str]:
    """Ids of the call and of all that it comes from, what is made inside their functions included."""
    assert recorder.kept is not None
    todo, seen = [call_id], {call_id}
    while todo:
        current = todo.pop()
        call = recorder.call(current)
        inner = [each for each, _ in recorder.kept.inner.get(current, ())]
        for each in (*(call.inputs if call is not None else ()), *inner):
            if each not in seen:
                seen.add(each)
                todo.append(each)
    return seen


def _ids(edit: Edit) -> set[str]:
    return {edit.call_id, edit.after_id} if isinstance(edit, MoveAfter) else {edit.call_id}
