"""Simulated pipelines of scripts that pass over their data a known number of times, or not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from advisor.model.pipeline import Analysis
from advisor.model.recording import Loop, Recording, ScriptExit, StepSeries
from advisor.testing import batch, map_, pipeline, source
from advisor.testing.simulated_script import Stage

STAGES = (source(elements=320), map_("decode", ms=5, bytes=9_000), batch(32))
"""Ten steps a pass."""
LOOP = Loop(3, "train.py", 10, 20)


def script(
    *stages: Stage,
    kind: str = "for",
    end: str = "stopped",
    steps: int = 15,
    keras: dict[str, Any] | None = None,
    goes_on: bool = False,
    **consumer: Any,
) -> Analysis:
    """The analysis of a script that was recorded with this consumer, or until it was stopped."""
    made = pipeline(*(stages or STAGES), consumer_ms=5).analysis
    assert made.main is not None and made.main.consumer is not None and made.host is not None
    reader = replace(made.main.consumer, kind=kind, **consumer)
    recording = Recording(
        "train.py",
        made.host,
        ScriptExit(end),
        calls=made.calls,
        consumers=(reader,),
        steps=(StepSeries(reader.id, tuple(range(steps))),),
        goes_on=goes_on,
    )
    return replace(made, recording=recording, keras=keras or {}, pipelines=(replace(made.main, consumer=reader),))
