"""Converts findings to code-scanning results: SARIF 2.1.0 within the limits of GitHub's code scanning.

In: dictionaries of report.json, and the pages of the known rules.  Out: one SARIF log; each report is a run in it.

Formats: https://docs.oasis-open.org/sarif/sarif/v2.1.0/ and
https://docs.github.com/en/code-security/code-scanning/integrating-with-code-scanning/sarif-support-for-code-scanning
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from advisor.export.source_tree import SourceTree

if TYPE_CHECKING:
    from advisor.engine.explanation import Page

Json = dict[str, Any]

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
MAX_RUNS = 20
"""Maximum number of runs in a file; code scanning rejects more."""
MAX_RESULTS = 5_000
"""Maximum number of results in a run; code scanning does not show more."""
MAX_DESCRIPTION = 1_024
"""Maximum number of characters in a rule's description."""
_OMISSION = {"id": "omitted"}
"""Descriptor of notifications about what was omitted."""


def report_to_sarif(reports: Sequence[Json], pages: Mapping[str, Page]) -> Json:
    """Convert reports to one SARIF log; what exceeds the limits of code scanning is omitted and mentioned in a notification.

    Args:
        reports: Dictionaries of report.json; each becomes a run of the log.
        pages: Rule id -> page; a rule without a page, such as a user's own, has only its id.
    """
    runs: list[Json] = []
    for report in reports[:MAX_RUNS]:
        runs.append(_run(report, pages, {run["automationDetails"]["id"] for run in runs}))
    if len(reports) > MAX_RUNS:
        text = (
            f"{len(reports) - MAX_RUNS} of {len(reports)} runs were omitted: code scanning accepts {MAX_RUNS} per file."
        )
        runs[-1]["invocations"][0]["toolExecutionNotifications"].append(_omission(text))
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": runs}


def omissions(log: Json) -> list[str]:
    """Return a sentence for each limit of code scanning that a log would exceed."""
    notes = [note for run in log["runs"] for note in run["invocations"][0]["toolExecutionNotifications"]]
    return [note["message"]["text"] for note in notes if note.get("descriptor") == _OMISSION]


def _omission(text: str) -> Json:
    return {"level": "warning", "descriptor": _OMISSION, "message": {"text": text}}


def _run(report: Json, pages: Mapping[str, Page], taken: set[str]) -> Json:
    findings = report["findings"][:MAX_RESULTS]
    ids = list(dict.fromkeys(finding["rule"] for finding in findings))
    tree = SourceTree.of_report(report)
    notifications = _notifications(report)
    if len(findings) < len(report["findings"]):
        text = f"{len(report['findings'])} findings, of which the first {MAX_RESULTS:,} are listed: code scanning shows no more."
        notifications.append(_omission(text))
    return {
        "tool": {
            "driver": {
                "name": "tfdata-advisor",
                "semanticVersion": report["advisor_version"] or "0",
                "rules": [_rule(rule, pages.get(rule)) for rule in ids],
            }
        },
        "automationDetails": {"id": _category(tree.label, taken)},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {tree.BASE_ID: {"uri": tree.root_uri}},
        "invocations": [{"executionSuccessful": True, "toolExecutionNotifications": notifications}],
        "results": [_result(finding, ids.index(finding["rule"]), report, tree) for finding in findings],
        "properties": {"target": report["target"], "verdict": report["verdict"]["sentence"]},
    }


def _category(label: str, taken: set[str]) -> str:
    """Return a category that no other run of the file has, because code scanning accepts one run per tool and category.

    Text after the last slash would be the id of a single upload, so the category ends with a slash.
    """
    name, number = f"advisor/{label}/", 1
    while name in taken:
        number += 1
        name = f"advisor/{label}-{number}/"
    return name


def _rule(rule: str, page: Page | None) -> Json:
    described: Json = {"id": rule, "defaultConfiguration": {"level": "warning"}}
    if page is None:
        text = {"text": f"{rule}: a rule of the project's own."}
        return {**described, "shortDescription": text, "fullDescription": text, "help": text}
    markdown = "\n\n".join(f"## {heading}\n\n{text}" for heading, text in page.sections.items())
    summary = " ".join(page.summary.split())[:MAX_DESCRIPTION] or rule
    return {
        **described,
        "name": "".join(part.capitalize() for part in rule.split("-")),
        "shortDescription": {"text": summary},
        "fullDescription": {"text": summary},
        "help": {"text": markdown or summary, "markdown": f"{page.summary}\n\n{markdown}"},
        "properties": {"tags": ["performance", "tensorflow", "tf.data"]},
    }


def _result(finding: Json, rule_index: int, report: Json, tree: SourceTree) -> Json:
    text = finding["title"] + ". " + finding["because"]
    if finding["predicted_speedup"] and finding["predicted_speedup"]["value"] is not None:
        text += f" Predicted speedup {finding['predicted_speedup']['value']:.2f}x."
    if finding["over_run"] and finding["over_run"]["sentence"]:
        text += f" {finding['over_run']['sentence']}"
    site = finding["site"] or tree.fallback
    uri = tree.location(site["file"])
    key = f"{finding['rule']}:{uri['uri']}:{finding['title']}".encode("utf-8", "replace")
    # lines move with every edit of the file above them; the rule and its call do not
    identity = hashlib.sha256(key).hexdigest()
    line_hash = tree.line_hash(site["file"], site["line"]) or f"{identity[:16]}:1"
    return {
        "ruleId": finding["rule"],
        "ruleIndex": rule_index,
        "level": "warning" if report["verdict"]["input_bound"] else "note",
        "message": {"text": text.replace("](", "] (")},  # `[text](target)` would be a link, wherever it came from
        "locations": [{"physicalLocation": {"artifactLocation": uri, "region": _region(site, report)}}],
        "partialFingerprints": {"primaryLocationLineHash": line_hash, "ruleAndCall/v1": identity},
        "properties": {
            "predictedSpeedup": finding["predicted_speedup"],
            "memoryBytes": finding["memory_bytes"],
            "safety": finding["safety"],
            "diff": finding["diff"],
        },
    }


def _region(site: Json, report: Json) -> Json:
    """Return the span of the recorded call that starts at the site, or its first character.

    Code scanning requires all four fields.
    """
    line, column = site["line"], site.get("column") or 1
    end_line, end_column = line, column + 1
    calls = (call for p in report["pipelines"] for iterator in p["iterators"] for call in iterator["calls"])
    for call in calls:
        is_same = (call["file"], call["line"], call["column"]) == (site["file"], line, site.get("column"))
        if is_same and call["end_line"]:
            end_line, end_column = call["end_line"], call["end_column"] or 1
            break
    return {"startLine": line, "startColumn": column, "endLine": end_line, "endColumn": end_column}


def _notifications(report: Json) -> list[Json]:
    """Return the warnings and the errors of rules."""
    notes = [{"level": "warning", "message": {"text": text}} for text in report["warnings"]]
    return notes + [
        {"level": "error", "message": {"text": f"{error['rule']}: {error['message']}"}}
        for error in report["rule_errors"]
    ]
