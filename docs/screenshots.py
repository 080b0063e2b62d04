"""Takes pictures of the web site and of the tab in TensorBoard, for a person to look at: `make screenshots`.

    python -m docs.screenshots [--out .cache/screenshots] [--tensorboard-python PYTHON]

In: the pages in docs/, and recorded runs.  Out: a PNG image of each page and view, as wide as a desktop's and a phone's window.
The exit code is 1 if something could not be loaded, or if a page is wider than its window.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from playwright.sync_api import BrowserContext, FloatRect, Response, ViewportSize, sync_playwright

from tests.browser import NAMES, find_browser
from tests.tensorboard.logdirs import OTHERS, RUN_OF, Served, foreign, recorded, tensorboard, unpacked
from tests.tensorboard.shown import MADE_MS, show_tab

ROOT = Path(__file__).parents[1]
OUT = ROOT / ".cache/screenshots"
WINDOWS: dict[str, ViewportSize] = {"desktop": {"width": 1280, "height": 900}, "phone": {"width": 390, "height": 844}}
PAGES = {
    "start": "",
    "first-report": "tutorials/first-report/",
    "rule": "rules/serial-map/",
    "command-line": "reference/command-line/",
    "case-study": "case-studies/flowers-like/",
}
"""Name of an image -> page of the site."""
LONGEST_PX = 8000
"""Longer pages are cut: they repeat what is above, and Chromium draws no image of more than 16,384 pixels."""
OTHER_PROFILE = OTHERS / "gpu-tf24-prefetch"
"""A profile of a GPU by an unknown job; where it is absent, a made one is shown."""
SWITCHES = ["--no-sandbox", "--force-prefers-reduced-motion"]
"""The second one makes the animated picture of the start page show its last screen; Playwright's option does not."""
XPROF = "profile"
"""The name that XProf gives its plugin."""


def main() -> None:
    """Take all pictures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=OUT, help="folder for the images")
    parser.add_argument("--tensorboard-python", default=sys.executable, metavar="PYTHON",
                        help="interpreter of the environment whose TensorBoard is shown; with XProf, one view more")  # fmt: skip
    options = parser.parse_args()
    program = find_browser()
    if program is None:
        sys.exit(f"No browser: install one of {', '.join(NAMES)}, or set ADVISOR_BROWSER.")
    options.out.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright, contextlib.ExitStack() as opened:
        browser = opened.enter_context(playwright.chromium.launch(executable_path=program, args=SWITCHES))
        site = opened.enter_context(built_site())
        served = opened.enter_context(tensorboard_on_runs(str(Path(options.tensorboard_python).absolute())))
        problems = []
        for device, window in WINDOWS.items():
            context = browser.new_context(viewport=window)
            problems += take_pages(context, site, options.out, device)
            take_tab(context, served, options.out, device)
            context.close()
    if problems:
        sys.exit("\n".join(problems))


@contextlib.contextmanager
def built_site() -> Iterator[str]:
    """Build the web site, and serve it; give its address."""
    folder = ROOT / ".cache/site"
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    subprocess.run(command, cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, check=True)
    with ThreadingHTTPServer(("localhost", 0), functools.partial(_Quiet, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://localhost:{server.server_port}/"
        server.shutdown()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Leave the terminal to the names of the images."""


@contextlib.contextmanager
def tensorboard_on_runs(python: str) -> Iterator[Served]:
    """Run TensorBoard on two runs of the advisor and a profile of another origin."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        logdir = folder / "logs"
        for run in RUN_OF:
            unpacked(recorded(run, logdir))
        if OTHER_PROFILE.is_dir():
            shutil.copytree(OTHER_PROFILE, logdir / OTHER_PROFILE.name)
        else:
            foreign(logdir)
        with tensorboard(logdir, folder, python=python) as served:
            yield served


def take_pages(context: BrowserContext, site: str, out: Path, device: str) -> list[str]:
    """Take the pages of the site; return what is wrong with them, a line each."""
    problems = []
    for name, path in PAGES.items():
        problems += take_page(context, site + path, _named(out, name, device))
    return problems


def take_page(context: BrowserContext, url: str, picture: Path) -> list[str]:
    """Take one page as a whole; return what is wrong with it."""
    page = context.new_page()
    answers: list[Response] = []
    page.on("response", lambda answer: answers.append(answer))
    page.goto(url, wait_until="networkidle")
    width, visible, height = page.evaluate(
        "() => ['scrollWidth', 'clientWidth', 'scrollHeight'].map(size => document.documentElement[size])"
    )
    problems = [f"{answer.url}: {answer.status}" for answer in answers if answer.status >= 400]
    if width > visible:
        problems.append(f"{url} is {width} pixels wide in a window of {visible}.")
    whole: FloatRect = {"x": 0, "y": 0, "width": visible, "height": min(LONGEST_PX, height)}
    page.screenshot(path=picture, full_page=True, clip=whole)
    page.close()
    return problems


def take_tab(context: BrowserContext, served: Served, out: Path, device: str) -> None:
    """Take the tab: two runs, a profile of another origin, and XProf's tab beside it where that is installed."""
    shown = show_tab(context, served)
    names = shown.tab.locator("#runs option").all_inner_texts()
    first, second = RUN_OF.values()
    (other,) = (name for name in names if name not in (first, second))
    shown.choose(first)
    shown.wait_for_report(first)
    # Browsers open the list in a window of its own, which is in no picture.
    shown.tab.locator("#runs").evaluate("(list, length) => { list.size = length; }", len(names) + 2)
    shown.page.screenshot(path=_named(out, "tensorboard-two-runs", device))
    shown.tab.locator("#runs").evaluate("list => { list.size = 1; }")
    shown.choose(other)
    shown.wait_for_report(other)
    shown.page.screenshot(path=_named(out, "tensorboard-foreign-profile", device))
    if json.loads(served.get("data/plugins_listing")).get(XPROF, {}).get("enabled"):
        shown.page.goto(f"{served.url}#{XPROF}")
        shown.page.locator(f'iframe[src*="name={XPROF}"]').wait_for(timeout=MADE_MS)
        shown.page.wait_for_load_state("networkidle")
        shown.page.screenshot(path=_named(out, "tensorboard-xprof", device))
    shown.page.close()


def _named(out: Path, name: str, device: str) -> Path:
    path = out / f"{name}-{device}.png"
    print(path, flush=True)
    return path


if __name__ == "__main__":
    main()
