"""A real browser for tests: an installed Chromium, driven headless. They are skipped where there is none."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


def find_browser() -> str | None:
    """The program: ADVISOR_BROWSER, or the first that is installed."""
    return os.environ.get("ADVISOR_BROWSER") or next(filter(None, map(shutil.which, NAMES)), None)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    path = find_browser()
    if path is None:
        pytest.skip(f"no browser: install one of {', '.join(NAMES)}, or set ADVISOR_BROWSER")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (extra `dev`)")
    with playwright.sync_playwright() as running:
        started = running.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield started
        started.close()


@dataclass
class Opened:
    """A page, and all that it said and asked for."""

    page: Any
    said: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def check(self, path: Path) -> None:
        """Nothing was said on the console, and nothing loaded but the file itself."""
        assert self.said == []
        assert set(self.asked) == {path.as_uri()}


@pytest.fixture
def open_file(browser: Any) -> Iterator[Any]:
    contexts = []

    def opened(path: Path, **options: Any) -> Opened:
        context = browser.new_context(accept_downloads=True, **options)
        contexts.append(context)
        opened = Opened(context.new_page())
        opened.page.on("console", lambda message: opened.said.append(f"{message.type}: {message.text}"))
        opened.page.on("pageerror", lambda error: opened.said.append(f"error: {error}"))
        opened.page.on("request", lambda request: opened.asked.append(request.url.partition("#")[0]))
        opened.page.on("dialog", lambda dialog: opened.said.append(f"dialog: {dialog.message}"))
        opened.page.goto(path.as_uri())
        return opened

    yield opened
    for context in contexts:
        context.close()
