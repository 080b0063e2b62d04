"""`advisor compare`: compare two scripts in alternating runs, or two saved runs.

In: two targets.  Out: step time, input wait, rate, memory and every iterator, before and after.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from advisor.commands.output import console_for_people, progress_line, write_json
from advisor.commands.script_target import json_option, request_of, run_options

if TYPE_CHECKING:
    from advisor.model.run_comparison import RunComparison
    from advisor.workflows.analyze import Request


@click.command("compare", options_metavar="[OPTIONS]", short_help="Compare two scripts, or two saved runs.")
@click.argument("before", metavar="BEFORE")
@click.argument("after", metavar="AFTER")
@json_option
@run_options
@click.option("--quiet", is_flag=True, help="Print neither report nor progress.")
def command(before: str, after: str, json_path: str | None, quiet: bool, **options: Any) -> int:  # noqa: ANN401
    """Compare BEFORE and AFTER: two scripts, whose runs alternate, or two saved runs.

    Quote a script together with its arguments: "train.py --batch 64".
    """
    from advisor.workflows.analyze import load
    from advisor.workflows.compare import announcement, compare

    if json_path not in (None, "-"):
        from advisor.model.outputs import check_output
        from advisor.model.own_files import FileKind

        check_output("--json", Path(json_path or ""), FileKind.COMPARISON)
    requests = [_request(target, options) for target in (before, after)]
    if requests[0].is_saved_run != requests[1].is_saved_run:
        raise click.UsageError("A script cannot be compared with a saved run: give two scripts or two saved runs.")
    loaded = [load(request) for request in requests]
    if not quiet and not requests[0].is_saved_run:
        click.echo(announcement(), err=True)
    rules, settings = loaded[0]
    with progress_line(quiet) as on_progress:
        comparison = compare(requests[0], requests[1], rules, settings, on_progress)
    _emit_json(comparison, json_path)
    if not quiet:
        from advisor.report.comparison_text import print_comparison

        print_comparison(comparison, console_for_people(to_stderr=json_path == "-"))
    if not requests[0].is_saved_run:
        from advisor.commands.runs import say_pruned
        from advisor.workflows.stored_runs import prune

        say_pruned(prune(settings.keep_runs, settings.keep_runs_bytes), quiet)
    return 0


def _request(target: str, options: dict[str, Any]) -> Request:
    """Build the request for a path, or for a script quoted together with its arguments."""
    words = [target] if Path(target).exists() else shlex.split(target) or [target]
    return request_of(words[0], tuple(words[1:]), {**options, "show_output": False})


def _emit_json(comparison: RunComparison, json_path: str | None) -> None:
    from advisor.model.own_files import FileKind
    from advisor.report.comparison_json import comparison_to_bytes

    write_json(json_path, FileKind.COMPARISON, lambda: comparison_to_bytes(comparison))
