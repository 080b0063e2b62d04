"""Counts the processes of this machine that run the same script as this one, such as the trials of a search for hyperparameters.

In: the script or module of this run.  Out: the number of other runs. Only processes of the same user are looked at.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path

import psutil

_WITH_VALUE = "WX"
"""Letters of the interpreter's options that take a value, in the same argument or as the next one."""
_LONG_WITH_VALUE = "--check-hash-based-pycs"


def other_runs(script: Path | None, module: str | None) -> int:
    """Return how many other processes run this script or module under Python.

    A process and those that it forked, which have the same command line, count once. Processes that cannot be read do not count.

    Args:
        script: The absolute path of the script; None if a module is run.
        module: The module that is run with `python -m`; None if a script is.
    """
    own = {os.getpid()}
    with contextlib.suppress(psutil.Error, OSError):
        own |= {process.pid for process in psutil.Process().parents()}
    running = {}
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError, RuntimeError):  # RuntimeError: a loop of links
            if process.pid not in own and process.uids().real == os.getuid() and _runs(process, script, module):
                running[process.pid] = process.ppid()
    return sum(parent not in running for parent in running.values())


def target_of(command: Sequence[str]) -> tuple[str, str]:
    """Return the script and the module, one of them empty, that a Python command line runs; both are if it runs neither."""
    if not command or not Path(command[0]).name.startswith("python"):
        return "", ""
    arguments = iter(command[1:])
    for argument in arguments:
        if argument == "-":
            return "", ""
        if not argument.startswith("-"):
            return argument, ""
        if argument == _LONG_WITH_VALUE:
            next(arguments, "")
        elif not argument.startswith("--"):
            option, value = _last_option(argument)
            if option == "c":
                return "", ""
            if option == "m":
                return "", value or next(arguments, "")
            if option in _WITH_VALUE and not value:
                next(arguments, "")
    return "", ""


def _last_option(argument: str) -> tuple[str, str]:
    """Return the last of the letters in an argument like `-um`, and what follows a letter that takes a value."""
    for place, letter in enumerate(argument[1:], 1):
        if letter in "cm" or letter in _WITH_VALUE:
            return letter, argument[place + 1 :]
    return argument[-1], ""


def _runs(process: psutil.Process, script: Path | None, module: str | None) -> bool:
    named, its_module = target_of(process.cmdline())
    if script is None:
        return bool(module) and its_module == module
    return bool(named) and Path(_folder(process), named).resolve() == script.resolve()


def _folder(process: psutil.Process) -> str | Path:
    """Its working directory; where that cannot be read, as from a private view of the disk, the one of this process."""
    try:
        return process.cwd()
    except (psutil.Error, OSError):
        return Path.cwd()
