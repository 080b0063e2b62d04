"""One trap at one level: what `advisor fix` writes into it, and whether the invariant holds afterwards.

In: a `Trap`, a level, the executable of an advisor.  Out: `Row`s.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tests.traps.catalogue import ALL, HELPER, MODULES, Trap, allowed_by, harmed_keys

HERE = Path(__file__).parent
RUN_S = 600.0
"""Longest run of a script: seconds on an idle machine."""
OVERRUN_S = 600.0
"""How much longer than its budget `advisor fix` may take before it is taken to hang."""
WINDOW = ("--steps", "20", "--warmup", "5")

_FAILURES = ("exit code", "did not end", "no re", "AdvisorError", "ScriptFailed")
"""How the note of a run begins that says nothing."""

Invariant = dict[str, Any]


class ScriptFails(Exception):
    """The script failed or printed no invariant."""


@dataclass(frozen=True, slots=True)
class Tool:
    """The advisor that is judged, and how."""

    advisor: Path
    """Its executable; the Python beside it runs the scripts."""
    budget_s: float = 60.0
    is_regardless_of_speed: bool = False
    """Whatever the planner tries and the equivalence check lets pass is applied, however fast it is."""
    only: tuple[str, ...] = ()
    """Rules asked for by name."""

    @property
    def python(self) -> Path:
        """The interpreter that belongs to the executable."""
        return self.advisor.parent / "python"


@dataclass(frozen=True, slots=True)
class Written:
    """What a fix run did to the script."""

    text: str | None
    """The script's new text; None: nothing was written."""
    fixes: tuple[str, ...] = ()
    steps: tuple[tuple[str, str], ...] = ()
    """(fix, the script's text with this one and those kept before it), where several were written together."""
    safeties: frozenset[str] = frozenset()
    """What the fixes that were found claim to do to the data, and those that were tried: one that is exact may round otherwise if
    that is allowed."""
    note: str = ""
    modules: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """A text of the script -> the modules beside it that were changed with it: name -> text."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table."""

    trap: str
    topic: str
    level: str
    fixes: tuple[str, ...] = ()
    harmed: tuple[str, ...] = ()
    """Keys of the invariant that had to hold and do not; with the fix in front where it is one of several."""
    seconds: float = 0.0
    note: str = ""
    is_failed: bool = False
    """The trap could not be judged."""


class Scripts:
    """Runs scripts to their end, in processes forked from one that has imported TensorFlow. Use as a context manager."""

    def __init__(self, python: Path) -> None:
        self._python, self._servers = python, threading.local()
        self._all: list[subprocess.Popen[str]] = []

    def __enter__(self) -> Scripts:
        return self

    def __exit__(self, *args: object) -> None:
        for server in self._all:
            if server.stdin is not None:
                server.stdin.close()
            server.wait()

    def invariant(self, trap: Trap, text: str, modules: Mapping[str, str] = MappingProxyType({})) -> Invariant:
        """What the trap's script prints with this text, run in a fresh folder. Raises ScriptFails."""
        with folder_of(trap, text, modules) as script:
            reply = self._ask(script)
        lines = [line for line in reply["output"].splitlines() if line.startswith("INVARIANT ")]
        if not reply["ok"] or not lines:
            raise ScriptFails(reply["output"].strip().splitlines()[-1] if reply["output"].strip() else "no output")
        invariant: Invariant = json.loads(lines[-1].removeprefix("INVARIANT "))
        return invariant

    def _ask(self, script: Path) -> dict[str, Any]:
        server = getattr(self._servers, "server", None)
        if server is None:  # one for each thread
            server = subprocess.Popen(
                [str(self._python), str(HERE / "forking.py")],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                env=environment(),
            )
            self._servers.server = server
            self._all.append(server)
        server.stdin.write(json.dumps({"script": str(script), "seconds": RUN_S}) + "\n")
        server.stdin.flush()
        line = server.stdout.readline()
        if not line:
            raise ScriptFails("the process that runs the scripts has ended")
        reply: dict[str, Any] = json.loads(line)
        return reply


