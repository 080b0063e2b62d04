"""Reads the recording of a run folder, within the limits for files from strangers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from advisor.model.errors import AdvisorError
from advisor.model.locations import is_remote, reading
from advisor.model.regular_files import read_regular
from advisor.model.run_folder import RECORDING_NAME

if TYPE_CHECKING:
    from advisor.model.recording import Recording


def read_recording(path: Path) -> Recording | None:
    """Read the recording of a run folder; None if the folder has none.

    Raises:
        AdvisorError: The recording cannot be read or is invalid.
    """
    from advisor.graph.recorded_calls import check_calls
    from advisor.model.codec import decode
    from advisor.model.recording import Recording

    file = path / RECORDING_NAME
    try:
        with reading(file):
            if not file.exists():
                return None
            if not file.is_file():
                raise AdvisorError(f"{file} is not a regular file: name a run folder written by `advisor`.")
    except OSError as error:  # a folder without search permission
        raise AdvisorError(f"{path} cannot be read ({error.strerror}).") from None
    try:
        with reading(file):
            data = file.read_bytes() if is_remote(file) else read_regular(file)
    except OSError as error:
        raise AdvisorError(f"{file} cannot be read ({error.strerror}).") from None
    recording = decode(data, Recording, str(file))
    check_calls(recording, str(file))
    return recording
