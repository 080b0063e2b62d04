"""Report phase: renders a `Report` as text, JSON, an HTML page or a notebook cell; it computes nothing.

In: `Report`.  Out: lines on a console (`report_text`), the public report.json (`report_json`, `report.schema.json`), report.html
(`html`), a notebook cell (`notebook`).
"""

from __future__ import annotations

from advisor.model.outcome import Report


def _in_notebook(report: Report) -> str:
    from advisor.report.notebook import report_to_cell

    return report_to_cell(report)


Report.notebook = _in_notebook
