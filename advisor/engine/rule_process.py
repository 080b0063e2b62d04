"""A separate process that evaluates users' rules, each within a time limit.

In: `Job`s. Out: for each an `Answer`, or one sentence on a file that cannot be loaded.

The kernel ends the process when a rule exceeds its limit. This also works for loops inside C code and from any thread,
and an `os._exit` or a crash of a rule costs only one row of the report. Shipped rules run in the main process.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from advisor.engine.ask import Answer, ask
from advisor.engine.rule_file import LoadedRule, load_file
from advisor.host.worker_process import WorkerEnded, WorkerNotStarted, WorkerProcess
from advisor.model.errors import AdvisorError
from advisor.model.pipeline import Analysis
from advisor.model.text import message_of
from advisor.model.units import format_ns

_NS_PER_S = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Job:
    """A rule file to load and, if there is an analysis, to evaluate."""

    path: Path
    seconds: float
    import_path: tuple[str, ...]
    thresholds: Mapping[str, Any]
    analysis: Analysis | None = None
    """None to load the file only."""


def try_loading(path: Path, seconds: float) -> None:
    """Load a rule file in the separate process.

    Raises:
        AdvisorError: Loading fails or exceeds the time limit.
    """
    reply = _ask(Job(path, seconds, tuple(sys.path), {}))
    if isinstance(reply, str):
        raise AdvisorError(reply)
    if reply.errors:
        raise AdvisorError(f"The rule file {path} cannot be loaded: it {reply.errors[0]}.")


def ask_apart(loaded: LoadedRule, analysis: Analysis, seconds: float) -> Answer:
    """Evaluate the rule in the separate process.

    Args:
        loaded: The rule, with the thresholds that the settings give it; the process loads its file again.
        analysis: What the rule is asked about; it is pickled.
        seconds: Seconds after which the rule is stopped.

    Returns:
        The rule's answer; if it failed or took too long, one that holds only the error.
    """
    thresholds = {field.name: getattr(loaded.rule, field.name) for field in fields(loaded.rule)}
    reply = _ask(Job(loaded.path, seconds, tuple(sys.path), thresholds, analysis))
    return Answer(errors=(reply,)) if isinstance(reply, str) else reply


_PROCESS = WorkerProcess(signal.SIG_IGN)  # on Ctrl-C, the main process ends it


def _ask(job: Job) -> Answer | str:
    try:
        reply: object = _PROCESS.ask(_work, job)
    except WorkerEnded as ended:
        return Answer(errors=(_why_it_ended(ended.code, job.seconds),))
    except WorkerNotStarted as error:
        return Answer(errors=(f"could not be given a process of its own ({error})",))
    except Exception as error:
        return Answer(errors=(f"failed in its process ({type(error).__name__}: {message_of(error)})",))
    return reply if isinstance(reply, str | Answer) else Answer(errors=("broke the protocol of its process",))


def _why_it_ended(code: int, seconds: float) -> str:
    if hasattr(signal, "SIGALRM") and code == -signal.SIGALRM:
        limit = format_ns(seconds * _NS_PER_S)
        return f"took longer than {limit} and was stopped (rule-seconds in [tool.advisor] sets the limit)"
    return f"ended its process ({'signal' if code < 0 else 'exit code'} {abs(code)})"


_LOADED: dict[Path, LoadedRule] = {}
"""In the separate process: the rules that it has loaded."""


def _work(job: Job) -> Answer | str:
    sys.path[:] = job.import_path
    _set_limit(job.seconds)
    try:
        if job.path not in _LOADED:
            _LOADED[job.path] = load_file(job.path)
        if job.analysis is None:
            return Answer()
        rule = _LOADED[job.path]
        return ask(replace(rule, rule=replace(rule.rule, **job.thresholds)), job.analysis)
    except AdvisorError as error:
        return str(error)
    finally:
        _set_limit(0)


def _set_limit(seconds: float) -> None:
    """Let the kernel end this process after `seconds`; 0 removes the limit. Windows has no such timer."""
    if hasattr(signal, "setitimer"):
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, seconds)
