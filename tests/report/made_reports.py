"""Reports made of made-up pipelines, for the tests of all that is printed."""

from __future__ import annotations

import dataclasses
from enum import Enum
from pathlib import Path
from typing import Any

from advisor.engine import load_rules, run_rules
from advisor.model.calls import Site
from advisor.model.edits import SetArgument
from advisor.model.finding import Evidence, Finding, Fix, Prediction, Safety
from advisor.model.outcome import Comparison, FixOutcome, Interval, Report, RuleError
from advisor.model.pipeline import Analysis, Verdict
from advisor.model.settings import Settings
from advisor.testing import batch, map_, pipeline, source

EVIL = "\x1b[31mE\x07\r[bold red]V[/bold red]\u202e\u2066\x9b31m\x00\ud800L"
"""ANSI and C1 escapes, bell, carriage return, rich markup, bidirectional overrides, a lone surrogate."""


def slow_report() -> Report:
    """An input-bound run with one finding of everything that a finding may have."""
    made = pipeline(source(elements=10_000, bytes=100_000), map_("decode", ms=5), map_("augment", ms=1, random=True),
                    batch(32), consumer_ms=20)  # fmt: skip
    main = dataclasses.replace(made.analysis.pipelines[0], already_done=("runs map (train.py:4) in parallel",))
    analysis = dataclasses.replace(made.analysis, pipelines=(main,))
    report = run_rules(analysis, load_rules([], Settings()), Settings())
    call = made.analysis.calls[1]
    finding = Finding(
        rule="serial-map",
        title="Parallelise map(decode)",
        because="map(decode) runs one element at a time while 6 of 8 cores are idle.",
        site=call.site,
        iterator_id=None,
        call_id=call.id,
        prediction=Prediction(3.1, 2.4, 3.6),
        memory_bytes=12 << 20,
        fix=Fix((SetArgument(call.id, "num_parallel_calls", 4),), Safety.EXACT, is_auto=True),
        evidence=(Evidence("blame", 0.9, "share"), Evidence("time per element", 5e6, "ns")),
        diff="--- train.py\n+++ train.py\n@@ -1 +1 @@\n-ds.map(decode)\n+ds.map(decode, num_parallel_calls=4)\n",
    )
    return dataclasses.replace(
        report,
        findings=(finding,),
        notes=("cache is not legal above map(augment): it draws random numbers",),
        rule_errors=(RuleError("own-rule", "line 3: KeyError: 'x'"),),
        warnings=("the profile was cut",),
        run_folder="/tmp/run",
    )


def healthy_report() -> Report:
    made = pipeline(source(elements=10_000), map_("decode", ms=0.01), batch(32), consumer_ms=50)
    return run_rules(made.analysis, [], Settings())


def empty_report() -> Report:
    """A script without tf.data, or a profile without steps."""
    verdict = Verdict(False, None, None, None, "unknown", "The script builds no tf.data dataset.")
    return Report(Analysis("train.py", verdict))


def proved_report() -> Report:
    """What `advisor fix` will leave."""
    site = Site("/src/train.py", 3, 6, 3, 20)
    exact, gain = Safety.EXACT, Interval(2.5, 2.4, 2.6)
    fix = FixOutcome(
        "serial-map", site, Prediction(3.0, 2.0, 4.0), gain, exact, exact, "faster", True, proved_on="training"
    )
    broken = FixOutcome("repeated-work", None, None, None, Safety.EXACT, None, "broken", False)
    comparison = Comparison(10.0, 25.0, Interval(2.5, 2.4, 2.6), Interval(2.0, 1.9, 2.1), 0.8, 0.1)
    return dataclasses.replace(slow_report(), fixes=(fix, broken), comparison=comparison)


def evil(value: Any) -> Any:
    """A copy of a report in which every text is hostile; words of closed sets are kept, and ids stay consistent."""
    if isinstance(value, Enum) or value is None or isinstance(value, bool | int | float | bytes | Path):
        return value
    if isinstance(value, str):
        return value + EVIL
    if isinstance(value, tuple):
        return tuple(evil(item) for item in value)
    if isinstance(value, dict):
        return {evil(key): evil(item) for key, item in value.items()}
    kept = {
        "basis",
        "saved_per",
        "level",
        "limit",
        "resource",
        "wait_steps",
        "certainty",
        *(["verdict", "proved_on"] if isinstance(value, FixOutcome) else []),
    }
    fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    return dataclasses.replace(value, **{k: v if k in kept else evil(v) for k, v in fields.items()})
