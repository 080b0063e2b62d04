"""Copies the observed state changes of the analysed run to the profile of an edited pipeline.

In: the analysis of the whole script, the run folder of an edited pipeline.  Out: the same folder, with its recording completed.

While the script is held at its first element, nothing changes its variables, tables and files, so that recording contains no
observations; those of the first run apply to the edited pipeline too.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from advisor.model.codec import decode, encode
from advisor.model.pipeline import Analysis
from advisor.model.recording import Recording
from advisor.model.run_folder import RECORDING_NAME, write_whole


def with_state_of(first: Analysis, folder: Path) -> Path:
    """Complete the recording in `folder` and return the folder.

    If the two runs number their calls differently, nothing is copied, and the state counts as unknown.
    """
    observed = first.recording.state if first.recording is not None else None
    file = folder / RECORDING_NAME
    if observed is None or not file.is_file():
        return folder
    recording = decode(file.read_bytes(), Recording, str(file))
    before, now = ({call.id: (call.method, call.site) for call in calls} for calls in (first.calls, recording.calls))
    if all(now.get(call_id, place) == place for call_id, place in before.items()):
        write_whole(file, encode(replace(recording, state=observed)))
    return folder
