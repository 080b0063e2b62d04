"""Bad inputs, by name: each is made in an empty folder, and says how the command must end on it.

In: nothing.  Out: `CASES`: name -> `Case`. Files are small on disk wherever the harm allows; what they unfold to is not.
"""

from __future__ import annotations

import gzip
import os
import random
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from advisor.trace.xspace import message_class
from tests.trace.made_profile import MadeProfile

Make = Callable[[Path], Path | str]
INT64_MAX = 2**63 - 1


@dataclass(frozen=True)
class Case:
    make: Make
    """Makes the input in a folder of its own and returns what the user types as TARGET."""
    code: int | None
    """The exit code; None: 0 or 2, as long as it ends in a report or a sentence."""
    said: str = ""
    """A part of the sentence (exit code 2) or of the report (0)."""
    options: tuple[str, ...] = ()


CASES: dict[str, Case] = {}


def case(code: int | None, said: str = "", *options: str) -> Callable[[Make], Make]:
    """Add the decorated function to `CASES` under its name."""

    def add(make: Make) -> Make:
        CASES[make.__name__] = Case(make, code, said, options)
        return make

    return add


def contents(said: str, code: int | None = 2, **named: bytes) -> None:
    """Cases that are just bytes in a file."""
    for name, data in named.items():
        CASES[name] = Case(lambda folder, data=data: written(folder, data), code, said)


def written(folder: Path, data: bytes, name: str = "worker.xplane.pb") -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def pipeline(steps: int = 12, name: str = "Map", dataset_name: str = "MapDataset:1") -> MadeProfile:
    """A sound profile: Root -> BatchV2 -> `name`, one step every 100 us of which 60 wait."""
    profile = MadeProfile()
    line = profile.host.line("python")
    for step in range(steps):
        at = step * 100
        line.event("Iterator::Root", at, at + 60, id=1, cpu_budget=4)
        line.event("Iterator::Root::BatchV2", at + 1, at + 59, id=2, parent_id=1, batch_size=8, name="BatchDataset:2")
        line.event(f"Iterator::Root::BatchV2::{name}", at + 2, at + 58, id=3, parent_id=2, name=dataset_name)
    return profile


def varint(value: int) -> bytes:
    out = bytearray()
    while True:
        out.append((value & 0x7F) | (0x80 if value > 0x7F else 0))
        value >>= 7
        if not value:
            return bytes(out)


def field(number: int, data: bytes) -> bytes:
    """A length-delimited field."""
    return varint(number << 3 | 2) + varint(len(data)) + data


SOUND = pipeline().to_bytes()
HOST = field(2, b"/host:CPU")

# ------------------------------------------------------------------------------------------- what is no profile at all
contents("is empty", empty_file=b"")
contents(
    "is no profile",
    one_byte=b"\x0a",
    zeros=bytes(4096),
    ones=b"\xff" * 4096,
    noise=random.Random(1).randbytes(65_536),
    plain_text=b"Hello, this is no profile at all.\n" * 99,
    chrome_trace=b'{"traceEvents": []}',
    web_page=b"<!doctype html><html><script>alert(1)</script></html>",
    picture=b"\x89PNG\r\n\x1a\n" + bytes(100),
    zip_archive=b"PK\x03\x04" + bytes(60),
    python_pickle=b"\x80\x04\x95\x1a\x00\x00\x00\x00\x00\x00\x00\x8c\x05posix\x8c\x06system\x93\x94.",
    text_round_trip=SOUND.decode("utf-8", "replace").encode("utf-8") + b"\xef\xbf\xbd",
    carriage_returns=SOUND.replace(b"\n", b"\r\n"),
    length_beyond_the_end=b"\x0a\xff\xff\xff\xff\x07abc",
    length_of_nine_exabytes=b"\x0a" + b"\xff" * 8 + b"\x7f" + b"abc",
    varint_without_end=b"\x0a" + b"\xff" * 20,
    planes_as_numbers=b"\x08\x01" * 10 + b"\x0b",
    groups_in_groups=b"\x0b" * 100_000,
    end_of_no_group=b"\x0c",
)
contents("holds no profile", only_a_host_name=field(4, b"worker"), unknown_fields_only=field(99, b"x" * 100))

