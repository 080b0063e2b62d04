"""Hosts of one run, made by hand.

In: how long a step waits on each host.  Out: a logdir.
"""

from __future__ import annotations

from pathlib import Path

from tests.profile.made_profile import ProfileBuilder

RUN = "plugins/profile/2026_01_01_00_00_00"


def profile_of(hostname: str, wait_us: float, step_us: float = 1000, steps: int = 20, **parameters) -> ProfileBuilder:
    """Root -> BatchV2 -> ParallelMapV2, each step waiting `wait_us` for the map."""
    profile = ProfileBuilder(hostname)
    line = profile.host.line("python")
    for step in range(steps):
        at = step * step_us
        line.event("Iterator::Root", at, at + wait_us, id=1, cpu_budget=8, name="B")
        line.event("Iterator::Root::BatchV2", at + 0.1, at + wait_us - 0.1, id=2, parent_id=1, batch_size=32, name="B")
        line.event("Iterator::Root::BatchV2::ParallelMapV2", at + 0.2, at + wait_us - 0.2, id=3, parent_id=2,
                   name="M", autotune="true", **{"parallelism": 4, **parameters})  # fmt: skip
    return profile


def write_hosts(logdir: Path, waits_us: dict[str, float], **more: dict) -> Path:
    """`more`: further parameters of some hosts' maps."""
    for name, wait_us in waits_us.items():
        profile_of(name, wait_us, **more.get(name, {})).write(logdir / RUN / f"{name}.xplane.pb")
    return logdir