@contextmanager
def folder_of(trap: Trap, text: str, modules: Mapping[str, str] = MappingProxyType({})) -> Iterator[Path]:
    """The script with this text in a fresh folder, with its helper and the modules that scripts import, some of them changed."""
    with tempfile.TemporaryDirectory(prefix="trap-") as folder:
        for helper in (HELPER, *sorted(MODULES.glob("*.py"))):
            shutil.copy(helper, folder)
        script = Path(folder) / trap.path.name
        script.write_text(text, encoding="utf-8")
        for name, changed in modules.items():
            (script.parent / name).write_text(changed, encoding="utf-8")
        yield script


def environment() -> dict[str, str]:
    """That of this process, without what would make another version import this one."""
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    return {**kept, "TF_CPP_MIN_LOG_LEVEL": "3"}


def fix(tool: Tool, trap: Trap, level: str) -> Written:
    """Let the tool fix a copy of the script."""
    with folder_of(trap, trap.text()) as script:
        return _regardless(tool, trap, script, level) if tool.is_regardless_of_speed else _plain(tool, script, level)


def _plain(tool: Tool, script: Path, level: str) -> Written:
    result = script.parent / "out" / "report.json"
    result.parent.mkdir()
    before = script.read_text(encoding="utf-8")
    command = [str(tool.advisor), "fix", "--write", "--quiet", "--budget", f"{tool.budget_s:.0f}", *WINDOW]
    command += ["--json", str(result), "--out", str(script.parent / "run"), *_choices(tool, level), script.name]
    note = _call(command, script.parent, tool.budget_s)
    if note or not result.exists():
        return Written(None, note=note or "no report")
    report = json.loads(result.read_text(encoding="utf-8"))
    after = script.read_text(encoding="utf-8")
    fixes = tuple(f"{fix['rule']} ({fix['safety_claimed']})" for fix in report["fixes"] if fix["applied"])
    tried = {fix["safety_claimed"] for fix in report["fixes"]}
    safeties = frozenset({finding["safety"] for finding in report["findings"] if finding["safety"]} | tried)
    if after != before:
        names = [module.name for module in MODULES.glob("*.py")]
        beside = {name: (script.parent / name).read_text(encoding="utf-8") for name in names}
        return Written(after, fixes, safeties=safeties, modules={after: beside})
    return Written(None, safeties=safeties, note=(report["proof"] or {}).get("sentence", ""))


def _regardless(tool: Tool, trap: Trap, script: Path, level: str) -> Written:
    result = script.parent / "result.json"
    command = [str(tool.python), str(HERE / "regardless_of_speed.py"), str(script), str(result)]
    note = _call([*command, *_choices(tool, level)], script.parent, 1800.0)
    if note or not result.exists():
        return Written(None, note=note or "no result")
    written = json.loads(result.read_text(encoding="utf-8"))
    if written["error"]:
        return Written(None, note=written["error"])
    applied = tuple(f"{fix['rule']} ({fix['safety']})" for fix in written["fixes"] if fix["applied"])
    refused = tuple(f"{fix['rule']}: {fix['note']}" for fix in written["fixes"] if fix["verdict"] == "broken")
    name, modules = trap.path.name, dict[str, dict[str, str]]()
    for texts in (written["together"], *(step["texts"] for step in written["steps"])):
        modules[texts.get(name, trap.text())] = {other: text for other, text in texts.items() if other != name}
    steps = tuple((step["rule"], step["texts"].get(name, trap.text())) for step in written["steps"] if step["texts"])
    text = written["together"].get(name, trap.text()) if written["together"] else None
    note = "; ".join(refused) or ("" if text else written["sentence"])
    safeties = frozenset(written["safeties"]) | {fix["safety"] for fix in written["fixes"]}
    return Written(text, applied if text else (), steps, safeties, note, modules)


