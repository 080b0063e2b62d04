"""Runs the demo and shows its report in the documentation, so that the one shown there is always a real one.

In: the demo.  Out: the text of its report between the markers of a tutorial, and its beginning as a picture for README.md.
"""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

import advisor
from advisor.model.outcome import Report
from advisor.report.report_text import print_report

ROOT = Path(__file__).parents[1]
TUTORIAL = ROOT / "docs/tutorials/first-report.md"
PICTURE = ROOT / "docs/images/report.svg"
BEGIN, END = "<!-- report: pasted by make readme -->", "<!-- end of report -->"
COMMAND = ["advisor", "analyze", "examples/flowers_like.py"]
WIDTH = 110
"""Columns of the text and of the picture."""
_SECOND_CHANGE = re.compile(r" *2\. ")
_WEB_FONT = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)


def main() -> None:
    """Run the demo, replace what is between the markers, and draw the picture."""
    os.chdir(ROOT)  # paths in the report are relative to it
    with tempfile.TemporaryDirectory() as folder:
        run = str(Path(folder, "run"))
        done = subprocess.run(
            [sys.executable, "-m", *COMMAND[:2], "--out", run, *COMMAND[2:]],
            env={**os.environ, "COLUMNS": str(WIDTH)},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        picture = draw(advisor.analyze_run(run))
    report = "\n".join(line for line in done.stdout.splitlines() if not line.startswith("Run folder:"))
    before, _, rest = TUTORIAL.read_text("utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    block = f"{BEGIN}\n\n```console\n$ {' '.join(COMMAND)}\n{report}\n```\n\n{END}"
    TUTORIAL.write_text(before + block + after, "utf-8")
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(picture, "utf-8")


def draw(report: Report) -> str:
    """Draw a report up to its second change, as in a terminal.

    Returns:
        An SVG image that uses the reader's fonts, as web pages do not load fonts for images.
    """
    console = Console(file=io.StringIO(), record=True, width=WIDTH, force_terminal=True, color_system="truecolor")
    print_report(report, console)
    styled = [Text.from_ansi(line) for line in console.export_text(styles=True).splitlines()]
    end = next((number for number, line in enumerate(styled) if _SECOND_CHANGE.match(line.plain)), len(styled))
    while end and not styled[end - 1].plain.strip():
        end -= 1
    screen = Console(file=io.StringIO(), record=True, width=WIDTH, force_terminal=True, color_system="truecolor")
    screen.print(Text(f"$ {' '.join(COMMAND)}", "bold"))
    for line in styled[:end]:
        screen.print(line, soft_wrap=True)
    return _WEB_FONT.sub("", screen.export_svg(title="tfdata-advisor", unique_id="report"))


if __name__ == "__main__":
    main()
