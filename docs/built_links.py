"""Checks the links of the built web site: each leads to a file of the site, and to a place that exists in it.

mkdocs checks the links of the pages in Markdown; this also covers what the theme, mkdocs-click and mkdocstrings make of them.
"""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class _Page(HTMLParser):
    """The targets that a page names, and its own anchors."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        for name, value in attributes:
            if name in ("href", "src") and value:
                self.targets.append(value)
            elif name in ("id", "name") and value:
                self.anchors.add(value)


def broken_links(site: Path) -> list[str]:
    """Return every link within a built site that leads nowhere.

    Args:
        site: Its folder.

    Returns:
        `page: target` of each. Links to other hosts are not followed.
    """
    site = site.resolve()
    pages = {path: _Page(path.read_text("utf-8")) for path in sorted(site.rglob("*.html"))}
    return [
        f"{path.relative_to(site).as_posix()}: {target}"
        for path, page in pages.items()
        for target in dict.fromkeys(page.targets)
        if not _leads_somewhere(site, path, target, pages)
    ]


def _leads_somewhere(site: Path, page: Path, target: str, pages: dict[Path, _Page]) -> bool:
    parts = urlsplit(target)
    if parts.scheme or parts.netloc:
        return True
    path = unquote(parts.path)
    file = page
    if path:
        file = ((site if path.startswith("/") else page.parent) / path.lstrip("/")).resolve()
    if file.is_dir():
        file /= "index.html"
    if not file.is_file():
        return False
    return not parts.fragment or file not in pages or unquote(parts.fragment) in pages[file].anchors
