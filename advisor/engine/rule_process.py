"""A separate process that evaluates users' rules, each within a time limit.

In: pickled jobs on stdin. Out: for each job a pickled `Answer`, or one sentence on a file that cannot be loaded, on
stdout.

The kernel ends the process when a rule exceeds its limit. This also works for loops inside C code and from any thread,
and an `os._exit` or a crash of a rule costs only one row of the report. Shipped rules run in the main process.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import IO, Any

from advisor.engine.ask import Answer, ask
from advisor.engine.loader import LoadedRule, load_file
from advisor.model.errors import AdvisorError
from advisor.model.pipeline import Analysis
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
    reply = _PROCESS.work(Job(path, seconds, tuple(sys.path), {}))
    if isinstance(reply, str):
        raise AdvisorError(reply)
    if reply.errors:
        raise AdvisorError(f"The rule file {path} cannot be loaded: it {reply.errors[0]}.")


def ask_apart(loaded: LoadedRule, analysis: Analysis, seconds: float) -> Answer:
    """Evaluate the rule in the separate process."""
    thresholds = {field.name: getattr(loaded.rule, field.name) for field in fields(loaded.rule)}
    reply = _PROCESS.work(Job(loaded.path, seconds, tuple(sys.path), thresholds, analysis))
    return Answer(errors=(reply,)) if isinstance(reply, str) else reply


class _RuleProcess:
    """The separate process; started on first use, and again after a rule has ended it."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def work(self, job: Job) -> Answer | str:
        process = self._process or self._start()
        self._process = process
        try:
            pickle.dump(job, _pipe(process.stdin))
            _pipe(process.stdin).flush()
            reply = pickle.load(_pipe(process.stdout))
        except (OSError, EOFError, pickle.UnpicklingError, AttributeError, ImportError):
            code = process.wait()
            self.close()
            return Answer(errors=(_why_it_ended(code, job.seconds),))
        except BaseException:  # Ctrl-C: a late answer must not be read as that of the next job
            self.close()
            raise
        return reply if isinstance(reply, str | Answer) else Answer(errors=("broke the protocol of its process",))

    def close(self) -> None:
        """Kill the process."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()

    def _start(self) -> subprocess.Popen[bytes]:
        root = str(Path(__file__).parents[2])
        paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
        atexit.register(self.close)
        # -P: a `numpy.py` in the current folder is not NumPy; -c: the user's own script is not imported again
        return subprocess.Popen(
            [sys.executable, "-P", "-c", f"from {__name__} import serve; serve()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OPENBLAS_NUM_THREADS": "1"},
        )


_PROCESS = _RuleProcess()


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None
    return pipe


def _why_it_ended(code: int, seconds: float) -> str:
    if hasattr(signal, "SIGALRM") and code == -signal.SIGALRM:
        limit = format_ns(seconds * _NS_PER_S)
        return f"took longer than {limit} and was stopped (rule-seconds in [tool.advisor] sets the limit)"
    return f"ended its process ({'signal' if code < 0 else 'exit code'} {abs(code)})"


def serve() -> None:
    """Answer jobs until stdin ends. Output printed by rules goes to stderr, because stdout carries the answers."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the main process ends this one
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    jobs = os.fdopen(os.dup(sys.stdin.fileno()), "rb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, sys.stdin.fileno())  # a rule that reads stdin must not consume jobs
    loaded: dict[Path, LoadedRule] = {}
    while True:
        try:
            job = pickle.load(jobs)
        except EOFError:
            return
        reply = _work(job, loaded)
        sys.stdout.flush()
        pickle.dump(reply, answers)
        answers.flush()


def _work(job: Job, loaded: dict[Path, LoadedRule]) -> Answer | str:
    sys.path[:] = job.import_path
    _set_limit(job.seconds)
    try:
        if job.path not in loaded:
            loaded[job.path] = load_file(job.path)
        if job.analysis is None:
            return Answer()
        rule = loaded[job.path]
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
