"""The rules of GitHub's code scanning for SARIF files, as its documentation states them, beyond the format's schema.

https://docs.github.com/en/code-security/code-scanning/integrating-with-code-scanning/sarif-support-for-code-scanning
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from urllib.parse import unquote, urlsplit

MAX_RUNS = 20
MAX_RESULTS = 25_000
SHOWN_RESULTS = 5_000
MAX_RULES = 25_000
MAX_LOCATIONS = 10
MAX_TAGS = 10
"""Code scanning takes 20 and shows 10."""
MAX_DESCRIPTION = 1_024
MAX_NAME = 255
MAX_PACKED_BYTES = 10 * 1024 * 1024
LINE_HASH = re.compile(r"[0-9a-f]{1,16}:[1-9]\d*")


def violations(log: dict) -> Iterator[str]:
    """A sentence for each rule that the log breaks."""
    if log["version"] != "2.1.0" or "sarif-schema-2.1.0" not in log["$schema"]:
        yield "neither version nor schema is that of SARIF 2.1.0"
    if not 0 < len(log["runs"]) <= MAX_RUNS:
        yield f"{len(log['runs'])} runs"
    categories = [run.get("automationDetails", {}).get("id", "").rpartition("/")[0] for run in log["runs"]]
    if not all(categories) or len(set(categories)) < len(categories):
        yield f"categories are missing or not unique: {categories}"
    if len(json.dumps(log).encode()) > 10 * MAX_PACKED_BYTES:
        yield "too large"
    for run in log["runs"]:
        yield from _of_run(run)


def _of_run(run: dict) -> Iterator[str]:
    driver = run["tool"]["driver"]
    if not driver.get("name") or not (driver.get("semanticVersion") or driver.get("version")):
        yield "the tool has no name or no version"
    if len(run["results"]) > SHOWN_RESULTS or len(driver["rules"]) > MAX_RULES:
        yield "too many results or rules"
    for base in run.get("originalUriBaseIds", {}).values():
        if not base["uri"].endswith("/") or urlsplit(base["uri"]).scheme != "file":
            yield f"the base {base['uri']} is no folder"
    for rule in driver["rules"]:
        for key in ("shortDescription", "fullDescription", "help"):
            if not rule.get(key, {}).get("text"):
                yield f"the rule {rule['id']} has no {key}"
        if rule["defaultConfiguration"]["level"] not in ("note", "warning", "error"):
            yield f"the rule {rule['id']} has the level {rule['defaultConfiguration']['level']}"
        texts = (rule["shortDescription"]["text"], rule["fullDescription"]["text"])
        if max(map(len, texts)) > MAX_DESCRIPTION or len(rule.get("name", "")) > MAX_NAME:
            yield f"the rule {rule['id']} has too long a name or description"
        if len(rule.get("properties", {}).get("tags", [])) > MAX_TAGS:
            yield f"the rule {rule['id']} has too many tags"
    for result in run["results"]:
        yield from _of_result(result, run)


def _of_result(result: dict, run: dict) -> Iterator[str]:
    rules = run["tool"]["driver"]["rules"]
    if rules[result["ruleIndex"]]["id"] != result["ruleId"]:
        yield f"ruleIndex and ruleId differ: {result['ruleId']}"
    if not result["message"].get("text"):
        yield "a result without a message"
    if result.get("level") not in ("none", "note", "warning", "error"):
        yield f"the level {result.get('level')}"
    if not LINE_HASH.fullmatch(result.get("partialFingerprints", {}).get("primaryLocationLineHash", "")):
        yield "a result without primaryLocationLineHash"
    locations = result.get("locations", [])
    if not 0 < len(locations) <= MAX_LOCATIONS:
        yield "a result without a location is not shown"
    for location in locations:
        place = location["physicalLocation"]
        uri, region = place["artifactLocation"]["uri"], place.get("region", {})
        base = place["artifactLocation"].get("uriBaseId")
        start, end = [(region.get(f"{side}Line", 0), region.get(f"{side}Column", 0)) for side in ("start", "end")]
        if not uri or min(*start, *end) < 1 or end <= start:
            yield f"the place {place}"
        if base is not None and base not in run["originalUriBaseIds"]:
            yield f"the base {base} is not declared"
        if not urlsplit(uri).scheme and (uri.startswith("/") or ".." in unquote(uri).split("/") or base is None):
            yield f"{uri} is not relative to the root of the repository"
