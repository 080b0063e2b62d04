"""Renders a report as the output of a notebook cell: verdict, bottleneck, what to change.

In: `Report`.  Out: HTML without scripts, small enough to be stored in the notebook; report.html in the run folder has the rest.
"""

from __future__ import annotations

from advisor.model.outcome import Report
from advisor.report.html.page import render
from advisor.report.html.wording import harmless
from advisor.report.report_json import report_to_dict


def report_to_cell(report: Report) -> str:
    """Return the cell's HTML. All texts from the run are escaped."""
    safe = harmless({**report_to_dict(report), "timeline": [], "statistics": None})
    return render("notebook.html.j2", report=safe)
