"""Copies what the analysed run saw to the profile of an edited pipeline.

In: the analysis of the whole script, the run folder of an edited pipeline.  Out: the same folder, with its recording completed.

While the script is held at its first element, nothing changes its variables, tables and files, so that recording contains no
observations; those of the first run apply to the edited pipeline too. So does what is known of elements that an edit keeps as
they are, although the calls that told it may be gone, and that the training passes over its data only once: here they are read
again and again.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

from advisor.model.calls import Call, Site
from advisor.model.codec import decode, encode
from advisor.model.pipeline import Analysis
from advisor.model.recording import Recording
from advisor.model.run_folder import RECORDING_NAME, write_whole
from advisor.predict import is_read_again, makes_full_windows
from advisor.predict.passes_over_data import horizon


def with_state_of(first: Analysis, folder: Path) -> Path:
    """Complete the recording in `folder` and return the folder.

    The calls that the script makes only after its first element are added too: a change of their text changes their datasets.
    Where the two runs number their calls differently, nothing is carried over: unknown state forbids or asks.
    """
    file = folder / RECORDING_NAME
    if first.recording is None or not file.is_file():
        return folder
    recording = decode(file.read_bytes(), Recording, str(file))
    if _is_read_once(first):
        recording = replace(recording, is_read_once=True)
        write_whole(file, encode(recording))
    if first.recording.state is None:
        return folder
    before, now = ({call.id: call for call in calls} for calls in (first.calls, recording.calls))
    common = before.keys() & now.keys()
    if common and all(_place(before[call_id]) == _place(now[call_id]) for call_id in common):
        later = tuple(call for call in _later(first.calls, common) if call.id not in now)
        completed = replace(
            recording,
            state=first.recording.state,
            generators=first.recording.generators,
            python_calls=first.recording.python_calls,
            full_windows=tuple(call.id for call in first.calls if makes_full_windows(first, call)),
            calls=(*recording.calls, *later),
        )
        write_whole(file, encode(completed))
    return folder


def _is_read_once(first: Analysis) -> bool:
    """Whether the training was seen to read its data in one pass, and its loops make no other one."""
    if first.main is None or is_read_again(first, first.main):
        return False
    passes = horizon(first, first.main).passes
    return passes is not None and passes <= 1


def _place(call: Call) -> tuple[str, Site | None]:
    return call.method, call.site


def _later(calls: Sequence[Call], known: Collection[str]) -> Sequence[Call]:
    """The calls after the last one that both runs made. What is missing before it was taken out by an edit."""
    last = max(number for number, call in enumerate(calls) if call.id in known)
    return calls[last + 1 :]
