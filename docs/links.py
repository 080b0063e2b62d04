"""Rewrites the links of Markdown pages whose targets are not where the page is shown.

Run as a program, it makes the relative links of a page absolute, because PyPI shows the README without the repository:

    python docs/links.py README.md https://github.com/OWNER/tfdata-advisor v1.2.3
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path, PurePosixPath

_FENCE = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(?P<image>!?)\[(?P<label>[^\[\]]*)\]\((?P<target>[^()\s]+)\)")
_SCHEME = re.compile(r"[a-z][a-z+.-]*:", re.IGNORECASE)


def rewrite_links(text: str, rewrite: Callable[[str], str | None]) -> str:
    """Rewrite the relative links of a page.

    Args:
        text: The page, as Markdown. Its fenced code is left unchanged.
        rewrite: Returns the new target of a relative link or image; None leaves only its label.

    Returns:
        The page with new targets. Links within the page and absolute ones are unchanged.
    """

    def replaced(match: re.Match[str]) -> str:
        target = match["target"]
        if target.startswith("#") or _SCHEME.match(target):
            return match[0]
        new = rewrite(target)
        return match["label"] if new is None else f"{match['image']}[{match['label']}]({new})"

    parts, end = [], 0
    for fence in _FENCE.finditer(text):
        parts += [_LINK.sub(replaced, text[end : fence.start()]), fence[0]]
        end = fence.end()
    return "".join((*parts, _LINK.sub(replaced, text[end:])))


def absolute_links(text: str, folder: PurePosixPath, repository: str, revision: str) -> str:
    """Make the relative links of a page absolute.

    Args:
        text: The page, as Markdown.
        folder: The page's folder in the repository.
        repository: URL of the repository on GitHub.
        revision: Tag or branch that the links lead to.
    """
    return rewrite_links(text, lambda target: file_url(resolved(folder, target), repository, revision))


def file_url(path: str, repository: str, revision: str) -> str:
    """Return the URL of a file of the repository; of a picture, that of its bytes."""
    kind = "raw" if path.endswith((".svg", ".png")) else "blob"
    return f"{repository.rstrip('/')}/{kind}/{revision}/{path}"


def resolved(folder: PurePosixPath, target: str) -> str:
    """Return the path in the repository, with its anchor, of a link on a page in `folder`."""
    path, hash_sign, anchor = target.partition("#")
    parts: list[str] = []
    for part in (folder / path).parts:
        if part == ".." and parts:
            parts.pop()
        elif part != ".":
            parts.append(part)
    return "/".join(parts) + hash_sign + anchor


def main() -> None:
    """Make the links of a file absolute, in place."""
    page, repository, revision = sys.argv[1:]
    path = Path(page)
    folder = PurePosixPath(path.parent.as_posix())
    path.write_text(absolute_links(path.read_text("utf-8"), folder, repository, revision), "utf-8")


if __name__ == "__main__":
    main()
