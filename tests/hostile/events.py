"""Events that contradict one another: ids, parents, stats of the wrong type, impossible times."""

from __future__ import annotations

from pathlib import Path

from advisor.profile.xspace import message_class
from tests.hostile.case import case, contents, pipeline
from tests.profile.made_profile import ProfileBuilder

INT64_MAX = 2**63 - 1


@case(0, "name each other as parents")
def own_parent(folder: Path) -> Path:
    profile = pipeline()
    profile.host.line().event("Iterator::Root::Map", 0, 1, id=7, parent_id=7)
    return profile.write(folder / "worker.xplane.pb")


@case(0, "name each other as parents")
def parents_of_one_another(folder: Path) -> Path:
    profile = pipeline()
    line = profile.host.line()
    line.event("Iterator::Root::Map", 0, 1, id=7, parent_id=8).event("Iterator::Root::Map", 2, 3, id=8, parent_id=7)
    return profile.write(folder / "worker.xplane.pb")


@case(0, "name each other as parents")
def circle_of_six_thousand(folder: Path) -> Path:
    profile = ProfileBuilder()
    line = profile.host.line()
    for number in range(6_000):
        line.event("Iterator::Root::Map", number, number + 1, id=number + 1, parent_id=(number + 1) % 6_000 + 1)
    return profile.write(folder / "worker.xplane.pb")


@case(0)
def iterators_without_ids(folder: Path) -> Path:
    profile = ProfileBuilder()
    line = profile.host.line()
    for number in range(10):
        line.event("Iterator::Root", number, number + 0.5).event("Iterator::Root::Map", number, number + 0.4)
    return profile.write(folder / "worker.xplane.pb")


@case(0)
def parents_that_are_not_there(folder: Path) -> Path:
    profile = ProfileBuilder()
    line = profile.host.line()
    for number in range(10):
        line.event("Iterator::Root::Map", number, number + 0.5, id=number + 5, parent_id=999)
    return profile.write(folder / "worker.xplane.pb")


@case(0)
def one_id_for_everything(folder: Path) -> Path:
    profile = ProfileBuilder()
    line = profile.host.line()
    for number in range(100):
        line.event(f"Iterator::Root::T{number}", number, number + 0.5, id=1, parent_id=1)
    return profile.write(folder / "worker.xplane.pb")


@case(0)
def names_and_stats_that_are_not_there(folder: Path) -> Path:
    profile = pipeline()
    profile.host.message.event_metadata.clear()
    profile.host.message.stat_metadata.clear()
    return profile.write(folder / "worker.xplane.pb")


@case(0)
def stats_of_the_wrong_type(folder: Path) -> Path:
    profile = pipeline()
    line = profile.host.line()
    for number in range(5):
        line.event("Iterator::Root::Map", number, number + 0.5, id="seven", parent_id=float("nan"), parallelism="many",
                   buffer_size=b"\xff\xfe", autotune=3.5, buffered_elements=float("inf"), name=12)  # fmt: skip
        line.event(
            "Iterator::Root::Map", number, number + 0.5, id=5, parallelism=float("inf"), buffer_limit=float("nan")
        )
        line.event("train", number, number + 0.5, step_num="first", _r="yes")
    return profile.write(folder / "worker.xplane.pb")


@case(0)
def numbers_that_are_far_too_large(folder: Path) -> Path:
    profile = pipeline()
    line = profile.host.line()
    for number in range(30):
        line.event("Iterator::Root", number * 100, number * 100 + 60, id=2**64 - 1, cpu_budget=2**64 - 1, ram_budget=-1)
        line.event("Iterator::Root::ParallelMapV2", number * 100, number * 100 + 50, id=2**63, parent_id=2**64 - 1,
                   parallelism=2**63 - 1, buffer_limit=-(2**63), buffered_elements=2**64 - 1, batch_size=0)  # fmt: skip
        line.event("train", number * 100, number * 100 + 90, step_num=2**64 - 1, _r=1)
    return profile.write(folder / "worker.xplane.pb")


def with_event(offset_ps: int, duration_ps: int, timestamp_ns: int = 0) -> bytes:
    profile = pipeline()
    line = profile.host.line(timestamp_ns=timestamp_ns)
    line.event("Iterator::Root", 0, 1, id=1)
    event = message_class("XEvent").FromString(line.message.events[0])
    event.offset_ps, event.duration_ps = offset_ps, duration_ps
    line.message.events.append(event.SerializeToString())
    return profile.to_bytes()


contents(
    "impossible times",
    0,
    event_of_negative_length=with_event(10, -(10**6)),
    event_at_the_end_of_time=with_event(INT64_MAX, INT64_MAX),
    event_before_all_time=with_event(-(2**63), 10),
    event_of_a_hundred_years=with_event(0, 10**12 * 86_400 * 36_500 // 1_000),
    thread_at_the_end_of_time=with_event(0, 10, INT64_MAX),
    thread_before_all_time=with_event(0, 10, -(2**63)),
)


def on_device(offset_ps: int, duration_ps: int) -> bytes:
    """Found by fuzzing: the lanes of devices added up such times."""
    profile = pipeline()
    line = profile.plane("/device:GPU:0").line("Stream #1")
    line.event("kernel", 0, 1)
    event = message_class("XEvent").FromString(line.message.events[0])
    event.offset_ps, event.duration_ps = offset_ps, duration_ps
    line.message.events.append(event.SerializeToString())
    return profile.to_bytes()


contents(
    "",
    0,
    kernel_at_the_end_of_time=on_device(INT64_MAX, INT64_MAX),
    kernel_of_negative_length=on_device(10, -(10**9)),
    kernel_before_all_time=on_device(-(2**63), 1),
)
contents("", 0, event_just_before_its_thread=with_event(-(10**6), 10**6))


@case(0)
def start_of_the_profile_at_no_time(folder: Path) -> Path:
    profile = pipeline()
    profile.start_unix_ns(-(2**63))
    return profile.write(folder / "worker.xplane.pb")
