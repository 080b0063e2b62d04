"""Runs git commands that only read.

In: a folder and a command.  Out: its output, or one sentence on what failed.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from advisor.model.errors import AdvisorError

_TIMEOUT_S = 120
"""A partial clone fetches the texts from its remote."""


class GitFailed(AdvisorError):
    """git ended with an error, which the message quotes."""


def git_output(folder: Path, *arguments: str, option: str = "--against") -> bytes:
    """Return the output of a git command that only reads.

    Args:
        folder: The folder in which it runs.
        *arguments: The command.
        option: The option of `advisor` that needs git, for messages.

    Raises:
        AdvisorError: git is not installed.
        GitFailed: It failed.
    """
    command: Sequence[str] = ("git", "-c", "core.quotePath=false", "-C", str(folder), *arguments)
    # without optional locks, git does not refresh the index
    environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
    try:
        done = subprocess.run(
            command, capture_output=True, stdin=subprocess.DEVNULL, env=environment, timeout=_TIMEOUT_S, check=False
        )
    except FileNotFoundError:
        raise AdvisorError(f"{option} needs git, which is not installed: install it, or leave {option} out.") from None
    except subprocess.TimeoutExpired:
        raise AdvisorError(f"git {arguments[0]} took more than {_TIMEOUT_S} s in {folder}: try it by hand.") from None
    if done.returncode:
        reason = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise GitFailed(
            f"git {arguments[0]} failed in {folder}: {reason[-1] if reason else f'exit code {done.returncode}'}; {option} "
            "needs a git repository that contains the script."
        )
    return done.stdout
