"""The documentation names only what exists: files, modules, links, headings, commands, options and make targets."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import click
import pytest

from advisor.cli import advisor as cli

ROOT = Path(__file__).parents[1]
DOCUMENTS = sorted(
    [
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("examples/**/*.md"),
        *ROOT.glob("tests/traps/*.md"),
        ROOT / "advisor/SKILL.md",
    ]
)
PATH = re.compile(r"(?<![\w/.<>:-])((?:advisor|rules|docs|tests|benchmarks|examples)/[\w./<>*-]*\w)")
MODULE = re.compile(r"(?<![\w/.-])advisor(?:\.[A-Za-z_]\w*)+")
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ +(.*)$", re.MULTILINE)
FENCE = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
INDENTED = re.compile(r"^ {4,}(?=advisor |make |python )(.*)$", re.MULTILINE)
URL = re.compile(r"https?://[^\s)\]>\"'`,]+")
ADDRESSES = frozenset(
    {
        "https://d3js.org",
        "https://github.com/dagrejs/dagre",
        "https://github.com/openxla/xprof/issues/380",
        "https://github.com/openxla/xprof/issues/655",
        "https://github.com/tensorflow/serving/issues/1755",
        "https://github.com/tensorflow/tensorboard/issues/6889",
        "https://observablehq.com/plot",
        "https://ui.perfetto.dev",
    }
)
"""Other hosts that the documents lead to. No test asks them: open an address before you add it."""
USERS_FILES = frozenset({"advisor/train.py"})
"""Paths of examples: files of a user's repository, not of this one."""
SCRIPT_COMMANDS = ("analyze", "check", "fix", "offload", "prove", "watch")
"""What follows their first argument belongs to the user's script."""

documents = pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))


@documents
def test_paths_exist(document: Path):
    named = set(PATH.findall(document.read_text("utf-8")))
    missing = sorted(path for path in named - USERS_FILES if not set("<>*") & set(path) and not exists(path))
    assert not missing


@documents
def test_modules_exist(document: Path):
    missing = [name for name in set(MODULE.findall(document.read_text("utf-8"))) if not is_known(name)]
    assert not missing


@documents
def test_relative_links_resolve(document: Path):
    broken = []
    for link in LINK.findall(FENCE.sub("", document.read_text("utf-8"))):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = document.parent / path if path else document
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            broken.append(link)
    assert not broken


@documents
def test_addresses_have_been_looked_at(document: Path):
    text = FENCE.sub("", document.read_text("utf-8"))
    unknown = {address.rstrip(".") for address in URL.findall(text)} - ADDRESSES
    assert not {address for address in unknown if "HOST:PORT" not in address}


@documents
def test_commands_and_options_exist(document: Path):
    wrong = [why for words in command_lines(document.read_text("utf-8")) if (why := problem_of(words))]
    assert not wrong


@documents
def test_make_targets_exist(document: Path):
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    named = {line.split()[1] for line in code_lines(document.read_text("utf-8")) if re.match(r"make \w", line)}
    assert named <= targets


@pytest.mark.parametrize(
    ("line", "is_right"),
    [
        ("advisor analyze --steps 20 train.py --no-such-option", True),
        ("advisor analyze -m package.train --no-such-option", True),
        ("advisor runs prune --dry-run", True),
        ("advisor analyze --no-such-option train.py", False),
        ("advisor runs prune --no-such-option", False),
        ("advisor nothing", False),
    ],
)
def test_a_wrong_command_line_is_noticed(line, is_right):
    assert (problem_of(shlex.split(line)) == "") is is_right


def exists(path: str) -> bool:
    """Whether a path exists; a decision may be named by its number alone."""
    return (ROOT / path).exists() or (
        re.fullmatch(r"docs/decisions/\d{4}", path) is not None and any(ROOT.glob(f"{path}-*.md"))
    )


def is_known(name: str) -> bool:
    """Whether a dotted name is a module, or an attribute that its module's text holds."""
    _, *parts = name.split(".")
    place = ROOT / "advisor"
    if parts[0] == "rules":
        place, parts = ROOT / "rules", parts[1:]
    for part in parts:
        if (place / part).is_dir():
            place /= part
        elif (place / f"{part}.py").is_file():
            place /= f"{part}.py"
        else:
            file = place if place.is_file() else place / "__init__.py"
            return re.search(rf"\b{part}\b", file.read_text("utf-8")) is not None
    return True


@cache
def anchors(document: Path) -> frozenset[str]:
    """The headings of a document as GitHub makes anchors of them."""
    headings = HEADING.findall(FENCE.sub("", document.read_text("utf-8")))
    return frozenset(re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings)


def code_lines(text: str) -> list[str]:
    """The lines of code blocks, and inline code."""
    fenced = [line.strip().removeprefix("$ ") for block in FENCE.findall(text) for line in block.splitlines()]
    prose = FENCE.sub("", text)
    return [*fenced, *INDENTED.findall(prose), *INLINE.findall(prose)]


def command_lines(text: str) -> Iterator[list[str]]:
    """Every line of code that calls `advisor`, as words."""
    for line in code_lines(text):
        if not line.startswith("advisor "):
            continue
        code = re.split(r"  #|\s[|>&;]\s", line.replace("\\|", "|"))[0]
        try:
            yield shlex.split(code)
        except ValueError:  # a line that goes on below
            yield code.split()


def problem_of(words: list[str]) -> str:
    """What does not exist in a command line; empty if all of it does."""
    command: click.Command = cli
    rest = words[1:]
    context = click.Context(cli, **cli.context_settings)  # click caches the names of the help option that it finds here
    while isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
        inner = command.get_command(context, rest[0])
        if inner is None:
            return f"{' '.join(words)}: no command {rest[0]}"
        command, rest = inner, rest[1:]
    options = {name: option for option in command.get_params(click.Context(command, context)) for name in option.opts}
    takes_value = False
    for word in rest:
        name = word.split("=")[0].rstrip(",")
        if takes_value:
            takes_value = False
        elif name == "-m" or (not name.startswith("-") and command.name in SCRIPT_COMMANDS):
            return ""
        elif name.startswith("--"):
            option = options.get(name)
            if option is None:
                return f"{' '.join(words)}: no option {name}"
            takes_value = isinstance(option, click.Option) and not option.is_flag and "=" not in word
    return ""
