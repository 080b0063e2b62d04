"""`advisor skill`: the instructions for agents name only what exists, and all that an agent meets."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import click
import pytest

from advisor import cli
from advisor.capture.request import CaptureRequest
from advisor.commands.skill import SKILL_NAME, skill_text
from advisor.model.change_proof import VERDICTS
from advisor.model.finding import Safety
from advisor.report.json_format import read_schema
from advisor.report.schema import SCHEMAS

TEXT = skill_text()
INLINE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
FIELD = re.compile(r"[a-z_]+(?:\[\])?(?:\.[a-z_]+(?:\[\])?)*")
FILES = re.compile(r"[\w-]+\.(?:py|json|jsonl|diff|md)|package\.train")
OTHER_NAMES = {"advisor", "tfdata-advisor", "low", "high"}


def section(title):
    """The text below a heading."""
    return TEXT.split(f"\n## {title}\n")[1].split("\n## ")[0]


def first_column(title):
    """The inline code in the first column of a table."""
    rows = [line for line in section(title).splitlines() if line.startswith("| ")]
    return [code for row in rows for code in INLINE.findall(row.split(" | ")[0])]


def resolved(root, part):
    """A part of a schema without references and without null."""
    while "$ref" in part or "anyOf" in part:
        if "$ref" in part:
            part = root["$defs"][part["$ref"].rpartition("/")[2]]
        else:
            (part,) = (one for one in part["anyOf"] if one != {"type": "null"})
    return part


def exists(schema, path):
    """Whether a path such as `findings[].site.line` leads to a value of the schema."""
    place = schema
    for step in path.split("."):
        name = step.removesuffix("[]")
        fields = resolved(schema, place).get("properties", {})
        if name not in fields:
            return False
        place = resolved(schema, fields[name])
        if step.endswith("[]"):
            if "items" not in place:
                return False
            place = place["items"]
    return True


@cache
def words():
    """Every name of a field and every fixed value in one of the schemas."""
    options = set()

    def walk(part):
        if isinstance(part, dict):
            options.update(part.get("properties", {}))
            options.update(value for value in part.get("enum", ()) if isinstance(value, str))
            for inner in part.values():
                walk(inner)
        elif isinstance(part, list):
            for inner in part:
                walk(inner)

    for name in SCHEMAS:
        walk(read_schema(name))
    return options


@cache
def options():
    """Every option of every command."""
    context = click.Context(cli.advisor)
    options = {"--help"}
    for name in cli.COMMANDS:
        command = cli.advisor.get_command(context, name)
        options.update(option for param in command.params for option in param.opts)
    return options


def test_it_is_short_and_has_the_front_matter_that_agents_read():
    assert len(TEXT.splitlines()) < 200
    _, front, rest = TEXT.split("---\n", 2)
    fields = dict(line.split(": ", 1) for line in front.splitlines())
    assert all(value.count(": ") == 0 for value in fields.values())  # so that YAML reads the same
    assert fields["name"] == SKILL_NAME and re.fullmatch(r"[a-z0-9-]{1,64}", fields["name"])
    assert 100 < len(fields["description"]) < 1024
    assert rest.startswith("\n# ")


@pytest.mark.parametrize(
    ("title", "schema"),
    [
        ("Fields of `advisor analyze --json`", "report.schema.json"),
        ("Fields of `advisor prove --json`", "change.schema.json"),
    ],
)
def test_every_field_in_the_tables_exists(title, schema):
    paths = first_column(title)
    assert len(paths) > 8
    assert [path for path in paths if not exists(read_schema(schema), path)] == []


def test_every_field_of_the_journal_exists():
    named = INLINE.findall(section("The journal").partition(":")[2].partition(". ")[0])
    assert {"event", "hypothesis", "verdict", "seconds"} <= set(named)
    assert [name for name in named if not exists(read_schema("journal.schema.json"), name)] == []


def test_a_field_that_does_not_exist_is_noticed():
    schema = read_schema("report.schema.json")
    assert exists(schema, "findings[].site.line") and exists(schema, "pipelines[].iterators[].lines[].text")
    for path in ("finding", "findings[].sites", "findings.rule", "verdict.input_bound.x", "verdict[].limit"):
        assert not exists(schema, path)


def test_everything_else_in_code_exists_as_well():
    assert len(INLINE.findall(TEXT)) > 50
    for code in INLINE.findall(TEXT):
        for option in re.findall(r"--[a-z][a-z-]*", code.partition(" train.py")[0]):
            assert option in options(), f"{code}: no option {option}"
        if FIELD.fullmatch(code) and not FILES.fullmatch(code) and code not in OTHER_NAMES:
            assert code in words() or any(exists(read_schema(name), code) for name in SCHEMAS), code


def test_every_verdict_exit_code_and_level_is_explained():
    assert set(first_column("Verdicts")) - {"verdict"} == set(VERDICTS)
    codes = {int(code) for code in re.findall(r"^    (\d+)  ", cli.__doc__, re.MULTILINE)}
    columns = re.findall(r"^\| ([\d, ]+) \|", section("Exit codes"), re.MULTILINE)
    explained = {int(code) for column in columns for code in column.split(", ")}
    assert explained - {143} == codes - {4, 141}  # of `fix` alone; of a closed pipe
    assert all(f"`{level}`" in TEXT for level in Safety)


def test_the_ways_to_name_a_script_are_right():
    assert CaptureRequest(Path("run"), None, "package.train").argv == ("-m", "package.train")


def test_it_is_printed_as_it_is_shipped(capsys):
    assert cli.main(["skill"]) == 0
    assert capsys.readouterr().out == TEXT


def test_it_is_written_into_a_folder_of_its_name_and_replaced_there(tmp_path, capsys):
    written = tmp_path / SKILL_NAME / "SKILL.md"
    for _ in range(2):
        assert cli.main(["skill", "--write", str(tmp_path)]) == 0
        assert written.read_text("utf-8") == TEXT
        assert capsys.readouterr().out == f"Wrote {written}.\n"
        written.write_text("---\nname: tfdata-advisor\n---\nof an earlier version\n")


def test_files_of_others_are_not_replaced(tmp_path, capsys):
    (tmp_path / SKILL_NAME).mkdir()
    (tmp_path / SKILL_NAME / "SKILL.md").write_text("mine")
    assert cli.main(["skill", "--write", str(tmp_path)]) == 2
    assert cli.main(["skill", "--write", str(tmp_path / "missing")]) == 2
    assert cli.main(["skill", "--write", str(tmp_path / SKILL_NAME / "SKILL.md")]) == 2
    errors = capsys.readouterr().err.splitlines()
    assert len(errors) == 3 and "would overwrite" in errors[0]
    assert (tmp_path / SKILL_NAME / "SKILL.md").read_text() == "mine"
