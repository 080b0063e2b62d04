"""report.html: one file that needs nothing but itself, made of report.json alone.

In: the dictionary of report.json.  Out: bytes of a page with its styles, scripts, libraries and data inside; a file written whole
or not at all.

    page.py       puts the page together: template, assets, Content-Security-Policy
    wording.py    what templates call: numbers to text, texts made harmless and short
    graphs.py     input pipelines as nodes, edges and the figures beside them
    charts.py     the numbers that charts and the timeline are drawn from
    templates/    one file per page of the report
    assets/       styles and scripts; vendor/ holds libraries as they are released (THIRD_PARTY.md)
"""

from __future__ import annotations

from advisor.report.html.page import REPORT_HTML_NAME, report_to_html, write_html

__all__ = ["REPORT_HTML_NAME", "report_to_html", "write_html"]
