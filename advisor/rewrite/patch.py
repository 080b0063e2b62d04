"""All fixes of a script as one change of its files: what they hold before and after, and the diff for people.

In: edits, the recorded calls, the project's folder.  Out: `Patch`, or `CannotRewrite` with the reason. Nothing is written here:
`write` does that.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from advisor.model.finding import Edit
from advisor.model.recording import Call
from advisor.rewrite.cannot_rewrite import CannotRewrite, CannotRewriteError
from advisor.rewrite.obstacles import obstacle_to
from advisor.rewrite.project import read_source, user_file


@dataclass(frozen=True, slots=True)
class Patch:
    """A change of one or more files of the user."""

    files: Mapping[Path, tuple[bytes, bytes]] = field(default_factory=dict)
    """Real path -> (bytes before, bytes after). The bytes before are those the change was made from."""
    diff: str = ""
    """Unified diff, paths relative to the project."""

    def after(self) -> dict[str, bytes]:
        """Path -> the new bytes, as a run with these texts takes them."""
        return {str(path): after for path, (_, after) in self.files.items()}


def patch_for(
    edits: Sequence[Edit], calls: Mapping[str, Call], root: Path, base: Patch | None = None
) -> Patch | CannotRewrite:
    """The change of the user's files that all `edits` make together.

    `calls` are those of the recorded run. `base`: the run was that of a patched script (its places are those of the patched
    text); the result then holds both changes, from the user's own bytes on. Edits are all written or none.
    """
    try:
        return _patch(edits, calls, root.resolve(), base or Patch())
    except CannotRewriteError as error:
        return CannotRewrite(str(error))


def _patch(edits: Sequence[Edit], calls: Mapping[str, Call], root: Path, base: Patch) -> Patch:
    from advisor.rewrite.source import rewritten  # LibCST: only where there is something to rewrite

    by_file: dict[Path, list[Edit]] = {}
    for edit in edits:
        reason = obstacle_to(edit, calls)
        if reason is not None:
            raise CannotRewriteError(reason)
        site = calls[edit.call_id].site
        assert site is not None  # obstacle_to
        by_file.setdefault(user_file(site.file, root), []).append(edit)
    files = dict(base.files)
    for path, its_edits in by_file.items():
        original, current = files.get(path, (None, None))
        source = read_source(path, current)
        after = source.encode(rewritten(source.text, its_edits, calls))
        files[path] = (source.data if original is None else original, after)
    files = {path: (before, after) for path, (before, after) in files.items() if before != after}
    return Patch(files, "".join(_diff_of(path, *change, root) for path, change in files.items()))


def _diff_of(path: Path, before: bytes, after: bytes, root: Path) -> str:
    name = path.relative_to(root).as_posix() if path.is_relative_to(root) else path.as_posix()
    return unified_diff(read_source(path, before).text, read_source(path, after).text, name)


def unified_diff(before: str, after: str, name: str) -> str:
    """Unified diff with one line of context, for a file called `name`."""
    lines = difflib.unified_diff(
        _lines(before), _lines(after), fromfile=f"a/{name}", tofile=f"b/{name}", n=1, lineterm="\n"
    )
    return "".join(line if line.endswith(("\n", "\r")) else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _lines(text: str) -> list[str]:
    """Lines with their breaks, split only where Python ends a line (a form feed does not)."""
    return [line for line in re.findall(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+$", text) if line]


__all__ = ["CannotRewrite", "Patch", "patch_for", "unified_diff"]
