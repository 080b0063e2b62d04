"""Generates the JSON Schemas of the JSON outputs from their classes: `python -m advisor.report.schema --write`.

The classes are those of the `*_format.py` files and the dataclasses of the model that they hold. Descriptions are the docstrings
of the classes and of their fields. Without `--write`, the exit code says whether the files are up to date.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec.inspect

from advisor.model.field_docstrings import field_docstrings
from advisor.report.change_format import ChangeProof
from advisor.report.check_format import Check
from advisor.report.comparison_format import RunComparison
from advisor.report.journal_format import JournalEntry
from advisor.report.offload_format import Offload
from advisor.report.report_format import Report

SCHEMAS: dict[str, tuple[type, str]] = {
    "report.schema.json": (Report, "report.json of tfdata-advisor, schema_version 1"),
    "comparison.schema.json": (RunComparison, "advisor compare --json, schema_version 1"),
    "check.schema.json": (Check, "advisor check --json, schema_version 1"),
    "change.schema.json": (ChangeProof, "advisor prove --json, schema_version 1"),
    "offload.schema.json": (Offload, "advisor offload --json, schema_version 1"),
    "journal.schema.json": (JournalEntry, "a line of advisor prove --journal, schema_version 1"),
}
"""File name -> class of the whole document, title."""
_LEAF = re.compile(r"([\[{])\n\s+([^\[\]{}]{1,90})\n\s+([\]}])")
"""A short object or array without others inside; it is put on one line."""


def generate(name: str) -> str:
    """Return the text of the schema file `name`."""
    document, title = SCHEMAS[name]
    _, components = msgspec.json.schema_components([document], ref_template="#/$defs/{name}")
    definitions: dict[str, Any] = {}
    for kind in dict.fromkeys(_classes(msgspec.inspect.type_info(document))):
        definitions[_key(kind.__name__)] = _canonical(_described(components[kind.__name__], kind))
    root = definitions.pop(_key(document.__name__))
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    text = json.dumps({**head, **root, "title": title, "$defs": definitions}, indent=2)
    return _LEAF.sub(lambda match: match[1] + " ".join(match[2].split()) + match[3], text) + "\n"


def _classes(type_: object) -> Iterator[type]:
    """Every class with a definition of its own, in the order in which the document holds them."""
    if isinstance(cls := getattr(type_, "cls", None), type):
        yield cls
    if isinstance(type_, msgspec.Struct):
        inner = [getattr(type_, name) for name in type_.__struct_fields__]
        for value in inner:
            for part in value if isinstance(value, tuple) else [value]:
                yield from _classes(part)


def _canonical(part: object) -> object:
    """Let references point at the keys of this schema, and sort alternatives, whose order depends on the version of msgspec."""
    if isinstance(part, dict):
        return {
            name: sorted(map(_canonical, value), key=json.dumps) if name == "anyOf" else _canonical(value)
            for name, value in part.items()
        }
    if isinstance(part, list):
        return [_canonical(value) for value in part]
    return f"#/$defs/{_key(part[8:])}" if isinstance(part, str) and part.startswith("#/$defs/") else part


def _key(class_name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", class_name).lower()


def _described(schema: dict[str, Any], kind: type) -> dict[str, Any]:
    """Add the descriptions of the fields. All fields are required, as even those with a default are written."""
    del schema["title"]
    if "description" in schema:
        # Python 3.13 has already removed the indentation.
        schema["description"] = inspect.cleandoc(schema["description"])
    if "properties" not in schema:
        return schema
    docstrings = field_docstrings(Path(inspect.getfile(kind)), kind.__name__)
    for name, field in schema["properties"].items():
        field.pop("default", None)
        if name in docstrings:
            field["description"] = re.sub(r"\bNone\b", "null", docstrings[name])
    return {**schema, "required": list(schema["properties"]), "additionalProperties": False}


def main(arguments: list[str]) -> int:
    """Write the schemas, or compare them with the files; return 1 if a file was out of date."""
    is_stale = False
    for name in SCHEMAS:
        path, text = Path(__file__).parent / name, generate(name)
        if path.read_text("utf-8") == text:
            continue
        is_stale = True
        if "--write" in arguments:
            path.write_text(text, "utf-8")
        print(
            f"{path} {'is rewritten' if '--write' in arguments else 'is out of date: run this command with --write'}."
        )
    return 1 if is_stale and "--write" not in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
