"""`advisor export`: convert runs to the formats of other programs.

In: run folders, logdirs, profiles, report.json files or TF1 timelines, and a format.  Out: a file, a folder of tables, or stdout.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, cast

import click

from advisor.model.errors import AdvisorError
from advisor.model.outputs import check_output, output_file
from advisor.model.own_files import MARKDOWN_MARK, FileKind, read_head

FORMATS = ("perfetto", "csv", "sarif", "markdown", "graph")
Replaceable = FileKind | Callable[[Path], bool]
_KINDS = {
    "perfetto": FileKind.TRACE,
    "sarif": FileKind.SARIF,
    "markdown": FileKind.MARKDOWN,
    "graph": FileKind.GRAPH,
}


@click.command("export", short_help="Convert runs to the formats of other programs.")
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RUN...")
@click.option("--to", "kind", required=True, type=click.Choice(FORMATS), help="Output format.")
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="PATH", help="Output file (csv: folder); default: stdout."
)
@click.option("--table", metavar="NAME", help="csv: write only this table.")
@click.option("--align", type=click.Choice(["start", "clock"]), default="start", help="perfetto: how runs are aligned.",
              show_default=True)  # fmt: skip
def command(runs: tuple[Path, ...], kind: str, out: Path | None, table: str | None, align: str) -> None:
    """Convert each RUN to the format of another program; several runs become one document.

    \b
    perfetto  one timeline of all events (Chrome trace JSON) for ui.perfetto.dev, with separate tracks for
              each run; RUN may also be a TF1 timeline*.json; --out NAME.gz compresses it
    csv       tables with full precision: all into the folder --out, or one (--table) to stdout
    sarif     findings as code-scanning results at their lines (SARIF 2.1.0)
    markdown  a summary for a pull request or an issue
    graph     iterators, calls and what consumes what, in networkx' node-link format (JSON)
    """  # noqa: D301 (click's marker is the character \b)
    if table is not None and kind != "csv":
        raise click.UsageError("--table applies only to --to csv.")
    if out is not None and kind != "csv":
        _check_out(out, runs, _KINDS[kind])
    if kind == "perfetto":
        from advisor.export.merged_timeline import merge_runs

        if out is None and sys.stdout.isatty():
            raise click.UsageError("A timeline is megabytes of JSON: name a file with --out.")
        _write(merge_runs(runs, align), out, runs, FileKind.TRACE)
    elif kind == "csv":
        _write_tables(runs, out, table)
    elif kind == "sarif":
        reports = _reports(runs)
        with _telling_damage(runs):
            data = _sarif([report for _, report in reports])
        _write([data], out, runs, FileKind.SARIF)
    elif kind == "graph":
        from advisor.export.node_link import reports_to_node_link

        reports = _reports(runs)
        with _telling_damage(runs):
            text = reports_to_node_link(reports)
        _write([text.encode("utf-8", "backslashreplace")], out, runs, FileKind.GRAPH)
    else:
        from advisor.export.markdown import report_to_markdown

        reports = _reports(runs)
        with _telling_damage(runs):
            texts = [report_to_markdown(report) for _, report in reports]
        _write(["\n".join([MARKDOWN_MARK, *texts]).encode("utf-8", "backslashreplace")], out, runs, FileKind.MARKDOWN)


def _sarif(reports: Sequence[dict[str, Any]]) -> bytes:
    from advisor.commands.rules import rules_here
    from advisor.export.sarif import omissions, report_to_sarif
    from advisor.report.json_format import to_bytes

    pages = {loaded.id: loaded.page for loaded in rules_here(())}
    log = report_to_sarif(reports, pages)
    for sentence in omissions(log):
        click.echo(sentence, err=True)
    return to_bytes(log)


def _write_tables(runs: Sequence[Path], out: Path | None, table: str | None) -> None:
    from advisor.export.csv_tables import TABLES, table_to_csv

    if table is not None and table not in TABLES:
        raise click.UsageError(f"--table {table}: there is no such table; choose from {', '.join(TABLES)}.")
    if table is None and out is None:
        raise click.UsageError("CSV consists of several tables: name a folder with --out or one table with --table.")
    reports = _reports(runs)
    if table is not None:
        if out is not None:
            _check_out(out, runs, _is_table(table))
        with _telling_damage(runs):
            text = table_to_csv(table, reports)
        _write([text.encode("utf-8", "backslashreplace")], out, runs, _is_table(table))
        return
    assert out is not None
    with _telling_damage(runs):
        texts = {name: table_to_csv(name, reports) for name in TABLES}
    texts = {name: text for name, text in texts.items() if text}
    _make_folder(out)
    for name in texts:
        _check_out(out / f"{name}.csv", runs, _is_table(name))
    for name, text in texts.items():
        _write([text.encode("utf-8", "backslashreplace")], out / f"{name}.csv", runs, _is_table(name))


def _is_table(name: str) -> Callable[[Path], bool]:
    """Return a predicate: is this file the same table from an earlier export?"""
    from advisor.export.csv_tables import HEADERS

    return lambda path: read_head(path).startswith(HEADERS[name].encode())


def _make_folder(out: Path) -> None:
    """Create the folder for the tables; raise AdvisorError if that fails."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise AdvisorError(
            f"The folder {out} cannot be created ({error.strerror or error}): choose another --out."
        ) from None


