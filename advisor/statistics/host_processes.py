"""Several hosts read at once, each share of them in a process of its own.

In: profile files.  Out: `Collected`, the same as `collect` makes of them.

Plain child processes and not `multiprocessing`: that would import the user's own script again in every one of them.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from pathlib import Path
from typing import cast

from advisor.host.machine import usable_cores
from advisor.model.locations import is_remote
from advisor.model.recording import Recording
from advisor.profile.profile_files import unpacked_size
from advisor.statistics.collect import Collected, collect

MIN_BYTES = 8 << 20
"""A process takes as long to start as a profile of a few MB takes to read."""
MAX_BYTES_AT_ONCE = 64 << 20
"""Files that are read at the same time are together no larger than this, or than the largest single one."""


def collect_in_processes(paths: Sequence[Path], recording: Recording | None) -> Collected:
    """Collect all hosts, in as many processes as there are cores; in this one where that is as fast. Hosts have their names."""
    sizes = [unpacked_size(path) for path in paths]
    shares = _shares(sizes, min(_at_once(sizes), max(1, int(usable_cores()))))
    if len(shares) < 2 or sum(sizes) < MIN_BYTES or any(is_remote(path) for path in paths):
        found = collect(paths, recording)
    else:
        found = Collected()
        with ThreadPoolExecutor(len(shares)) as threads:
            for part in threads.map(_collect_there, [paths[share] for share in shares], repeat(recording)):
                found.merge(part)
    found.call_hosts_by_name()
    return found


def _at_once(sizes: Sequence[int]) -> int:
    """How many files may be open at the same time, be they the largest ones."""
    limit, number = max(*sizes, MAX_BYTES_AT_ONCE, 0), 0
    for size in sorted(sizes, reverse=True):
        limit -= size
        if limit < 0:
            break
        number += 1
    return max(1, number)


def _shares(sizes: Sequence[int], most: int) -> list[slice]:
    """Neighbours together, in at most so many shares of about the same size."""
    shares: list[slice] = []
    first, done, whole = 0, 0, sum(sizes)
    for place, size in enumerate(sizes, 1):
        done += size
        if done * most >= whole * (len(shares) + 1) or place == len(sizes):
            shares.append(slice(first, place))
            first = place
    return [share for share in shares if share.stop > share.start]


def _collect_there(paths: Sequence[Path], recording: Recording | None) -> Collected:
    """`collect` in a child process; in this one if that process cannot do it."""
    root = str(Path(__file__).parents[2])
    search = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
    try:
        done = subprocess.run(
            [
                sys.executable,
                "-P",
                "-c",
                f"from {__name__} import serve; serve()",
            ],  # -P: a `numpy.py` here is not NumPy
            input=pickle.dumps((list(paths), recording)),
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(search), "OPENBLAS_NUM_THREADS": "1"},
            check=True,
        )
        return cast(Collected, pickle.loads(done.stdout))
    except subprocess.CalledProcessError as error:
        if error.returncode == -signal.SIGINT:  # this process ends as well
            return Collected()
        return collect(paths, recording)
    except (OSError, EOFError, pickle.UnpicklingError):
        return collect(paths, recording)


def serve() -> None:
    """Answer one request on stdin. What a library prints goes to stderr: stdout belongs to the answer."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends it without a word
    answer = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    paths, recording = pickle.load(sys.stdin.buffer)
    pickle.dump(collect(paths, recording), answer)
    answer.close()
