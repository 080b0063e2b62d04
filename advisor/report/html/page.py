"""Assembles the page: template, styles, scripts, data, and a Content-Security-Policy that blocks everything else.

In: the dictionary of report.json.  Out: UTF-8 HTML.

Everything from a profile, a recording or a source file is treated as text: templates escape it, data is in an inert JSON block,
and the policy allows exactly the scripts and styles below, by hash, and no connections.
"""

from __future__ import annotations

import base64
import hashlib
import json
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.model.run_folder import write_whole
from advisor.report.html.charts import chart_data
from advisor.report.html.graphs import pipeline_views
from advisor.report.html.sections import sections_of
from advisor.report.html.wording import FILTERS, harmless

if TYPE_CHECKING:
    import jinja2

Json = dict[str, object]

REPORT_HTML_NAME = "report.html"
SCRIPTS = (
    "vendor/d3.min.js",
    "vendor/plot.min.js",
    "vendor/dagre.min.js",
    "frame.js",
    "tables.js",
    "graph.js",
    "charts.js",
    "timeline.js",
)
"""In order of execution."""
LIBRARIES = ("D3", "Plot", "dagre")
PLOT_STYLE = """:where(.plot-d6a7b5) {
  --plot-background: white;
  display: block;
  height: auto;
  height: intrinsic;
  max-width: 100%;
}
:where(.plot-d6a7b5 text),
:where(.plot-d6a7b5 tspan) {
  white-space: pre;
}"""
"""The style element that Observable Plot adds to each chart, allowed by its hash. A browser test fails if Plot changes it."""


def report_to_html(report: Json) -> bytes:
    """Render the page.

    Args:
        report: The dictionary of a report.json.

    Raises:
        KeyError, TypeError: The dictionary is not that of a report.json.
    """
    safe = harmless(report)
    assert isinstance(safe, dict)
    views = pipeline_views(safe)
    text = render(
        "page.html.j2",
        report=safe,
        views=views,
        statistics=safe.get("statistics") or {},
        sections=sections_of(safe),
        styles=_styles(),
        scripts=_scripts(),
        licences=[(name, _asset(f"vendor/{name.lower()}.LICENSE")) for name in LIBRARIES],
        policy="; ".join(f"{name} {value}" for name, value in content_security_policy().items()),
        data=_inert({"pipelines": [view["drawn"] for view in views], **chart_data(safe)}),
    )
    return text.encode("utf-8", "backslashreplace")


def render(template: str, **values: object) -> str:
    """Render a template of this package; values are escaped."""
    return _environment().get_template(template).render(**values)


def write_html(report: Json, path: Path) -> None:
    """Write the page to `path` atomically.

    Raises:
        AdvisorError: The file cannot be written.
    """
    write_whole(path, report_to_html(report))


def content_security_policy() -> dict[str, str]:
    """Return the directives of the page's Content-Security-Policy, by name. A server can send them with the page."""
    return {
        "default-src": "'none'",
        "script-src": " ".join(map(_hash, _scripts())),
        "style-src": " ".join(map(_hash, [*_styles(), PLOT_STYLE])),
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
        "require-trusted-types-for": "'script'",
    }


def _styles() -> list[str]:
    return [_asset("report.css")]


def _scripts() -> list[str]:
    return [_asset(name) for name in SCRIPTS]


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _inert(value: object) -> str:
    """JSON that cannot terminate the enclosing HTML element, whatever its texts contain."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


@cache
def _asset(name: str) -> str:
    """A style, script or library, without the line that names its source map."""
    text = resources.files(__package__).joinpath("assets", *name.split("/")).read_text("utf-8")
    lines = [line for line in text.split("\n") if not line.startswith("//# sourceMappingURL=")]
    return "\n".join(lines).strip("\n")


@cache
def _environment() -> jinja2.Environment:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader(__package__),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(FILTERS)
    return environment
