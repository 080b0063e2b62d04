"""Records `advisor fix` in a terminal and draws the recording as an animated picture for README.md.

    python docs/animate_fix.py [--out docs/images/fix.svg] [COMMAND...]

In: a command that is run in a pseudo-terminal (default: `advisor fix` on the demo).  Out: an SVG image that is animated by CSS.
It plays wherever pictures do, and shows its last frame to readers who prefer reduced motion. Waiting is shortened; the image says
how long the command really took.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import pty
import select
import shlex
import struct
import subprocess
import sys
import termios
import time
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

import pyte

ROOT = Path(__file__).parents[1]
COMMAND = "advisor fix --allow rerandomized examples/flowers_like.py"
COLUMNS, ROWS = 110, 38
LINE_PX, CELL_PX, MARGIN_PX, FONT_PX = 18, 8.43, 12, 14
PROGRESS_EVERY_S = 5.0
"""While only the line of progress changes, one screen is kept per so many seconds of the recording."""
PROGRESS_FRAME_S, RESULT_FRAME_S, LAST_FRAME_S = 0.5, 1.6, 8.0
"""How long the image shows a screen on which only the progress is new, one with a new result, and the last one."""
BACKGROUND, FOREGROUND = "#15181d", "#d6d9de"
COLOURS = {
    "black": "#3b4048", "red": "#f0716d", "green": "#6fcf7f", "brown": "#e3c06a", "blue": "#6fb1f2", "magenta": "#d08bea",
    "cyan": "#62c9d6", "white": "#d6d9de",
}  # fmt: skip
DIM = "#8a919c"
OF_THIS_MACHINE = ("Run folder:", "Deleted ")
"""Beginnings of lines that are left out."""

Cell = tuple[str, str, bool]
"""Character, colour, bold."""
Screen = tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True)
class Frame:
    """A screen and how long the image shows it."""

    screen: Screen
    seconds: float


def main() -> None:
    """Record the command and write the image."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "docs/images/fix.svg")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="default: " + COMMAND)
    options = parser.parse_args()
    command = options.command or shlex.split(COMMAND)
    os.chdir(ROOT)  # paths in the output are relative to it
    began = time.monotonic()
    screens = record(command)
    took_s = time.monotonic() - began
    options.out.parent.mkdir(exist_ok=True)
    options.out.write_text(draw(frames_of(screens), shlex.join(command), took_s), "utf-8")
    print(f"{options.out}: {took_s:.0f} s, {options.out.stat().st_size / 1024:.0f} KiB")


def record(command: list[str]) -> list[tuple[float, Screen]]:
    """Run a command in a pseudo-terminal; return its screens with the seconds since its start.

    Raises:
        SystemExit: The command fails.
    """
    terminal = pyte.Screen(COLUMNS, ROWS)
    stream = pyte.ByteStream(terminal)
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    env = {**os.environ, "TERM": "xterm-256color", "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    began = time.monotonic()
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=env, start_new_session=True)
    os.close(theirs)
    screens = [(0.0, content_of(terminal))]
    while True:
        ready, _, _ = select.select([ours], [], [], 0.04)
        if ready:
            try:
                data = os.read(ours, 65536)
            except OSError:  # Linux: the other end was closed
                break
            stream.feed(data)
            continue  # draw what belongs together as one screen
        screen = content_of(terminal)
        if screen != screens[-1][1]:
            screens.append((time.monotonic() - began, screen))
    os.close(ours)
    screens.append((time.monotonic() - began, content_of(terminal)))
    if process.wait():
        sys.exit(f"{shlex.join(command)} ended with exit code {process.returncode}.")
    return screens


def content_of(terminal: pyte.Screen) -> Screen:
    """Return what the terminal shows, without empty cells at the end of lines and lines about folders of this machine."""
    lines = []
    for number in range(terminal.lines):
        row = terminal.buffer[number]
        cells = [
            (row[column].data or " ", colour_of(row[column].fg), bool(row[column].bold))
            for column in range(terminal.columns)
        ]
        while cells and cells[-1][0] == " ":
            cells.pop()
        is_of_machine = "".join(cell[0] for cell in cells).startswith(OF_THIS_MACHINE)
        lines.append(() if is_of_machine else tuple(cells))
    return tuple(lines)


