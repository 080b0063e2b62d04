"""Far too many of everything: planes, threads, names, events, pipelines."""

from __future__ import annotations

from pathlib import Path

from tests.hostile.case import HOST, case, contents, field, pipeline, varint
from tests.profile.made_profile import ProfileBuilder

contents("planes", million_planes=b"\x0a\x00" * 1_000_000)
contents("threads and names", five_million_threads=field(1, HOST + b"\x1a\x00" * 5_000_000))
contents("errors and host names", five_million_errors=b"\x12\x00" * 5_000_000)
contents("", 0, million_empty_events=field(1, HOST + field(3, b"\x22\x00" * 1_000_000)))
contents(
    "",
    0,
    hundred_thousand_names=field(
        1, HOST + b"".join(field(4, b"\x08" + varint(n) + field(2, field(2, b"n"))) for n in range(100_000))
    ),
    fifty_thousand_threads=field(1, HOST + b"\x1a\x00" * 50_000),
    ten_thousand_errors=field(1, HOST) + field(2, b"something went wrong") * 10_000,
    ten_thousand_hosts=field(1, HOST) + field(4, b"worker") * 10_000,
    five_thousand_device_planes=b"".join(field(1, field(2, b"/device:GPU:%d" % n)) for n in range(5_000)),
)


@case(0)
def thousand_stats_on_each_event(folder: Path) -> Path:
    profile = pipeline()
    stats = {f"stat{n}": n for n in range(1000)}
    profile.host.line().event("Iterator::Root", 0, 1, **stats).event("Iterator::Root", 2, 3, id=9, **stats)
    return profile.write(folder / "worker.xplane.pb")


@case(0, "left out")
def six_thousand_pipelines(folder: Path) -> Path:
    profile = ProfileBuilder()
    line = profile.host.line()
    for number in range(6_000):
        line.event("Iterator::Root", number, number + 0.5, id=number + 1, name=f"D{number}")
    return profile.write(folder / "worker.xplane.pb")


@case(0, "left out")
def chain_of_six_thousand(folder: Path) -> Path:
    profile = ProfileBuilder()
    line = profile.host.line()
    for number in range(6_000):
        line.event("Iterator::Root::Map", number * 1e-4, 10 - number * 1e-4, id=number + 1, parent_id=number)
    return profile.write(folder / "worker.xplane.pb")


@case(0, "left out")
def six_thousand_inputs(folder: Path) -> Path:
    profile = ProfileBuilder()
    line = profile.host.line()
    line.event("Iterator::Root", 0, 6_000, id=1)
    for number in range(6_000):
        line.event(f"Iterator::Root::T{number}", number, number + 0.5, id=number + 2, parent_id=1)
    return profile.write(folder / "worker.xplane.pb")


@case(0)
def six_thousand_inputs_of_one_root(folder: Path) -> Path:
    profile = ProfileBuilder()
    line = profile.host.line()
    for number in range(6_000):
        line.event("Iterator::Root::Range", number, number + 0.5, id=number + 2, parent_id=1, name=f"n{number}")
    line.event("Iterator::Root", 0, 6_000, id=1)
    return profile.write(folder / "worker.xplane.pb")


@case(0)
def twenty_thousand_events_inside_one_another(folder: Path) -> Path:
    profile = ProfileBuilder()
    line = profile.host.line()
    for number in range(20_000):
        line.event("Iterator::Root", number * 1e-5, 10 - number * 1e-5, id=1)
    return profile.write(folder / "worker.xplane.pb")


@case(0)
def everything_at_one_instant(folder: Path) -> Path:
    profile = ProfileBuilder()
    line = profile.host.line()
    for _ in range(6_000):
        line.event("Iterator::Root", 0, 0, id=1)
    return profile.write(folder / "worker.xplane.pb")


@case(0)
def thousands_of_marked_steps_at_once(folder: Path) -> Path:
    profile = pipeline()
    line = profile.host.line()
    for _ in range(6_000):
        line.event("train", 0, 1e6, step_num=7, _r=1)
    return profile.write(folder / "worker.xplane.pb")
