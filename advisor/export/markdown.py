"""The report as Markdown for a pull request or an issue.

In: the dictionary of report.json.  Out: GitHub-flavoured Markdown. Text from the run is escaped, so that a heading, link,
mention, table or HTML in it has no effect.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from advisor.model import units
from advisor.report.html.wording import call_name, gains_of, harmless, ratio_range, site_text
from advisor.report.proof_words import words_for_fix, words_for_training

Json = dict[str, Any]

_SPECIAL = re.compile(r"([\\`*_{}\[\]()#+!|<>~&@])")
_AUTOLINK = re.compile(r"(?<=\w)(:)(?=//)|(?<=www)(\.)", re.IGNORECASE)
"""Text that GitHub turns into a link without any markup."""
_START = re.compile(r"^([-=])|(?<=^\d)([.)])(?=\s)|(?<=^\d\d)([.)])(?=\s)")
"""Starts of lines that Markdown turns into a list, a rule or a heading."""
_TICKS = re.compile(r"`+")
MAX_FINDINGS = 20
"""Maximum number of findings listed."""


def report_to_markdown(report: Json) -> str:
    """Return the verdict, before and after, and the proposed changes, with details folded."""
    safe = harmless(report)
    assert isinstance(safe, dict)
    return "\n".join(_lines(safe)).rstrip() + "\n"


def _lines(report: Json) -> Iterator[str]:
    verdict = report["verdict"]
    yield f"### tf.data: {plain(verdict['sentence'])}"
    yield ""
    yield from _comparison(report)
    main = next((pipeline for pipeline in report["pipelines"] if pipeline["is_main"]), None)
    if main and main["bottleneck"] and verdict["input_bound"]:
        yield f"**Bottleneck:** {_bottleneck(main)}"
        yield ""
    findings = report["findings"][:MAX_FINDINGS]
    if findings:
        yield "| | what to change | where | predicted | tried | data |"
        yield "|---|---|---|---|---|---|"
        for rank, finding in enumerate(findings, 1):
            yield (
                f"| {rank} | {plain(finding['title'])} | {code(site_text(finding['site']))} "
                f"| {ratio_range(finding['predicted_speedup'])} | {_tried(finding, report)} "
                f"| {finding['safety'] or 'advice only'} |"
            )
        yield ""
    for rank, finding in enumerate(findings, 1):
        yield f"<details><summary>{rank}. {plain(finding['title'])}</summary>"
        yield ""
        yield plain(finding["because"])
        yield ""
        if finding["code"]:
            yield fenced(finding["code"], "python")
            yield ""
        if finding["over_run"] and finding["over_run"]["sentence"]:
            yield plain(finding["over_run"]["sentence"])
            yield ""
        if finding["diff"]:
            yield fenced(finding["diff"], "diff")
            yield ""
        yield f"Rule {code(finding['rule'])}: {code(finding['docs'])}"
        yield ""
        yield "</details>"
        yield ""
    yield _footer(report)


def _comparison(report: Json) -> Iterator[str]:
    if not report["comparison"]:
        return
    pipeline, whole = report["comparison"]["pipeline"], report["comparison"]["end_to_end"]
    yield "| | before | after | speedup (95 % interval) |"
    yield "|---|---|---|---|"
    rates = [units.format_rate(pipeline[side]) if pipeline[side] is not None else "" for side in ("before", "after")]
    gain = {"value": pipeline["speedup"], "low": pipeline["low"], "high": pipeline["high"]}
    yield f"| input pipeline | {rates[0]} | {rates[1]} | {ratio_range(gain)} |"
    if whole:
        yield f"| end to end | | | {ratio_range(whole)} |"
    elif report["proof"]:
        yield f"| end to end | | | {words_for_training(report['proof'].get('training', ''))} |"
    yield ""


def _bottleneck(pipeline: Json) -> str:
    bottleneck = pipeline["bottleneck"]
    iterator = next((node for node in pipeline["iterators"] if node["id"] == bottleneck["iterator_id"]), None)
    site = bottleneck["site"]
    calls = [call for call in (iterator["calls"] if iterator else ()) if site and call["line"] == site["line"]]
    what = f"{code(site_text(site))} {code(call_name(calls[-1]))}" if calls else plain(bottleneck["name"])
    share = bottleneck["blame_share"]
    return f"{what}" + (f", {units.format_share(share)} of the wait" if share is not None else "")


def _tried(finding: Json, report: Json) -> str:
    place = (finding["rule"], finding["site"])
    fix = next((fix for fix in report["fixes"] if (fix["rule"], fix["site"]) == place), None)
    if fix is None:
        return ""
    words = words_for_fix(fix["verdict"], fix.get("proved_on"), fix["applied"])
    return "; ".join((words, *gains_of(fix, report)))


def _footer(report: Json) -> str:
    step = report["verdict"]["step_time_ms"]
    measured = (
        f"{units.format_many(step['count'], 'step')} of {units.format_ns(step['median'] * 1e6)}"
        f"{' (median)' if step['count'] > 1 else ''}. "
        if step
        else ""
    )
    return f"<sub>{measured}Target {code(report['target'])}, tfdata-advisor {plain(report['advisor_version'])}.</sub>"


def plain(text: str) -> str:
    """Return `text` on one line, with every character escaped that has a meaning in Markdown, on GitHub or in HTML."""
    line = _SPECIAL.sub(_escaped, " ".join(text.split()))
    return _START.sub(_escaped, _AUTOLINK.sub(_escaped, line))


def _escaped(match: re.Match[str]) -> str:
    return f"&#{ord(match[0])};"


def code(text: str) -> str:
    """Return `text` as inline code that is valid in table cells, too; empty text stays empty."""
    line = " ".join(text.split()).replace("|", "\\|")
    if not line:
        return ""
    ticks = "`" * (1 + max((len(run) for run in _TICKS.findall(line)), default=0))
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{ticks}{pad}{line}{pad}{ticks}"


def fenced(text: str, language: str) -> str:
    """Return `text` as a fenced code block; the fence is longer than any in the text."""
    ticks = "`" * max(3, 1 + max((len(run) for run in _TICKS.findall(text)), default=0))
    return f"{ticks}{language}\n{text.rstrip()}\n{ticks}"
