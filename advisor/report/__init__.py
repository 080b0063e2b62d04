"""Report phase: a `Report` as text for people, JSON for programs, one HTML page, and in a notebook; no opinion of its own.

In: `Report`.  Out: lines on a console (`text`), the public report.json (`json`, `report.schema.json`), report.html (`html`), a
notebook's cell (`notebook`).
"""

from __future__ import annotations

from advisor.model.outcome import Report


def _in_notebook(report: Report) -> str:
    from advisor.report.notebook import report_to_cell

    return report_to_cell(report)


Report.notebook = _in_notebook
