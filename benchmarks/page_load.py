"""Opens one page in a headless Chromium and measures seconds, bytes, and requests to other hosts.

In: an address, a browser of playwright.  Out: a `Load`. Requests to other machines are refused.
"""

from __future__ import annotations

import os
import shutil
import time
import urllib.parse
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SETTLED_S = {"http": 1.5, "file": 0.7}
"""After this long without a request, a page is complete; a file contains everything it needs."""
PATIENCE_S = 90
PAINT = """() => {
  const paint = performance.getEntriesByName('first-contentful-paint')[0];
  return paint ? paint.startTime / 1000 : null;
}"""

ROWS = (
    """() => [...document.querySelectorAll('tbody tr, [role=row]')].filter((row) => row.offsetParent !== null).length"""
)


@dataclass
class Load:
    """One page, opened once with an empty cache. Times in seconds since the request."""

    first_paint_s: float | None = None
    last_answer_s: float = 0.0
    """When the last response had arrived."""
    num_bytes: int = 0
    num_answers: int = 0
    num_rows: int = 0
    """Visible table rows, excluding header rows."""
    refused: list[str] = field(default_factory=list)
    """Other hosts that the page requested."""


def find_browser() -> str | None:
    """An installed Chromium: ADVISOR_BROWSER, or the first on PATH."""
    return os.environ.get("ADVISOR_BROWSER") or next(
        filter(None, map(shutil.which, ("chromium", "google-chrome"))), None
    )


def load_page(browser: Any, url: str, picture: Path | None) -> Load:
    """Open a page in a new browser profile, refuse requests to other hosts, and wait until it is complete."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    opened = context.new_page()
    load = Load()
    start = time.perf_counter()

    def decide(route: Any) -> None:
        target = urllib.parse.urlparse(route.request.url)
        if target.scheme in ("file", "data", "blob") or target.hostname == "127.0.0.1":
            route.continue_()
        else:
            load.refused.append(target.hostname or target.scheme)
            route.abort()

    answers: list[Any] = []

    def answered(response: Any) -> None:
        load.last_answer_s = time.perf_counter() - start
        answers.append(response)

    opened.route("**/*", decide)
    opened.on("response", answered)
    opened.goto(url, timeout=PATIENCE_S * 1000)
    while time.perf_counter() - start < load.last_answer_s + SETTLED_S[url.partition(":")[0]]:
        opened.wait_for_timeout(100)
    load.first_paint_s, load.num_rows = opened.evaluate(PAINT), opened.evaluate(ROWS)
    load.num_answers, load.num_bytes = len(answers), sum(map(_num_bytes, answers))
    if picture:
        picture.parent.mkdir(parents=True, exist_ok=True)
        opened.screenshot(path=str(picture), full_page=True)
    context.close()
    return load


def _num_bytes(answer: Any) -> int:
    """The uncompressed size of a response in bytes."""
    address = urllib.parse.urlparse(answer.url)
    if address.scheme == "file":
        return Path(urllib.parse.unquote(address.path)).stat().st_size
    try:
        return len(answer.body())
    except Exception:  # a redirection has no body
        return 0
