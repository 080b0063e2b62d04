"""The tab in a browser: what it shows, and all that the browser said and asked for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.tensorboard.logdirs import NAME, Served

MADE_MS = 60_000
"""Longest time for a report; a busy machine fails no test."""


@dataclass
class Shown:
    """The tab, and all that the browser said and asked for."""

    page: Any
    said: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    @property
    def tab(self) -> Any:
        """The frame that TensorBoard gives the tab."""
        return self.page.frame_locator(f'iframe[src*="name={NAME}"]')

    @property
    def report(self) -> Any:
        """The frame of the report."""
        return self.tab.frame_locator("main iframe")

    def choose(self, name: str) -> None:
        self.tab.locator("#runs").select_option(label=name)

    def wait_for_report(self, name: str) -> None:
        self.tab.locator(f'main iframe[title="Report of {name}"]').wait_for(timeout=MADE_MS)
        self.report.locator("#page-verdict .headline").wait_for(timeout=MADE_MS)

    def check(self, served: Served) -> None:
        """No policy was violated, and nothing was asked of another host."""
        assert not [
            text for text in self.said if "Content Security Policy" in text or "Refused" in text or "error" in text[:5]
        ]
        assert [url for url in self.asked if not url.startswith((served.url, "data:", "blob:"))] == []


def show_tab(context: Any, served: Served) -> Shown:
    """Open TensorBoard in a browser context, and wait until the tab lists its runs."""
    shown = Shown(context.new_page())
    shown.page.on("console", lambda message: shown.said.append(f"{message.type}: {message.text}"))
    shown.page.on("pageerror", lambda error: shown.said.append(f"error: {error}"))
    shown.page.on("request", lambda request: shown.asked.append(request.url))
    shown.page.goto(f"{served.url}#{NAME}")
    shown.tab.locator("#runs").wait_for(timeout=MADE_MS)
    return shown
