"""Reads groups of hosts in parallel processes.

In: profile files.  Out: `Collected`, the same as from `collect`.
"""

from __future__ import annotations

import signal
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from pathlib import Path
from typing import cast

from advisor.host import worker_process
from advisor.host.machine import usable_cores
from advisor.host.worker_process import WorkerEnded, WorkerProcess
from advisor.model.locations import is_remote
from advisor.model.recording import Recording
from advisor.profile.profile_files import unpacked_size
from advisor.statistics.collect import Collected, collect

MIN_BYTES = 8 << 20
"""Minimum total size for several processes: starting one takes as long as reading a profile of a few MB."""
MAX_BYTES_AT_ONCE = 64 << 20
"""Maximum total size of the files that are read at the same time, unless a single file is larger."""


def collect_in_processes(paths: Sequence[Path], recording: Recording | None) -> Collected:
    """Collect all hosts in parallel processes, or in this process if that is as fast. The result uses host names."""
    sizes = [unpacked_size(path) for path in paths]
    shares = _shares(sizes, min(_at_once(sizes), max(1, int(usable_cores()))))
    if len(shares) < 2 or sum(sizes) < MIN_BYTES or any(is_remote(path) for path in paths):
        collected = collect(paths, recording)
    else:
        collected = Collected()
        with ThreadPoolExecutor(len(shares)) as threads:
            for part in threads.map(_collect_there, [paths[share] for share in shares], repeat(recording)):
                collected.merge(part)
    collected.call_hosts_by_name()
    return collected


def _at_once(sizes: Sequence[int]) -> int:
    """Maximum number of files to read at the same time, even if they are the largest ones."""
    limit, number = max(*sizes, MAX_BYTES_AT_ONCE, 0), 0
    for size in sorted(sizes, reverse=True):
        limit -= size
        if limit < 0:
            break
        number += 1
    return max(1, number)


def _shares(sizes: Sequence[int], most: int) -> list[slice]:
    """Divide the paths into at most this many groups of neighbours of similar size."""
    shares: list[slice] = []
    first, done, whole = 0, 0, sum(sizes)
    for place, size in enumerate(sizes, 1):
        done += size
        if done * most >= whole * (len(shares) + 1) or place == len(sizes):
            shares.append(slice(first, place))
            first = place
    return [share for share in shares if share.stop > share.start]


def _collect_there(paths: Sequence[Path], recording: Recording | None) -> Collected:
    """Run `collect` in a child process, or in this one if the child fails."""
    process = WorkerProcess(__name__)
    try:
        return cast(Collected, process.ask((list(paths), recording)))
    except WorkerEnded as ended:
        if ended.code == -signal.SIGINT:  # this process ends as well
            return Collected()
    except OSError:
        pass
    finally:
        process.close()
    return collect(paths, recording)


def serve() -> None:
    """Answer requests in the process. Ctrl-C ends it without a message."""
    worker_process.serve(lambda job: collect(*job), signal.SIG_DFL)
