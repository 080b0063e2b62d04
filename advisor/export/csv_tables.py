"""The report as CSV tables, with full precision.

In: (name of the run, dictionary of report.json) pairs.  Out: CSV text of a table; every row begins with its run. A new figure of
the report becomes a column by itself (`advisor/report/report_format.py`); columns that are joined or left out are decided here.

Spreadsheets evaluate text that begins with `=`, `+`, `-` or `@` (also in full-width forms, or after a tab or line break) as a
formula; such text is prefixed with an apostrophe, as spreadsheets do.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

Json = dict[str, Any]
Runs = Sequence[tuple[str, Json]]

MAX_CELL = 32_000
"""Maximum number of characters in a cell; the limit of spreadsheets is 32,767."""
_FORMULA = (
    "=",
    "+",
    "-",
    "@",
    "\t",
    "\r",
    "\n",
    "＝",
    "＋",
    "－",
    "＠",
)  # full-width forms are formulas in East Asian spreadsheets


def _verdicts(report: Json) -> Iterator[Json]:
    yield {"target": report["target"], **_flat(report["verdict"])}


def _pipelines(report: Json) -> Iterator[Json]:
    left_out = ("iterators", "already_done", "notes", "slowest_calls")
    for pipeline in report["pipelines"]:
        yield _flat({key: value for key, value in pipeline.items() if key not in left_out})


def _iterators(report: Json) -> Iterator[Json]:
    for pipeline in report["pipelines"]:
        for iterator in pipeline["iterators"]:
            calls = " + ".join(call["text"] or call["method"] for call in iterator["calls"])
            site = next((call for call in iterator["calls"] if call["file"]), {"file": None, "line": None})
            plain = {key: value for key, value in iterator.items() if key not in ("calls", "ops", "lines")}
            yield {"pipeline": pipeline["id"], **plain, "calls": calls, "file": site["file"], "line": site["line"]}


def _findings(report: Json) -> Iterator[Json]:
    for rank, finding in enumerate(report["findings"], 1):
        yield {"rank": rank, **_flat({key: value for key, value in finding.items() if key not in ("evidence", "diff")})}


def _fixes(report: Json) -> Iterator[Json]:
    yield from map(_flat, report["fixes"])


def _rows_of(section: str) -> Callable[[Json], Iterator[Json]]:
    """Return a function that yields the rows of one table of the statistics; `input.ops` is a nested table."""

    def rows(report: Json) -> Iterator[Json]:
        section_rows: Any = report.get("statistics")
        for key in section.split("."):
            section_rows = (section_rows or {}).get(key)
        yield from map(_flat, section_rows or ())

    return rows


def _steps(report: Json) -> Iterator[Json]:
    for host in (report.get("statistics") or {}).get("hosts") or ():
        for step in host["steps"]:
            yield {"host": host["host"], **_flat(step)}


def _memory(report: Json) -> Iterator[Json]:
    for allocator in ((report.get("statistics") or {}).get("memory") or {}).get("allocators", ()):
        for user in allocator["users"]:
            yield {"host": allocator["host"], "allocator": allocator["allocator"], **_flat(user)}


TABLES: dict[str, Callable[[Json], Iterator[Json]]] = {
    "verdicts": _verdicts,
    "pipelines": _pipelines,
    "iterators": _iterators,
    "findings": _findings,
    "fixes": _fixes,
    "steps": _steps,
    "input_ops": _rows_of("input.ops"),
    "ops": _rows_of("ops"),
    "op_types": _rows_of("op_types"),
    "kernels": _rows_of("kernels"),
    "memory": _memory,
}
"""Name of a table -> its rows."""
HEADERS = {
    "verdicts": "run,target,input_bound",
    "pipelines": "run,id,host,is_main",
    "iterators": "run,pipeline,id,parent_id",
    "findings": "run,rank,rule,title",
    "fixes": "run,rule,site",
    "steps": "run,host,number,start_ns",
    "input_ops": "run,name,count,total_ns",
    "ops": "run,side,type,name",
    "op_types": "run,side,type,name",
    "kernels": "run,name,registers_per_thread",
    "memory": "run,host,allocator,op,region",
}
"""Name of a table -> start of its first line, by which an earlier export is recognised."""


def table_to_csv(name: str, runs: Runs) -> str:
    """Return one table of all runs as CSV; empty if no run has a row. Columns are in order of first occurrence."""
    rows = [{"run": run, **row} for run, report in runs for row in TABLES[name](report)]
    if not rows:
        return ""
    columns = list(dict.fromkeys(column for row in rows for column in row))
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(columns)
    writer.writerows([cell_text(row.get(column)) for column in columns] for row in rows)
    return text.getvalue()


def _flat(row: Json) -> Json:
    """Flatten inner objects to separate columns (`site.line`), and join lists to text."""
    flat: Json = {}
    for key, value in row.items():
        if isinstance(value, dict):
            flat.update({f"{key}.{inner}": entry for inner, entry in _flat(value).items()})
        else:
            flat[key] = value
    return flat


def cell_text(value: object) -> object:
    """Return the value for a cell: text is cut to the limit of spreadsheets, and is no formula."""
    if isinstance(value, str):
        text = value[:MAX_CELL]
        return f"'{text}" if text.startswith(_FORMULA) else text
    if isinstance(value, list | tuple):
        return cell_text(" ".join(map(str, _scalars(value))))
    return "" if value is None else value


def _scalars(values: Iterable[object]) -> Iterator[object]:
    return (value for value in values if isinstance(value, str | int | float))
