"""Bytes that are no profile, or no longer one: other files, truncated, damaged, gzip bombs."""

from __future__ import annotations

import gzip
import random
from pathlib import Path

from tests.hostile.case import CASES, HOST, SOUND, Case, case, contents, field, pipeline, written

contents("is empty", empty_file=b"")
contents(
    "is not a profile",
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
contents("contains no profile", only_a_host_name=field(4, b"worker"), unknown_fields_only=field(99, b"x" * 100))

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


contents(
    "gzip",
    gzip_header_alone=b"\x1f\x8b",
    gzip_with_noise=b"\x1f\x8b\x08\x00" + random.Random(2).randbytes(1000),
    gzip_cut_off=gzip.compress(SOUND)[:-12],
    gzip_with_wrong_checksum=gzip.compress(SOUND)[:-8] + b"\0\0\0\0" + gzip.compress(SOUND)[-4:],
)
contents("is empty", gzip_of_nothing=gzip.compress(b""))
contents("is not a profile", gzip_of_gzip=gzip.compress(gzip.compress(SOUND)))


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
