"""Reads report.json again.

In: the bytes of a file.  Out: its dictionary, if it is a report of this version. Its values are those of the file, unchecked.
"""

from __future__ import annotations

import json
from typing import Any

from advisor.report.json_format import SCHEMA_VERSION
from advisor.report.report_json import load_schema


def parse_report(data: bytes) -> dict[str, Any] | None:
    """Return the dictionary of a report.json; None for anything else, and for an older report that lacks fields."""
    try:
        report = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(report, dict) or report.get("schema_version") != SCHEMA_VERSION:
        return None
    required = load_schema()["required"]
    return report if isinstance(required, list) and set(required) <= set(report) else None
