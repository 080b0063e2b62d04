"""One line for each result of a proof, shown as soon as it is known.

In: a finding and its trial, or the measurement of the whole script.  Out: a sentence.
"""

from __future__ import annotations

from pathlib import PurePath

from advisor.model import units
from advisor.model.finding import Finding
from advisor.model.outcome import Interval
from advisor.prove.measure.end_to_end_result import EndToEnd
from advisor.prove.trial.trial_result import BROKEN, FASTER, REFUSED, SAME, SLOWER, Trial

_WORDS = {FASTER: "faster", SAME: "no faster", SLOWER: "slower"}


def line_of_trial(finding: Finding, trial: Trial, is_kept: bool) -> str:
    """Return what a trial on the pipeline alone has shown, such as `train.py:9 Cache after batch: 3.1x faster ...; kept.`.

    Args:
        finding: The finding whose fix was tried.
        trial: The result.
        is_kept: Whether the fix is kept.
    """
    site = finding.site
    place = "" if site is None else f"{PurePath(site.file.replace(chr(92), '/')).name}:{site.line} "
    name = f"{place}{finding.title}"
    if trial.verdict == REFUSED:
        return f"{name}: not measured. {trial.note}".strip()
    if trial.verdict == BROKEN:
        return f"{name}: broken, not kept. {trial.note}".strip()
    data = (
        ""
        if trial.safety_seen is None
        else f"; data: {trial.safety_seen}{' (undecided)' if trial.is_undecided else ''}"
    )
    return f"{name}: {_gain(trial.verdict, trial.speedup)} on the pipeline alone{data}; {'kept' if is_kept else 'not kept'}."


def line_of_whole(title: str, whole: EndToEnd) -> str:
    """Return what the runs of the whole script have shown.

    Args:
        title: The change, or `all changes`.
        whole: The measurement.
    """
    if whole.speedup is None:
        return f"Whole script, {title}: {whole.verdict if whole.verdict == BROKEN else 'not measured'}. {whole.note}".strip()
    if whole.is_out_of_time:
        return f"{title}: {whole.note}"
    return f"Whole script, {title}: {_gain(whole.verdict, whole.speedup)} ({units.format_many(whole.runs, 'run')})."


def _gain(verdict: str, speedup: Interval | None) -> str:
    words = _WORDS.get(verdict, verdict)
    return words if speedup is None else f"{units.format_range(speedup.value, speedup.low, speedup.high)}, {words}"
