"""The steps of the launcher: it enters the private view of the disk and executes the command.

In: a plan and a command.  Out: nothing; the command replaces this process.

The private view is first tried in a forked process. If the kernel refuses one of the steps, this process still has the original
view, and the run is redirected instead.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

from advisor.sandbox import syscalls
from advisor.sandbox.mounts import is_below
from advisor.sandbox.namespace import OVERLAID, REDIRECTED, Outcome, View, enter
from advisor.sandbox.temporary import remove_tree
from advisor.sandbox.working_copy import copy_folder

REDIRECT = "TFDATA_ADVISOR_REDIRECT"
"""Environment variable with the redirection, as JSON, that the child must install."""
WRITTEN = "TFDATA_ADVISOR_WRITTEN"
"""Environment variable with the path of the file in which the child lists the files it writes, if the view is incomplete."""


def launch(plan_path: str, command: list[str]) -> NoReturn:
    """Carry out the plan and replace this process by the command.

    Args:
        plan_path: Path of the plan, a JSON file written by `private_run`.
        command: Absolute path of the program, and its arguments.
    """
    plan: dict[str, Any] = json.loads(Path(plan_path).read_text("utf-8"))
    syscalls.die_with_parent(plan["parent"])
    environment = dict(os.environ)
    if plan["view"] is not None:
        handle = os.open(plan["outcome"], os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        outcome = _enter(View(**plan["view"]))
        if outcome.kind != OVERLAID:
            _redirect(outcome, Path(plan["view"]["folder"]), environment)
        if outcome.kind == REDIRECTED or outcome.real or not outcome.is_whole:
            environment[WRITTEN] = plan["written"]
        with os.fdopen(handle, "w") as file:
            json.dump(outcome.as_json(), file)
        syscalls.die_with_parent(plan["parent"])  # again, because new namespaces clear it
    os.execve(command[0], command, environment)


def _redirect(outcome: Outcome, folder: Path, environment: dict[str, str]) -> None:
    """Set the environment variables that make the child redirect what the view does not cover."""
    is_redirected = outcome.kind == REDIRECTED
    covered = [
        path for path in (*outcome.uppers, *(() if is_redirected else outcome.copies)) if path not in outcome.real
    ]
    copies = outcome.copies if is_redirected else {}
    elsewhere = str(folder / "elsewhere")
    message = {"copies": copies, "left_out": outcome.left_out, "covered": covered, "elsewhere": elsewhere}
    environment[REDIRECT] = json.dumps(message)
    if not any(is_below(os.path.realpath(environment.get("TMPDIR") or "/tmp"), path) for path in covered):
        environment["TMPDIR"] = str(folder / "tmp")
        (folder / "tmp").mkdir()


def _enter(view: View) -> Outcome:
    trial = try_view(view)
    if trial.kind != REDIRECTED:
        return enter(view)
    outcome = Outcome(REDIRECTED, trial.reason)
    for folder in view.projects:
        path = Path(view.folder) / f"copy-{len(outcome.copies)}"
        try:
            copy = copy_folder(Path(folder), path)
        except OSError:
            outcome.real.append(folder)
            continue
        outcome.copies[folder] = str(path)
        outcome.left_out += [f"{folder.rstrip('/')}/{name}" for name in copy.left_out]
        for name in copy.left_out:
            (path / name).symlink_to(Path(folder) / name)
        outcome.large += [f"{folder.rstrip('/')}/{name}" for name in copy.large]
        if is_below(view.cwd, folder):
            with contextlib.suppress(OSError):
                os.chdir(f"{path}{view.cwd.removeprefix(folder.rstrip('/'))}")
    return outcome


def try_view(view: View) -> Outcome:
    """Try the view in a forked process, so that this process keeps the original one.

    Returns:
        How the view would be created; `redirected`, with the reason, if the kernel does not allow a mount namespace.
    """
    folder = Path(view.folder) / "trial"
    folder.mkdir()
    read_end, write_end = os.pipe()
    own = os.getpid()
    child = os.fork()
    if child == 0:
        try:
            syscalls.die_with_parent(own)
            outcome = enter(replace(view, folder=str(folder), is_trial=True))
        except BaseException as error:
            reason = (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
            outcome = Outcome(REDIRECTED, reason[:2000])
        try:
            with os.fdopen(write_end, "w") as pipe:
                json.dump(outcome.as_json(), pipe)
        finally:
            os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end) as pipe:
        text = pipe.read()
    _, status = os.waitpid(child, 0)
    remove_tree(folder)
    return Outcome(**json.loads(text)) if text else Outcome(REDIRECTED, f"status {status}")


if __name__ == "__main__":
    launch(sys.argv[1], sys.argv[2:])
