"""Reads the lines of the user's source around bottlenecks and findings for report.json.

In: a `Report`.  Out: `Source` objects. The lines are read while the report is made, so that report.html needs nothing but
report.json, wherever it is opened.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from advisor.model.calls import Call, Site
from advisor.model.outcome import Report
from advisor.model.regular_files import read_regular
from advisor.report.places import MAX_SOURCE_BYTES, clean, source_line
from advisor.report.report_format import Source

LINES_AROUND = 5
MAX_LINE = 400
"""Characters of a source line that are kept."""
MAX_EXCERPTS = 40


def read_sources(report: Report) -> list[Source]:
    """The lines around every call that a bottleneck or a finding points at, as long as the recorded call is still there."""
    excerpts: dict[tuple[str, int], Source] = {}
    for call in _calls_pointed_at(report):
        site = call.site
        if site is None or (site.file, site.line) in excerpts or len(excerpts) >= MAX_EXCERPTS:
            continue
        if source_line(call) is None:
            continue
        excerpt = _excerpt(site)
        if excerpt is not None:
            excerpts[site.file, site.line] = excerpt
    return list(excerpts.values())


def _calls_pointed_at(report: Report) -> Iterable[Call]:
    analysis = report.analysis
    for pipeline in analysis.pipelines:
        if pipeline.bottleneck is not None:
            call = pipeline.iterator(pipeline.bottleneck.iterator_id).main_call
            if call is not None:
                yield call
    by_place = {(call.site.file, call.site.line, call.site.column): call for call in analysis.calls if call.site}
    for finding in report.findings:
        site = finding.site
        call = by_place.get((site.file, site.line, site.column)) if site else None
        if call is not None:
            yield call


def _excerpt(site: Site) -> Source | None:
    path = Path(site.file)
    try:
        if path.stat().st_size > MAX_SOURCE_BYTES:
            return None
        lines = read_regular(path).decode("utf-8").splitlines()
    except (OSError, ValueError):
        return None
    first = max(1, site.line - LINES_AROUND)
    last = min(len(lines), max(site.line, min(site.end_line, site.line + LINES_AROUND)) + LINES_AROUND)
    return Source(site.file, site.line, first, [clean(line)[:MAX_LINE] for line in lines[first - 1 : last]])
