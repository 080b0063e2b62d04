"""Gets the files of a recipe, checks their text and applies the edits.

In: a `Recipe`; the files from GitHub, or from `--sources DIR`, where they lie as `<owner>+<name>/<path>`.
Out: the edited files in the script's working folder.
"""

from __future__ import annotations

import hashlib
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path

from advisor.model.errors import AdvisorError
from wild.recipe import Edit, File, Recipe

RAW = "https://raw.githubusercontent.com"
LIMIT_S = 60.0


def place_files(recipe: Recipe, work: Path, sources: Path | None) -> Path:
    """Write the recipe's files into its working folder.

    Args:
        recipe: The recipe.
        work: The working folder of the script.
        sources: Folder with copies of repositories; None: GitHub.

    Returns:
        The script.

    Raises:
        AdvisorError: If a file cannot be read or is not the one that the recipe was written for.
    """
    for file in recipe.files:
        content = read_file(recipe, file, sources)
        found = hashlib.sha256(content).hexdigest()
        if found != file.sha256:
            raise AdvisorError(
                f"{recipe.repository}/{file.path} is not the text of {recipe.commit[:12]} that {recipe.name} was written for "
                f"(sha256 {found[:12]} instead of {file.sha256[:12]}): fetch that commit, or revise the recipe."
            )
        target = work / recipe.local_path(file.path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(edited(content.decode("utf-8"), file.edits, file.path).encode("utf-8"))
    return work / recipe.local_path(recipe.script)


def read_file(recipe: Recipe, file: File, sources: Path | None) -> bytes:
    """The file as it lies in the repository.

    Raises:
        AdvisorError: If it cannot be read.
    """
    if sources is not None:
        path = sources / recipe.repository.replace("/", "+") / file.path
        try:
            return path.read_bytes()
        except OSError as error:
            raise AdvisorError(
                f"{path} cannot be read ({error.strerror}): {recipe.name} needs it in --sources."
            ) from error
    url = f"{RAW}/{recipe.repository}/{recipe.commit}/{file.path}"
    try:
        with urllib.request.urlopen(url, timeout=LIMIT_S) as answer:
            content: bytes = answer.read()
            return content
    except (urllib.error.URLError, TimeoutError) as error:
        raise AdvisorError(f"{url} cannot be fetched ({error}): pass copies with --sources DIR.") from error


def edited(text: str, edits: Sequence[Edit], path: str) -> str:
    """The text with all edits applied; it has as many lines as before.

    Raises:
        AdvisorError: If an edit does not fit the text.
    """
    lines = text.split("\n")
    for edit in edits:
        if edit.last > len(lines):
            raise AdvisorError(f"An edit of {path} names line {edit.last}, but the file ends after {len(lines)} lines.")
        if edit.old is None:
            new = edit.new.split("\n")
            lines[edit.line - 1 : edit.last] = new + [""] * (edit.last - edit.line + 1 - len(new))
            continue
        line = lines[edit.line - 1]
        if line.count(edit.old) != 1:
            raise AdvisorError(
                f"Line {edit.line} of {path} has {edit.old!r} {line.count(edit.old)} times; an edit needs it once."
            )
        lines[edit.line - 1] = line.replace(edit.old, edit.new)
    return "\n".join(lines)