@contextlib.contextmanager
def _telling_damage(runs: Sequence[Path]) -> Iterator[None]:
    """Turn errors caused by a damaged or edited report.json into one AdvisorError."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        names = ", ".join(map(str, runs))
        raise AdvisorError(
            f"The report.json of {names} is damaged or was edited ({type(error).__name__}: {str(error)[:200]}): "
            "analyse the run again."
        ) from error


def _reports(runs: Sequence[Path]) -> list[tuple[str, dict[str, Any]]]:
    """Return the name and report of each run: its report.json (with the results of `advisor fix`), or a new analysis."""
    return [(run.resolve().name, _report(run)) for run in runs]


def _report(run: Path) -> dict[str, Any]:
    import json

    from advisor.report.report_json import REPORT_NAME, report_to_bytes
    from advisor.report.saved_report import parse_report
    from advisor.workflows.analyze import Request, analyze_run, load

    file = run / REPORT_NAME if run.is_dir() else run
    if run.is_dir() and file.exists() and not file.is_file():
        raise AdvisorError(f"{file} is not a regular file: remove it and run `advisor analyze {run}` to recreate it.")
    if file.name.endswith(".json") and file.is_file():
        report = parse_report(file.read_bytes())
        if report is not None:
            return report
        if not run.is_dir():
            raise AdvisorError(f"{run} is not a report.json of this version: name its run folder instead.")
    rules, settings = load(Request(path=run))
    new_report: dict[str, Any] = json.loads(report_to_bytes(analyze_run(run, rules, settings)))
    return new_report


def _check_out(out: Path, runs: Sequence[Path], kind: Replaceable) -> None:
    """Raise AdvisorError if `out` is one of the runs or a file that this command did not write."""
    if any(out.resolve() == run.resolve() for run in runs):
        raise AdvisorError(f"{out} is one of the runs to export: choose another path with --out.")
    check_output("--out", out, kind)


def _write(pieces: Iterable[bytes], out: Path | None, runs: Sequence[Path], kind: Replaceable) -> None:
    """Write the pieces to `out` atomically, compressed if its name ends with `.gz`; None writes to stdout."""
    if out is None:
        for piece in pieces:
            sys.stdout.buffer.write(piece)
        sys.stdout.flush()
        return
    _check_out(out, runs, kind)
    with output_file("--out", out, kind) as file, _packed(file, out) as target:
        for piece in pieces:
            target.write(piece)


@contextlib.contextmanager
def _packed(file: BinaryIO, out: Path) -> Iterator[BinaryIO]:
    """Yield the file, or a gzip stream into it if the name ends with `.gz`."""
    if not out.name.endswith(".gz"):
        yield file
        return
    import gzip

    with gzip.GzipFile(fileobj=file, mode="wb", compresslevel=6) as packed:
        yield cast(BinaryIO, packed)
