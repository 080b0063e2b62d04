"""The parts of report.json that only the HTML report draws: lanes of the window, slowest calls, the source around a place.

In: model objects and sites.  Out: plain dictionaries. Source lines are read from the user's files while the report is made, so
that report.html needs nothing but report.json, wherever it is opened.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from advisor.model.outcome import Report
from advisor.model.pipeline import RootCall
from advisor.model.recording import Call, Site
from advisor.model.regular_files import read_regular
from advisor.model.window_timeline import HostView, Span
from advisor.report.places import MAX_SOURCE_BYTES, clean, source_line

LINES_AROUND = 5
MAX_LINE = 400
"""Characters of a source line that are kept."""
MAX_EXCERPTS = 40

Json = dict[str, object]


def root_calls(calls: Iterable[RootCall]) -> list[Json]:
    """The slowest calls of a root; columns in the order of the pipeline's iterators."""
    return [
        {
            "start_ns": call.start_ns,
            "duration_ns": call.duration_ns,
            "num_calls": list(call.num_calls),
            "total_ns": list(call.total_ns),
            "self_ns": list(call.self_ns),
            "blame_ns": list(call.blame_ns),
            "on_critical_path": [place for place, is_on in enumerate(call.is_on_path) if is_on],
            "bottleneck": call.bottleneck,
        }
        for call in calls
    ]


def host_view(view: HostView) -> Json:
    """One host's lanes; a span is [level, start_ns, duration_ns, name, count, busy_ns]."""
    return {
        "host": view.host,
        "duration_ns": view.duration_ns,
        "resolution_ns": view.resolution_ns,
        "names": list(view.names),
        "kinds": list(view.kinds),
        "lanes": [
            {"name": lane.name, "is_device": lane.is_device, "spans": [_span(span) for span in lane.spans]}
            for lane in view.lanes
        ],
        "num_events": view.num_events,
        "num_lanes": view.num_lanes,
    }


def _span(span: Span) -> list[int]:
    return [span.level, span.start_ns, span.duration_ns, span.name, span.count, span.busy_ns]


def sources(report: Report) -> list[Json]:
    """The lines around every call that a bottleneck or a finding points at, as long as the recorded call stands there."""
    excerpts: dict[tuple[str, int], Json] = {}
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


def _excerpt(site: Site) -> Json | None:
    path = Path(site.file)
    try:
        if path.stat().st_size > MAX_SOURCE_BYTES:
            return None
        lines = read_regular(path).decode("utf-8").splitlines()
    except (OSError, ValueError):
        return None
    first = max(1, site.line - LINES_AROUND)
    last = min(len(lines), max(site.line, min(site.end_line, site.line + LINES_AROUND)) + LINES_AROUND)
    return {
        "file": site.file,
        "line": site.line,
        "first_line": first,
        "lines": [clean(line)[:MAX_LINE] for line in lines[first - 1 : last]],
    }
