"""report.html: one self-contained file, built from report.json alone.

In: the dictionary of report.json.  Out: a page with its styles, scripts, libraries and data embedded, as bytes or written to a
file atomically.

    page.py       assembles the page: template, assets, Content-Security-Policy
    wording.py    template filters: numbers as text, texts made safe and short
    graphs.py     input pipelines as nodes and edges with their figures
    charts.py     data of the charts and the timeline
    templates/    one file per page of the report
    assets/       styles and scripts; vendor/ holds unmodified libraries (THIRD_PARTY.md)
"""

from __future__ import annotations

from advisor.report.html.page import REPORT_HTML_NAME, content_security_policy, report_to_html, write_html

__all__ = ["REPORT_HTML_NAME", "content_security_policy", "report_to_html", "write_html"]
