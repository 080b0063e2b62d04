"""Combines all fixes of a script into one change of its files, with a diff.

In: edits, the recorded calls, the project's folder.  Out: `Patch`, or `CannotRewrite` with the reason. `apply/write.py` writes
the files.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath

from advisor.model.calls import Call
from advisor.model.edits import BuildOnce, Edit, SplitFlatMap, SplitMap, StepEdit, VectorizeParts
from advisor.model.finding import Fix
from advisor.rewrite.cannot_rewrite import CannotRewrite, CannotRewriteError
from advisor.rewrite.obstacles import obstacle_to
from advisor.rewrite.project import read_source, user_file
from advisor.rewrite.splices import lines_of

_MOST_MODULES = 200
"""Files beside a script that are read to see whether they change a module's variables."""


@dataclass(frozen=True, slots=True)
class Patch:
    """A change of one or more of the user's files."""

    files: Mapping[Path, tuple[bytes, bytes]] = field(default_factory=dict)
    """Real path -> (bytes before, bytes after); the change was computed from the bytes before."""
    diff: str = ""
    """Unified diff, paths relative to the project."""

    def after(self) -> dict[str, bytes]:
        """Return the new bytes by path, as used by a run with the changed texts."""
        return {str(path): after for path, (_, after) in self.files.items()}


def patch_for(
    edits: Sequence[Edit],
    calls: Mapping[str, Call],
    root: Path,
    base: Patch | None = None,
    step_edits: Sequence[StepEdit] = (),
) -> Patch | CannotRewrite:
    """Combine edits into a change of the user's files; all edits are written or none.

    Args:
        edits: The edits, in order.
        calls: Calls of the recorded run by id.
        root: The project's folder; files outside it are not changed.
        base: Patch of the script that was recorded, if it was a patched one: locations refer to the patched text, and the result
            contains both changes relative to the user's files.
        step_edits: Changes of the training step.

    Returns:
        The patch, or the reason why it cannot be made.
    """
    try:
        return _patch(edits, calls, root.resolve(), base or Patch(), step_edits)
    except CannotRewriteError as error:
        return CannotRewrite(str(error))


def diff_for(fix: Fix, calls: Mapping[str, Call], root: Path) -> str | None:
    """Return the unified diff of a fix; None if the fix cannot be written.

    Args:
        fix: The fix.
        calls: The recorded calls by id.
        root: Folder to which the paths in the diff are relative.
    """
    patch = patch_for(fix.edits, calls, root, step_edits=fix.step_edits)
    return None if isinstance(patch, CannotRewrite) else patch.diff or None


def why_not(fix: Fix, calls: Mapping[str, Call], root: Path) -> str | None:
    """Return one sentence on why `diff_for` returns None; None if it returns a diff.

    Args:
        fix: The fix with its edits.
        calls: Calls of the recorded run by id.
        root: The project's folder; files outside it are not changed.
    """
    patch = patch_for(fix.edits, calls, root, step_edits=fix.step_edits)
    if isinstance(patch, CannotRewrite):
        return patch.reason
    return None if patch.files else "The source already contains the change."


def _patch(
    edits: Sequence[Edit], calls: Mapping[str, Call], root: Path, base: Patch, step_edits: Sequence[StepEdit]
) -> Patch:
    from advisor.rewrite.source import rewritten  # imports LibCST, so only if there is something to rewrite

    by_file: dict[Path, list[Edit]] = {}
    defined: dict[Path, list[VectorizeParts | SplitMap | SplitFlatMap]] = {}
    for edit in edits:
        reason = obstacle_to(edit, calls)
        if reason is not None:
            raise CannotRewriteError(reason)
        site = edit.reader if isinstance(edit, BuildOnce) else calls[edit.call_id].site
        assert site is not None  # obstacle_to
        by_file.setdefault(user_file(site.file, root), []).append(edit)
        if isinstance(edit, VectorizeParts | SplitMap | SplitFlatMap) and edit.file:
            defined.setdefault(user_file(edit.file, root), []).append(edit)
    of_step: dict[Path, list[StepEdit]] = {}
    for step_edit in step_edits:
        of_step.setdefault(user_file(step_edit.file, root), []).append(step_edit)
    files = dict(base.files)
    for path in dict.fromkeys((*by_file, *of_step, *defined)):
        original, current = files.get(path, (None, None))
        source = read_source(path, current)
        its_edits = by_file.get(path, ())
        others = _other_texts(its_edits, calls, root, base.files)
        after = source.encode(
            rewritten(source.text, its_edits, calls, of_step.get(path, ()), others, defined.get(path, ()))
        )
        files[path] = (source.data if original is None else original, after)
    files = {path: (before, after) for path, (before, after) in files.items() if before != after}
    return Patch(files, "".join(_diff_of(path, *change, root) for path, change in files.items()))


def _other_texts(
    edits: Sequence[Edit], calls: Mapping[str, Call], root: Path, files: Mapping[Path, tuple[bytes, bytes]]
) -> dict[str, str]:
    """The texts of the modules beside a script whose loop makes a dataset in another file, as they were when it was recorded.

    The keys are the files as recorded calls name them.
    """
    texts: dict[str, str] = {}
    for edit in edits:
        site = calls[edit.call_id].site
        if not isinstance(edit, BuildOnce) or site is None or site.file == edit.reader.file:
            continue
        folder = user_file(edit.reader.file, root).parent
        modules = sorted({*folder.glob("*.py"), *user_file(site.file, root).parent.glob("*.py")})
        if len(modules) > _MOST_MODULES:
            raise CannotRewriteError(
                f"The dataset is made in another file, and {folder} holds more than {_MOST_MODULES} of them."
            )
        script = user_file(edit.reader.file, root)
        for module in modules:
            if module == script:
                continue
            name: PurePath = module
            if module.is_relative_to(folder):  # as recorded calls name it
                name = PurePath(edit.reader.file).parent / module.relative_to(folder)
            texts[str(name)] = read_source(module, files.get(module, (None, None))[1]).text
    return texts


def _diff_of(path: Path, before: bytes, after: bytes, root: Path) -> str:
    name = path.relative_to(root).as_posix() if path.is_relative_to(root) else path.as_posix()
    return unified_diff(read_source(path, before).text, read_source(path, after).text, name)


def unified_diff(before: str, after: str, name: str) -> str:
    """Return the unified diff of two texts with one line of context, for a file called `name`.

    Args:
        before: The text before the change.
        after: The text after the change.
        name: Path as it is shown, with `/`; `a/` and `b/` are put before it.

    Returns:
        The diff; empty if the texts are equal.
    """
    lines = difflib.unified_diff(
        lines_of(before), lines_of(after), fromfile=f"a/{name}", tofile=f"b/{name}", n=1, lineterm="\n"
    )
    return "".join(line if line.endswith(("\n", "\r")) else f"{line}\n\\ No newline at end of file\n" for line in lines)


__all__ = ["CannotRewrite", "Patch", "diff_for", "patch_for", "unified_diff", "why_not"]