def colour_of(name: str) -> str:
    """Return a colour of the image for one of the terminal."""
    if name == "default":
        return FOREGROUND
    if name.startswith("bright"):
        return COLOURS.get(name.removeprefix("bright"), DIM)
    return COLOURS.get(name, f"#{name}" if len(name) == 6 else FOREGROUND)


def frames_of(screens: list[tuple[float, Screen]]) -> list[Frame]:
    """Choose the screens to show: each with a new result, and few of those on which only the last line is new."""
    frames: list[Frame] = []
    shown_at, shown = -PROGRESS_EVERY_S, None
    for at, screen in screens[:-1]:
        results = _without_progress(screen)
        if results != shown:
            frames.append(Frame(screen, RESULT_FRAME_S))
        elif at - shown_at >= PROGRESS_EVERY_S:
            frames.append(Frame(screen, PROGRESS_FRAME_S))
        else:
            continue
        shown_at, shown = at, results
    return [*frames, Frame(screens[-1][1], LAST_FRAME_S)]


def _without_progress(screen: Screen) -> Screen:
    lines = [line for line in screen if line]
    return tuple(lines[:-1])


def draw(frames: list[Frame], title: str, took_s: float) -> str:
    """Return the image.

    Args:
        frames: The screens in order.
        title: The command, which is shown in the first line.
        took_s: Real duration of the command in seconds.
    """
    total_s = sum(frame.seconds for frame in frames)
    width, height = 2 * MARGIN_PX + COLUMNS * CELL_PX, 2 * MARGIN_PX + (ROWS + 2) * LINE_PX
    styles, groups, start_s = [], [], 0.0
    for number, frame in enumerate(frames):
        begin, end = (100 * at / total_s for at in (start_s, start_s + frame.seconds))
        start_s += frame.seconds
        hidden = "" if end >= 99.999 else f"{end:.3f}%{{visibility:hidden}}"
        before = "0%{visibility:hidden}" if number else ""
        styles.append(f"@keyframes k{number}{{{before}{begin:.3f}%{{visibility:visible}}{hidden}}}")
        texts = "".join(_line(cells, row) for row, cells in enumerate(frame.screen) if cells)
        groups.append(f'<g class="f" style="animation:k{number} {total_s:.2f}s step-end infinite">{texts}</g>')
    minutes, seconds = divmod(round(took_s), 60)
    head = f"$ {title}   (took {minutes}:{seconds:02d}; waiting is shortened here)"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" width="{width:.0f}" height="{height}" '
        f'role="img" aria-label="{escape(head)}"><style>text{{font:{FONT_PX}px ui-monospace,SFMono-Regular,Menlo,Consolas,'
        f"DejaVu Sans Mono,monospace;white-space:pre}}.b{{font-weight:700}}.f{{visibility:hidden}}{''.join(styles)}"
        "@media (prefers-reduced-motion:reduce){.f{animation:none!important}.f:last-of-type{visibility:visible}}</style>"
        f'<rect width="100%" height="100%" rx="8" fill="{BACKGROUND}"/>'
        f'<text x="{MARGIN_PX}" y="{MARGIN_PX + FONT_PX}" fill="{DIM}" xml:space="preserve">{escape(head)}</text>'
        f"{''.join(groups)}</svg>\n"
    )


def _line(cells: tuple[Cell, ...], row: int) -> str:
    """One line of a screen as text elements, each of one style."""
    y = MARGIN_PX + FONT_PX + (row + 2) * LINE_PX
    parts, start = [], 0
    while start < len(cells):
        end = start
        while end < len(cells) and cells[end][1:] == cells[start][1:]:
            end += 1
        _, colour, is_bold = cells[start]
        text = "".join(cell[0] for cell in cells[start:end])
        if text.strip():
            bold = ' class="b"' if is_bold else ""
            x = MARGIN_PX + start * CELL_PX
            length = f' textLength="{len(text) * CELL_PX:.1f}"'  # columns stay aligned in any font
            parts.append(
                f'<text x="{x:.1f}" y="{y}" fill="{colour}"{bold}{length} xml:space="preserve">{escape(text)}</text>'
            )
        start = end
    return "".join(parts)


if __name__ == "__main__":
    main()
