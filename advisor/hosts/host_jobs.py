"""The work on the hosts of a run, as functions that an executor runs in another process or on another machine.

In: profile files.  Out: their `MergedHosts`, or the lanes of a host's window.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.graph import analyse_host
from advisor.hosts.merged_hosts import MergedHosts, merge_all, of_failure, of_host
from advisor.model.errors import AdvisorError
from advisor.model.recording import Recording
from advisor.model.text import message_of
from advisor.profile import read_host
from advisor.statistics import damage_of
from advisor.statistics.collect import collect

if TYPE_CHECKING:
    from advisor.model.window_timeline import HostView


def analyse_group(paths: Sequence[Path], first: int, recording: Recording | None) -> MergedHosts:
    """Analyse neighbouring hosts one after the other, so that only one profile is in memory, and merge them.

    Args:
        paths: Their files.
        first: The place of the first one among the files of the run.
        recording: The recording of the run; None if the profile was not captured by the advisor.
    """
    return merge_all(_analyse(path, place, recording) for place, path in enumerate(paths, first))


def _analyse(path: Path, place: int, recording: Recording | None) -> MergedHosts:
    """Analyse one host. The trace is freed before its file is read again for the statistics."""
    try:
        part = analyse_host(read_host(path), recording)
    except AdvisorError as error:
        return of_failure(str(error))
    except MemoryError:
        return of_failure(f"{path} does not fit into the free memory: read it on a larger machine.")
    except Exception as error:  # an unexpected profile, or a mistake of ours, costs no other host
        return of_failure(f"{path} could not be read ({type(error).__name__}: {message_of(error)}).")
    try:
        return of_host(place, part, collect((path,), recording))
    except Exception as error:
        return of_host(place, part, damage=damage_of(error))


def draw(path: Path, budget: int) -> HostView | None:
    """Return the lanes of a host's window; None if it cannot be read, which has caused a warning before.

    Args:
        path: Its file.
        budget: Maximum number of spans, approximately.
    """
    from advisor.profile.host_view import draw_host

    with suppress(AdvisorError, MemoryError):
        return draw_host(read_host(path), budget)
    return None
