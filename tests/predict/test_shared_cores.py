"""What the CPU time of the pipeline costs a training on the same cores."""

from __future__ import annotations

from dataclasses import replace

import pytest

from advisor.model.recording import Accelerator, Recording, ScriptExit
from advisor.model.window_readings import AloneReading
from advisor.predict.best_plan import outlook
from advisor.testing import batch, map_, pipeline, prefetch, source

MS = 1_000_000
NODES = (source(elements=3200), map_("decode", ms=0.5, random=True), batch(32), prefetch())
READ = AloneReading(50, 400 * MS, 1_000 * MS)
"""20 ms of CPU time per batch."""


def shared_cores_of(*, cores_used=2.0, cores=2, step_ms=80, accelerators=(), is_ceiling_measured=False, **recorded):
    """A training that takes all of the cores: 160 ms of CPU time per step."""
    made = pipeline(*NODES, consumer_ms=step_ms, cores=cores).analysis
    assert made.main is not None and made.usage is not None and made.host is not None
    usage = replace(made.usage, cpu_ns=round(cores_used * made.usage.wall_ns), host_cpu_busy_share=None)
    host = replace(made.host, accelerators=accelerators)
    recording = Recording("train.py", host, ScriptExit("stopped"), **{"read_alone": READ, **recorded})
    verdict = replace(made.verdict, is_ceiling_measured=is_ceiling_measured)
    made = replace(made, recording=recording, usage=usage, host=host, verdict=verdict)
    result = outlook(made, made.main, (), ())
    assert result is not None
    return result.shared_cores


def test_a_step_could_be_shorter_by_the_share_of_the_pipeline():
    shared = shared_cores_of()
    assert shared.cpu_ns == pytest.approx(20 * MS)
    assert shared.share == pytest.approx(20 / 160, rel=0.01)
    assert shared.speedup == pytest.approx(1 / (1 - 20 / 160), rel=0.01)
    assert shared.sentence.startswith(
        "Pipeline and model share the cores of this machine, though: the pipeline takes 20 ms of CPU time per step, 12.5 % of "
        "all, most of it in map(decode) (train.py:"
    )
    assert shared.sentence.endswith(
        "Without it, a step could be about 1.14x faster (estimated); --ceiling measures it."
    )


def test_a_pipeline_that_takes_nearly_all_has_a_finite_estimate():
    assert shared_cores_of(read_alone=AloneReading(10, 2_000 * MS, 1_600 * MS)).speedup == pytest.approx(1_000)


@pytest.mark.parametrize(
    "case",
    [
        {"cores": 8},  # idle cores
        {"step_ms": 2000},  # 20 ms of 2 s
        {"accelerators": (Accelerator("GPU", "a GPU"),)},
        {"as_if_step_ns": 80 * MS},
        {"is_ceiling_measured": True},
        {"step_ms": 5},  # waits for input
        {"read_alone": AloneReading(50, 400 * MS)},  # of an earlier version
        {"read_alone": None},  # the profile holds waits for cores as well
    ],
)
def test_otherwise_nothing_is_said(case):
    assert shared_cores_of(**case) is None
