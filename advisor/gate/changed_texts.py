"""Reads a change of a script: another file, a patch, or a git revision.

In: the script, and the option that names the change.  Out: `ChangedTexts`, the new texts of Python files. No file of the
user's is written: a patch is applied to copies in a temporary folder.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from advisor.gate.base_revision import read_base, read_file
from advisor.model.errors import AdvisorError
from advisor.prove.measure.source_overlays import Files
from advisor.rewrite.project import project_root
from advisor.sandbox.temporary import temporary_folder

_WITHOUT_EFFECT = (".md", ".rst")
"""Suffixes of files that no run reads, so that a patch may change them."""
_PYTHON = (".py", ".pyi")
_TIMEOUT_S = 60
_STDIN = Path("-")


@dataclass(frozen=True, slots=True)
class ChangedTexts:
    """The Python files that a change replaces."""

    label: str
    """The option that names the change, as in `--with faster.py`."""
    files: Files
    """Real path -> (bytes without the change, bytes with it)."""
    only_with_change: tuple[Path, ...] = ()
    """Files that exist only with the change."""
    notes: tuple[str, ...] = ()
    """What the change does that a run does not see, in sentences."""


def read_other(script: Path, other: Path) -> ChangedTexts:
    """Return the change that replaces the script's text by that of another file.

    Raises:
        AdvisorError: A file cannot be read.
    """
    if script.is_dir():
        raise AdvisorError(f"--with needs the path of a script, and {script} is a folder.")
    return _checked(ChangedTexts(f"--with {other}", {script.resolve(): (read_file(script), read_file(other))}))


def read_revision(script: Path | None, revision: str) -> ChangedTexts:
    """Return the change that replaces the files of the working tree by those of a git revision.

    Args:
        script: The script; None for a module, which is looked for in the current folder's repository.
        revision: A commit, branch or tag.

    Raises:
        AdvisorError: There is no git, no repository or no such revision, or it does not contain the script.
    """
    folder = Path.cwd() if script is None else script.resolve().parent
    texts = read_base(revision, folder, script, option="--rev")
    if not texts.has_script:
        raise AdvisorError(f"--rev {revision}: {script} does not exist there.")
    notes = [f"{path.relative_to(texts.top)} does not exist in {revision}, but was there in both runs."
             for path in texts.only_in_head]  # fmt: skip
    return _checked(ChangedTexts(f"--rev {revision}", texts.files, texts.only_in_base, tuple(notes)))


def read_patch(script: Path | None, patch: Path) -> ChangedTexts:
    """Return the change that a unified diff describes; `-` stands for that on stdin.

    Its paths are relative to the top of the repository, the project's folder, the script's folder or the current one, with or
    without a leading `a/` and `b/`.

    Raises:
        AdvisorError: The patch cannot be read or does not apply, or changes files that cannot be replaced.
    """
    data = sys.stdin.buffer.read() if patch == _STDIN else read_file(patch)
    if not data.strip():
        raise AdvisorError(f"--patch {patch} is empty.")
    folder = Path.cwd() if script is None else script.resolve().parent
    problem = ""
    for root in dict.fromkeys((*_repositories(folder), project_root(folder / "script.py"), folder, Path.cwd())):
        for strip in ("-p1", "-p0"):
            with temporary_folder("patch") as copies:
                try:
                    return _checked(_applied(data, root, strip, copies, f"--patch {patch}"))
                except _DoesNotApply as error:
                    problem = problem or str(error)
    raise AdvisorError(f"--patch {patch} does not apply to the files of {folder}: {problem.rstrip('.')}.")


class _DoesNotApply(Exception):
    """git cannot apply the patch there; the message is git's."""


def _applied(data: bytes, root: Path, strip: str, copies: Path, label: str) -> ChangedTexts:
    """Apply a patch to copies of the files of `root` that it names."""
    names = [
        os.fsdecode(row.split(b"\t")[2]) for row in _git(copies, data, "--numstat", "-z", strip).split(b"\0") if row
    ]
    renamed = [os.fsdecode(name) for name in re.findall(rb"^rename from (.+?)\r?$", data, re.MULTILINE)]
    paths = [root / name for name in dict.fromkeys((*names, *renamed))]
    if any(not path.resolve().is_relative_to(root.resolve()) for path in paths):
        raise AdvisorError(f"{label} changes a file outside {root}.")
    before: dict[Path, bytes] = {}
    for path in paths:
        if path.exists():
            before[path] = read_file(path)
            copy = copies / path.relative_to(root)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(before[path])
    _git(copies, data, strip)
    other = [path.name for path in paths if path.suffix not in (*_PYTHON, *_WITHOUT_EFFECT)]
    if other:
        raise AdvisorError(
            f"{label} also changes {', '.join(other)}: only Python files can be replaced for a run, so leave the others out."
        )
    files: dict[Path, tuple[bytes, bytes]] = {}
    notes = []
    for path in (path for path in paths if path.suffix in _PYTHON):
        copy = copies / path.relative_to(root)
        if copy.exists():
            files[path.resolve()] = (before.get(path, b""), copy.read_bytes())
        else:
            notes.append(f"{path.name} is removed by the patch, but was there in both runs.")
    new = tuple(path.resolve() for path in paths if path.resolve() in files and path not in before)
    return ChangedTexts(label, files, new, tuple(notes))


def _git(copies: Path, data: bytes, *options: str) -> bytes:
    """Run `git apply` on the copies, outside of any repository.

    Raises:
        _DoesNotApply: It fails.
    """
    command: Sequence[str] = ("git", "-c", "core.quotePath=false", "apply", *options, "-")
    variables = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment = {**variables, "GIT_CEILING_DIRECTORIES": str(copies.resolve().parent), "LC_ALL": "C"}
    try:
        done = subprocess.run(
            command, input=data, capture_output=True, cwd=copies, env=environment, timeout=_TIMEOUT_S, check=False
        )
    except FileNotFoundError:
        raise AdvisorError("--patch needs git, which is not installed: install it, or use --with.") from None
    except subprocess.TimeoutExpired:
        raise AdvisorError(f"git apply took more than {_TIMEOUT_S} s: try it by hand.") from None
    if done.returncode:
        reason = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise _DoesNotApply(reason[0].removeprefix("error: ") if reason else f"exit code {done.returncode}")
    return done.stdout


def _repositories(folder: Path) -> Iterator[Path]:
    """Yield the top of the repository that contains the folder, if there is one."""
    yield from (parent for parent in (folder, *folder.parents) if (parent / ".git").exists())


def _checked(texts: ChangedTexts) -> ChangedTexts:
    """Return the texts without files that do not change; refuse those that Python cannot compile, and a change of nothing."""
    files = {path: pair for path, pair in texts.files.items() if pair[0] != pair[1] or path in texts.only_with_change}
    if not files:
        raise AdvisorError(f"{texts.label} changes no Python file, so there is nothing to prove.")
    for path, (_, after) in files.items():
        try:
            compile(after, str(path), "exec", dont_inherit=True)
        except (SyntaxError, ValueError) as error:
            raise AdvisorError(f"{texts.label}: the changed {path.name} is not valid Python ({error}).") from None
    return ChangedTexts(texts.label, files, texts.only_with_change, texts.notes)