# ------------------------------------------------------------------------------------------------- truncated, damaged
for share in (1, 10, 33, 50, 66, 90, 99):
    CASES[f"truncated_at_{share}_percent"] = Case(
        lambda folder, share=share: written(folder, SOUND[: len(SOUND) * share // 100]), 2, "truncated"
    )
contents("truncated", truncated_by_one_byte=field(1, HOST + field(3, field(4, b"\x08\x01")))[:-1])
contents("", None, truncated_between_planes=field(1, HOST) + field(1, field(2, b"/device:GPU:0")))
for seed in range(12):

    def flipped(folder: Path, seed: int = seed) -> Path:
        dice, data = random.Random(seed), bytearray(SOUND)
        for _ in range(1 + seed):
            data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
        return written(folder, bytes(data))

    CASES[f"bits_flipped_{seed}"] = Case(flipped, None)


@case(2, "damaged")
def damaged_event(folder: Path) -> Path:
    profile = pipeline()
    profile.host.message.lines[0].events.append(b"\x08")
    return profile.write(folder / "worker.xplane.pb")


@case(0)
def event_with_unknown_fields(folder: Path) -> Path:
    profile = pipeline()
    profile.host.message.lines[0].events.append(field(77, b"x" * 1000))
    return profile.write(folder / "worker.xplane.pb")


# --------------------------------------------------------------------------------------------------------------- gzip
contents(
    "gzip",
    gzip_header_alone=b"\x1f\x8b",
    gzip_with_noise=b"\x1f\x8b\x08\x00" + random.Random(2).randbytes(1000),
    gzip_cut_off=gzip.compress(SOUND)[:-12],
    gzip_with_wrong_checksum=gzip.compress(SOUND)[:-8] + b"\0\0\0\0" + gzip.compress(SOUND)[-4:],
)
contents("is empty", gzip_of_nothing=gzip.compress(b""))
contents("is no profile", gzip_of_gzip=gzip.compress(gzip.compress(SOUND)))


@case(2, "100 times its size")
def gzip_bomb(folder: Path) -> Path:
    path = folder / "worker.xplane.pb.gz"
    with gzip.open(path, "wb", compresslevel=9) as file:
        for _ in range(64):
            file.write(bytes(1 << 20))
    return path


@case(2, "100 times its size")
def gzip_bomb_of_planes(folder: Path) -> Path:
    return written(folder, gzip.compress(b"\x0a\x00" * 30_000_000, 6), "worker.xplane.pb.gz")


@case(2, "100 times its size")
def gzip_bomb_of_many_members(folder: Path) -> Path:
    return written(folder, gzip.compress(bytes(1 << 20)) * 64, "worker.xplane.pb.gz")


# ------------------------------------------------------------------------------------------------------- far too many
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
    profile = MadeProfile()
    line = profile.host.line()
    for number in range(6_000):
        line.event("Iterator::Root", number, number + 0.5, id=number + 1, name=f"D{number}")
    return profile.write(folder / "worker.xplane.pb")


@case(0, "left out")
def chain_of_six_thousand(folder: Path) -> Path:
    profile = MadeProfile()
    line = profile.host.line()
    for number in range(6_000):
        line.event("Iterator::Root::Map", number * 1e-4, 10 - number * 1e-4, id=number + 1, parent_id=number)
    return profile.write(folder / "worker.xplane.pb")


@case(0, "left out")
def six_thousand_inputs(folder: Path) -> Path:
    profile = MadeProfile()
    line = profile.host.line()
    line.event("Iterator::Root", 0, 6_000, id=1)
    for number in range(6_000):
        line.event(f"Iterator::Root::T{number}", number, number + 0.5, id=number + 2, parent_id=1)
    return profile.write(folder / "worker.xplane.pb")


@case(0)
def six_thousand_inputs_of_one_root(folder: Path) -> Path:
    profile = MadeProfile()
    line = profile.host.line()
    for number in range(6_000):
        line.event("Iterator::Root::Range", number, number + 0.5, id=number + 2, parent_id=1, name=f"n{number}")
    line.event("Iterator::Root", 0, 6_000, id=1)
    return profile.write(folder / "worker.xplane.pb")


@case(0)
def twenty_thousand_events_inside_one_another(folder: Path) -> Path:
    profile = MadeProfile()
    line = profile.host.line()
    for number in range(20_000):
        line.event("Iterator::Root", number * 1e-5, 10 - number * 1e-5, id=1)
    return profile.write(folder / "worker.xplane.pb")


@case(0)
def everything_at_one_instant(folder: Path) -> Path:
    profile = MadeProfile()
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


# ---------------------------------------------------------------------------------------------------------------- ids
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
    profile = MadeProfile()
    line = profile.host.line()
    for number in range(6_000):
        line.event("Iterator::Root::Map", number, number + 1, id=number + 1, parent_id=(number + 1) % 6_000 + 1)
    return profile.write(folder / "worker.xplane.pb")


@case(0)
def iterators_without_ids(folder: Path) -> Path:
    profile = MadeProfile()
    line = profile.host.line()
    for number in range(10):
        line.event("Iterator::Root", number, number + 0.5).event("Iterator::Root::Map", number, number + 0.4)
    return profile.write(folder / "worker.xplane.pb")


@case(0)
def parents_that_are_not_there(folder: Path) -> Path:
    profile = MadeProfile()
    line = profile.host.line()
    for number in range(10):
        line.event("Iterator::Root::Map", number, number + 0.5, id=number + 5, parent_id=999)
    return profile.write(folder / "worker.xplane.pb")


@case(0)
def one_id_for_everything(folder: Path) -> Path:
    profile = MadeProfile()
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


# -------------------------------------------------------------------------------------------------------------- times
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


# -------------------------------------------------------------------------------------------------------------- names
MEGABYTE = "N" * 1_000_000
ESCAPES = "\x1b[2J\x1b[31mred\x1b]8;;http://evil\x07link\x9b1A\x00\b\r\n\u202ertl\u2066\ud800".encode(
    "utf-8", "surrogatepass"
)
HTML = "<script>alert(1)</script><img src=x onerror=alert(1)>&amp;'\"[bold red]x[/bold red]"


def named(name: str | bytes) -> bytes:
    """A profile in which everything that has a name has this one."""
    raw = name if isinstance(name, bytes) else name.encode()
    profile = pipeline()
    message = profile.message
    line = profile.host.line("x")
    for step in range(5):
        line.event(b"Iterator::Root::" + raw, step * 100, step * 100 + 50, id=10, name=raw, shapes=raw, algorithm=raw)
    message.hostnames[0] = raw
    message.errors.append(raw)
    message.warnings.append(raw)
    line.message.name = raw
    line.message.display_name = raw
    device = profile.plane("x")
    device.message.name = b"/device:GPU:0" + raw
    device.line("y").event(raw, 0, 1)
    return profile.to_bytes()


contents(
    "",
    0,
    names_of_a_megabyte=named(MEGABYTE),
    names_of_nothing=named(""),
    names_of_invalid_utf8=named(b"\xff\xfe\xc3\x28\xf0\x28\x8c\x28\xed\xa0\x80" * 20),
    names_of_escape_sequences=named(ESCAPES),
    names_of_html=named(HTML),
    names_of_emoji_and_wide_characters=named("\U0001f600\u4e2d\u0301\u200d" * 50),
    names_of_unassigned_characters=named("\U000544f6\u0ef2\U0003d805\u07ba"),  # found by fuzzing
    names_of_colons=named("::" * 2000),
    names_of_brackets=named("A[" * 2000),
    long_name_of_a_hundred_thousand_parts=named("::".join(["A"] * 100_000)),
    long_name_with_a_huge_index=named("Zip[" + "9" * 5000 + "]::Range"),
)


@case(0, "\\x1b[2J")
def file_named_with_escape_sequences(folder: Path) -> Path:
    return pipeline().write(folder / "\x1b[2J\x1b[31mred.xplane.pb")


@case(2, "\\x1b[2J")
def damaged_file_named_with_escape_sequences(folder: Path) -> Path:
    return written(folder, b"no profile", "\x1b[2J\x1b[31mred\n.xplane.pb")


# -------------------------------------------------------------------------------------------------------- file system
@case(2, "There is no")
def nothing_there(folder: Path) -> Path:
    return folder / "nowhere.xplane.pb"


@case(2, "holds no profile")
def empty_folder(folder: Path) -> Path:
    return folder


@case(2, "holds no profile")
def folder_named_like_a_profile(folder: Path) -> Path:
    (folder / "worker.xplane.pb").mkdir()
    return folder / "worker.xplane.pb"


@case(2, "holds no profile")
def folders_in_place_of_profiles(folder: Path) -> Path:
    (folder / "plugins/profile/2026_01_01_00_00_00/worker.xplane.pb").mkdir(parents=True)
    return folder


@case(2, "before 2.3")
def summaries_of_tensorflow_2_1(folder: Path) -> Path:
    run = folder / "plugins/profile/2020_01_01_00_00_00"
    run.mkdir(parents=True)
    (run / "local.trace.json.gz").write_bytes(gzip.compress(b"{}"))
    (run / "local.input_pipeline.pb").write_bytes(b"")
    return folder


@case(2, "a named pipe")
def named_pipe(folder: Path) -> Path:
    os.mkfifo(folder / "worker.xplane.pb")
    return folder / "worker.xplane.pb"


@case(2, "a socket")
def unix_socket(folder: Path) -> Path:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(folder / "s.pb"))
    return folder / "s.pb"


@case(2, "a device")
def endless_device(folder: Path) -> Path:
    (folder / "worker.xplane.pb").symlink_to("/dev/zero")
    return folder / "worker.xplane.pb"


@case(2, "a device")
def empty_device(folder: Path) -> Path:
    (folder / "worker.xplane.pb").symlink_to("/dev/null")
    return folder / "worker.xplane.pb"


@case(2, "There is no")
def symlink_loop(folder: Path) -> Path:
    (folder / "worker.xplane.pb").symlink_to(folder / "worker.xplane.pb")
    return folder / "worker.xplane.pb"


@case(2, "There is no")
def dangling_symlink(folder: Path) -> Path:
    (folder / "worker.xplane.pb").symlink_to(folder / "gone")
    return folder / "worker.xplane.pb"


@case(0)
def folder_that_contains_itself(folder: Path) -> Path:
    (folder / "plugins").mkdir()
    (folder / "plugins/profile").symlink_to(folder / "plugins")
    pipeline().write(folder / "plugins/2026_01_01_00_00_00/worker.xplane.pb")
    return folder


@case(2, "too long")
def path_that_is_too_long(folder: Path) -> Path:
    return folder / ("x" * 300 + ".xplane.pb")


@case(2, "larger than 2 GiB")
def sparse_file_of_three_gigabytes(folder: Path) -> Path:
    with (folder / "worker.xplane.pb").open("wb") as file:
        file.truncate(3 << 30)
    return folder / "worker.xplane.pb"


@case(0, "is no profile")
def one_damaged_host_of_two(folder: Path) -> Path:
    run = folder / "plugins/profile/2026_01_01_00_00_00"
    pipeline().write(run / "good.xplane.pb")
    written(run, b"no profile", "bad.xplane.pb")
    return folder


@case(0)
def five_hundred_runs(folder: Path) -> Path:
    for number in range(500):
        pipeline(2).write(folder / f"plugins/profile/2026_01_01_00_{number // 60:02}_{number % 60:02}/h.xplane.pb")
    return folder


# ------------------------------------------------------------------------------------------------- runs, hosts, scripts
def logdir(folder: Path) -> Path:
    for run in ("2026_01_01_00_00_00", "2026_01_02_00_00_00"):
        for host in ("alpha", "beta"):
            pipeline().write(folder / f"plugins/profile/{run}/{host}.xplane.pb")
    return folder


for title, code, said, options in (
    ("run_that_is_not_there", 2, "There is no run in", ("--run", "1999_01_01_00_00_00")),
    ("run_that_may_be_either", 2, "more than one run", ("--run", "2026")),
    ("host_that_is_not_there", 2, "There is no host in", ("--host", "gamma")),
    ("script_that_is_not_there", 2, "cannot be read", ("--source", "/nowhere/train.py")),
    ("script_that_is_a_folder", 2, "cannot be read", ("--source", "/tmp")),
):
    CASES[title] = Case(logdir, code, said, options)


# --------------------------------------------------------------------------------------------------------- run folders
def recorded(folder: Path, recording: bytes) -> Path:
    pipeline().write(folder / "plugins/profile/2026_01_01_00_00_00/worker.xplane.pb")
    (folder / "recording.json").write_bytes(recording)
    return folder


for title, content in {
    "recording_that_is_empty": b"",
    "recording_that_is_no_json": b"no json",
    "recording_of_another_kind": b'{"a": 1}',
    "recording_that_is_a_list": b"[1, 2, 3]",
    "recording_nested_too_deeply": b"[" * 100_000,
    "recording_of_invalid_utf8": b'{"target": "\xff\xfe"}',
    "recording_with_a_huge_number": b'{"target": "x", "schema_version": 1' + b"0" * 5000 + b"}",
}.items():
    CASES[title] = Case(lambda folder, content=content: recorded(folder, content), 2, "recording.json")


# ---------------------------------------------------------------------------------------------------------------- URLs
@case(2, "cannot be read")
def url_of_an_unknown_kind(folder: Path) -> str:
    return "nonsense://bucket/logs"


@case(2, "cannot be reached")
def url_of_nothing(folder: Path) -> str:
    return "memory://nothing/here"


@case(2, "cannot be reached")
def url_that_nobody_answers(folder: Path) -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    return f"http://127.0.0.1:{port}/logs/worker.xplane.pb"
