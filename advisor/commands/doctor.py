"""`advisor doctor`: one page about this machine and installation, to be quoted in a bug report.

In: options.  Out: lines or JSON on stdout. Problems are lines too, so the exit code is 0.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from advisor.commands.output import console_for_people, progress_line

if TYPE_CHECKING:
    from rich.console import Console

    from advisor.workflows.doctor import Checkup

_GENERATOR = "advisor doctor"
"""Marks a page, so that no other file is replaced by one."""


@click.command("doctor", short_help="Describe this machine and installation.")
@click.option("--json", "json_path", metavar="PATH|-", help="Write the page as JSON; - for stdout.")
@click.option("--calibrate", is_flag=True, help="Measure the costs of this machine again.")
def command(json_path: str | None, calibrate: bool) -> None:
    """Describe this machine and installation on one page, for a bug report.

    Costs of this machine that predictions use are measured if they are unknown, which takes a few seconds.
    """
    from advisor.model.outputs import check_output
    from advisor.workflows.doctor import check_up

    if json_path not in (None, "-"):
        check_output("--json", Path(json_path), _is_page)  # before seconds of work
    with progress_line(is_quiet=False) as on_progress:
        checkup = check_up(calibrate, on_progress)
    if json_path != "-":
        _print(checkup, console_for_people())
    if json_path is not None:
        _write_json(checkup, json_path)


def _print(checkup: Checkup, console: Console) -> None:
    from rich.table import Table
    from rich.text import Text

    from advisor.report.lines import print_lines
    from advisor.report.places import clean

    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    section = ""
    for check in checkup.checks:
        if check.section != section:
            if section:
                table.add_row("", "")
            section = check.section
            table.add_row(Text(section.capitalize(), style="bold"), "")
        table.add_row(Text(f"  {check.name}"), Text(clean(check.value), style="" if check.is_ok else "yellow"))
    print_lines(console, table)


def _write_json(checkup: Checkup, json_path: str) -> None:
    from dataclasses import asdict

    from advisor.model.outputs import write_output

    page = {
        "generator": _GENERATOR,
        "checks": [asdict(check) for check in checkup.checks],
        "calibration": checkup.calibration and asdict(checkup.calibration),
    }
    data = json.dumps(page, indent=2, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"
    if json_path == "-":
        sys.stdout.buffer.write(data)
        sys.stdout.flush()
    else:
        write_output("--json", Path(json_path), _is_page, data)


def _is_page(path: Path) -> bool:
    """Whether an existing file is a page of this command, which may be replaced."""
    try:
        page = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(page, dict) and page.get("generator") == _GENERATOR
