"""Names that would steer a terminal, a page or a log, or are far too long."""

from __future__ import annotations

from pathlib import Path

from tests.hostile.case import case, contents, pipeline, written

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
