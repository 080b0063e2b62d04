"""Findings as code-scanning results at their lines: SARIF 2.1.0.

In: dictionaries of report.json, and the pages of the rules that are known here.  Out: one SARIF log; each report is a run in it.

Format: https://docs.oasis-open.org/sarif/sarif/v2.1.0/
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

if TYPE_CHECKING:
    from advisor.engine.page import Page

Json = dict[str, Any]

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def report_to_sarif(reports: Sequence[Json], pages: Mapping[str, Page]) -> Json:
    """The log. `pages`: rule id -> page; a rule without one (of somebody's own) has its id alone."""
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [_run(report, pages) for report in reports]}


def _run(report: Json, pages: Mapping[str, Page]) -> Json:
    ids = list(dict.fromkeys(finding["rule"] for finding in report["findings"]))
    return {
        "tool": {
            "driver": {
                "name": "tfdata-advisor",
                "semanticVersion": report["advisor_version"] or "0",
                "rules": [_rule(rule, pages.get(rule)) for rule in ids],
            }
        },
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {"SRCROOT": {"uri": Path.cwd().as_uri() + "/"}},
        "invocations": [{"executionSuccessful": True, "toolExecutionNotifications": _notifications(report)}],
        "results": [_result(finding, ids.index(finding["rule"]), report) for finding in report["findings"]],
        "properties": {"target": report["target"], "verdict": report["verdict"]["sentence"]},
    }


def _rule(rule: str, page: Page | None) -> Json:
    described: Json = {"id": rule, "defaultConfiguration": {"level": "warning"}}
    if page is None:
        return described
    markdown = "\n\n".join(f"## {heading}\n\n{text}" for heading, text in page.sections.items())
    summary = " ".join(page.summary.split())
    return {
        **described,
        "name": "".join(part.capitalize() for part in rule.split("-")),
        "shortDescription": {"text": summary},
        "fullDescription": {"text": summary},
        "help": {"text": markdown, "markdown": f"{page.summary}\n\n{markdown}"},
        "properties": {"tags": ["performance", "tensorflow", "tf.data"]},
    }


def _result(finding: Json, rule_index: int, report: Json) -> Json:
    text = finding["title"] + ". " + finding["because"]
    if finding["predicted_speedup"] and finding["predicted_speedup"]["value"] is not None:
        text += f" Predicted speedup {finding['predicted_speedup']['value']:.2f}x."
    result: Json = {
        "ruleId": finding["rule"],
        "ruleIndex": rule_index,
        "level": "warning" if report["verdict"]["input_bound"] else "note",
        "message": {"text": text.replace("](", "] (")},  # `[text](target)` would be a link, wherever it came from
        "properties": {
            "predictedSpeedup": finding["predicted_speedup"],
            "memoryBytes": finding["memory_bytes"],
            "safety": finding["safety"],
            "diff": finding["diff"],
        },
    }
    site = finding["site"]
    if site:
        uri = _location(site["file"])
        region = {"startLine": site["line"], "startColumn": site["column"]}
        result["locations"] = [{"physicalLocation": {"artifactLocation": uri, "region": region}}]
        key = f"{finding['rule']}:{uri['uri']}:{finding['title']}"
        # lines move with every edit of the file above them; the rule and its call do not
        result["partialFingerprints"] = {"ruleAndCall/v1": hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()}
    return result


def _location(file: str) -> Json:
    """A file below the current folder relative to it, as code scanning wants it; another one as a file: URI."""
    path = Path(file)
    try:
        relative = os.path.relpath(path) if path.is_absolute() else str(path)
    except ValueError:  # another drive
        relative = ".."
    if relative.startswith(".."):
        return {"uri": path.as_uri() if path.is_absolute() else _quoted(path.as_posix())}
    return {"uri": _quoted(Path(relative).as_posix()), "uriBaseId": "SRCROOT"}


def _quoted(path: str) -> str:
    return quote(path.encode("utf-8", "backslashreplace"))


def _notifications(report: Json) -> list[Json]:
    """Warnings, and the rules that failed."""
    notes = [{"level": "warning", "message": {"text": text}} for text in report["warnings"]]
    return notes + [
        {"level": "error", "message": {"text": f"{error['rule']}: {error['message']}"}}
        for error in report["rule_errors"]
    ]
