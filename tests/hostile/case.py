"""What a bad input is, the table of all, and the sound profile that the bad ones are made from.

In: nothing.  Out: `CASES`: name -> `Case`, filled by the rooms beside this file.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.profile.made_profile import ProfileBuilder

Make = Callable[[Path], Path | str]


@dataclass(frozen=True)
class Case:
    make: Make
    """Makes the input in a folder of its own and returns what the user types as TARGET."""
    code: int | None
    """The exit code; None: 0 or 2, as long as it ends in a report or a sentence."""
    said: str = ""
    """A part of the sentence (exit code 2) or of the report (0)."""
    options: tuple[str, ...] = ()
    is_strangers: bool = False
    """Run by a user who may read nothing that is not open to all."""


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


def pipeline(steps: int = 12, name: str = "Map", dataset_name: str = "MapDataset:1") -> ProfileBuilder:
    """A sound profile: Root -> BatchV2 -> `name`, one step every 100 us of which 60 wait."""
    profile = ProfileBuilder()
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