def _choices(tool: Tool, level: str) -> list[str]:
    allowed = [part for name in allowed_by(level) for part in ("--allow", name)]
    return allowed + [part for rule in tool.only for part in ("--only", rule)]


def _call(command: Sequence[str], folder: Path, budget_s: float) -> str:
    """Run it; why it failed, in a line, or nothing."""
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            capture_output=True,
            text=True,
            env=environment(),
            timeout=budget_s + OVERRUN_S,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        return f"did not end within {budget_s + OVERRUN_S:.0f} s"
    if not done.returncode:
        return ""
    lines = done.stderr.strip().splitlines()
    return f"exit code {done.returncode}: {lines[-1] if lines else ''}"


def judge(tool: Tool, scripts: Scripts, trap: Trap, levels: Sequence[str], is_nested: bool) -> list[Row]:
    """A row for each level.

    `is_nested`: every level is allowed first; if nothing is written then, nothing is written with less allowed. A run depends on
    what is allowed only where a fix was found that claims just that, so levels that permit the same of what a run has found need
    no runs of their own.
    """
    began = time.monotonic()
    try:
        before = scripts.invariant(trap, trap.text())
    except ScriptFails as error:
        return [Row(trap.name, trap.topic, level, note=f"fails as it is: {error}", is_failed=True) for level in levels]
    judging = _Judging(tool, scripts, trap, before)
    if not is_nested:
        return [judging.fixed(level) for level in levels]
    runs = [(ALL, fix(tool, trap, ALL))]
    rows = []
    for level in levels:
        written = runs[0][1] if runs[0][1].text is None else equal_run(level, runs)
        if written is None:
            written = fix(tool, trap, level)
            runs.append((level, written))
        rows.append(judging.row(level, written))
    seconds = time.monotonic() - began
    return [replace(row, seconds=seconds / len(rows)) for row in rows]


def equal_run(level: str, runs: Sequence[tuple[str, Written]]) -> Written | None:
    """A run that a run of this level could not differ from; None: there is none among `runs`."""
    for other, written in runs:
        permitted, wanted = (frozenset(allowed_by(name)) & written.safeties for name in (other, level))
        if permitted == wanted and not written.note.startswith(_FAILURES):
            return written
    return None


class _Judging:
    """Runs each text once."""

    def __init__(self, tool: Tool, scripts: Scripts, trap: Trap, before: Invariant) -> None:
        self._tool, self._scripts, self._trap, self._before = tool, scripts, trap, before
        self._after: dict[str, Invariant | str] = {}

    def fixed(self, level: str) -> Row:
        """The row of a run of its own."""
        began = time.monotonic()
        row = self.row(level, fix(self._tool, self._trap, level))
        return replace(row, seconds=time.monotonic() - began)

    def row(self, level: str, written: Written) -> Row:
        """What became of the script with what was written."""
        trap = self._trap
        harmed: list[str] = []
        for label, text in (("", written.text), *written.steps):
            if text is not None:
                keys = self._harmed(level, text, written.modules.get(text, {}))
                harmed += [f"{label}: {key}" if label else key for key in keys]
        is_failed = written.note.startswith(_FAILURES)
        return Row(trap.name, trap.topic, level, written.fixes, tuple(harmed), 0.0, written.note, is_failed)

    def _harmed(self, level: str, text: str, modules: Mapping[str, str]) -> tuple[str, ...]:
        key = "\n".join((text, *(part for name in sorted(modules) for part in (name, modules[name]))))
        if key not in self._after:
            try:
                self._after[key] = self._scripts.invariant(self._trap, text, modules)
            except ScriptFails as error:
                self._after[key] = str(error)
        after = self._after[key]
        if isinstance(after, str):
            return (f"fails: {after}",)
        return harmed_keys(self._trap, level, self._before, after)
