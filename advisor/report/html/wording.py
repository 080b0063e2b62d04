"""Template filters: numbers as text, and texts made safe and short.

In: values of report.json.  Out: text. `advisor.model.units` formats numbers, as in every report; a missing one is a dash.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import PurePath
from typing import Any

from markupsafe import Markup, escape

from advisor.model import units
from advisor.report.blame import is_shown
from advisor.report.branches import Row, name_branches
from advisor.report.places import clean, display_path
from advisor.report.proof_words import words_for_fix, words_for_training
from advisor.report.what_runs import about, what_runs

MISSING = "–"
MAX_TEXT = 2_000
"""Longest text, in characters; names in a profile may be megabytes long."""
_CODE = re.compile(r"`([^`]+)`")
_OPTION = re.compile(r"(?<![\w-])--[a-z][\w-]*")
_MULTILINE = frozenset({"diff", "code"})


def harmless(value: object, key: str = "") -> object:
    """Return a copy of JSON data with all texts shortened and control and invisible characters replaced by escapes."""
    if isinstance(value, str):
        return clean(shorten(value), keep_newlines=key in _MULTILINE)
    if isinstance(value, dict):
        return {str(harmless(name)): harmless(inner, name) for name, inner in value.items()}
    if isinstance(value, list):
        return value if value and isinstance(value[0], int) else [harmless(inner, key) for inner in value]
    return value


def shorten(text: str, most: int = MAX_TEXT) -> str:
    """Cut `text` to `most` characters and append its original length if it was longer."""
    return text if len(text) <= most else f"{text[:most]}… ({units.format_count(len(text))} characters)"


def clip(text: str, most: int) -> str:
    """Cut `text` to at most `most` characters, ending with an ellipsis if it was longer."""
    return text if len(text) <= most else text[: most - 1] + "…"


def prose(text: str) -> Markup:
    """Return a sentence as markup: backticks become code, and options stay on one line: browsers break them after hyphens."""
    options = _OPTION.sub(r'<span class="option">\g<0></span>', str(escape(text)))
    return Markup(_CODE.sub(r"<code>\1</code>", options))


def site_text(site: dict[str, Any] | None) -> str:
    """Return `train.py:42` for an object with a file and a line; empty if it has none."""
    if not site or not site.get("file"):
        return ""
    return f"{display_path(site['file'])}:{site['line']}"


def site_name(site: dict[str, Any] | None) -> str:
    """Like `site_text`, without folders."""
    if not site or not site.get("file"):
        return ""
    return f"{PurePath(site['file'].replace(chr(92), '/')).name}:{site['line']}"


def call_name(call: dict[str, Any]) -> str:
    """Return a call on one line, as written if it is short, else abbreviated to its method."""
    if call["library"]:
        return f"{call['method']} in {call['library']}"
    text = " ".join(call["text"].split())
    return text if 0 < len(text) <= 60 else f".{call['method']}(…)"


def ratio_range(ratio: dict[str, Any] | None) -> str:
    """Return `3.1x (2.4x to 3.6x)`, or only the value if the range is unknown."""
    if not ratio or ratio.get("value") is None:
        return MISSING
    if ratio["low"] is None or ratio["high"] is None:
        return units.format_ratio(ratio["value"])
    return units.format_range(ratio["value"], ratio["low"], ratio["high"])


def gains_of(fix: dict[str, Any], report: dict[str, Any]) -> list[str]:
    """Return what was predicted and measured of one fix: `pipeline alone: predicted 6.0x, measured 5.8x`.

    Args:
        fix: One of the report's `fixes`.
        report: The dictionary of a report.json.
    """
    details = (report.get("proof") or {}).get("fixes") or ()
    gains: dict[str, Any] = next(
        (more for tried, more in zip(report["fixes"], details, strict=False) if tried is fix), {}
    )
    texts = []
    for name, what in (("pipeline", "pipeline alone"), ("step", "training step")):
        gain = gains.get(name) or {}
        known = [f"{how} {ratio_range(gain[how])}" for how in ("predicted", "measured") if gain.get(how)]
        texts += [f"{what}: {', '.join(known)}"] if known else []
    measured = fix["measured"]
    if not gains and measured:  # a report without details, of an earlier version
        texts.append(f"measured {ratio_range({**measured, 'value': measured['speedup']})}")
    return texts


def finding_gain(finding: dict[str, Any]) -> str:
    """Return the predicted speedup of a finding; if the first epoch does not become faster, with the epochs that it is for."""
    run = finding.get("over_run")
    if not run or not run["sentence"]:
        return ratio_range(finding["predicted_speedup"])
    if run["predicted_speedup"] is None or run["passes"] is None:
        return f"{ratio_range(finding['predicted_speedup'])} from the second epoch on"
    return f"{ratio_range(run['predicted_speedup'])} over {units.format_epochs(run['passes'])}"


def fact(entry: dict[str, Any]) -> str:
    """Return one piece of evidence with its unit."""
    return MISSING if entry["value"] is None else units.format_value(entry["value"], entry["unit"])


def _has_row(iterator: dict[str, Any]) -> bool:
    share = iterator["blame_share"] or 0.0
    return is_shown(iterator["name"], share, bool(iterator["calls"]), iterator["is_bottleneck"])


def branches(iterators: list[dict[str, Any]]) -> dict[str, str]:
    """Return iterator id -> `input 2 of Zip` for the rows of the wait that would read the same."""
    rows = [
        Row(it["id"], it["parent_id"], it["name"], str([(site_name(call), call_name(call)) for call in it["calls"]]))
        for it in iterators
    ]
    return name_branches(rows, {it["id"] for it in iterators if _has_row(it)})


def _or_missing(function: Callable[[float], str]) -> Callable[[float | None], str]:
    return lambda value: MISSING if value is None else function(value)


def _milliseconds(value: float) -> str:
    return units.format_ns(value * 1e6)


FILTERS: dict[str, Callable[..., Any]] = {
    "ns": _or_missing(units.format_ns),
    "ms": _or_missing(_milliseconds),
    "bytes": _or_missing(units.format_bytes),
    "share": _or_missing(units.format_share),
    "change": _or_missing(units.format_change),
    "rate": _or_missing(units.format_rate),
    "ratio": _or_missing(units.format_ratio),
    "count": _or_missing(units.format_count),
    "many": units.format_many,
    "ratio_range": ratio_range,
    "finding_gain": finding_gain,
    "fact": fact,
    "prose": prose,
    "site": site_text,
    "site_name": site_name,
    "call_name": call_name,
    "about": lambda line: about(line["total_ns"], line.get("unrecorded_ns", 0), line["samples"]),
    "what_runs": lambda line: what_runs(line["ops"], line["samples"], line["native_share"], line["library"]),
    "clip": clip,
    "path": display_path,
    "proved": lambda fix: words_for_fix(fix["verdict"], fix.get("proved_on"), fix["applied"]),
    "training": words_for_training,
    "gains": gains_of,
    "waits": lambda iterators: [it for it in iterators if _has_row(it)],
    "branches": branches,
}
