"""report.schema.json is generated, sound and without open ends, and every real report is valid against it."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path

import jsonschema
import pytest

from advisor.engine import load_rules
from advisor.model.errors import AdvisorError
from advisor.model.settings import Settings
from advisor.report.report_json import load_schema, report_to_bytes
from advisor.report.schema import SCHEMAS, generate
from advisor.workflows.analyze import analyze_run

DATA = Path(__file__).parents[1] / "data"
RUNS = sorted(path.parent for path in DATA.glob("*/recording.json"))
OTHERS = sorted(path for path in (Path(__file__).parents[2] / "../shared/profiles").glob("*") if path.is_dir())
RULES = load_rules([], Settings())


@pytest.mark.parametrize("name", SCHEMAS)
def test_schema_is_the_one_that_the_classes_give(name):
    shipped = resources.files("advisor.report").joinpath(name).read_text("utf-8")
    assert shipped == generate(name), "run python -m advisor.report.schema --write"


def test_schema_is_sound():
    jsonschema.Draft202012Validator.check_schema(load_schema())


def test_schema_has_no_open_ends():
    def walk(schema: object) -> None:
        if isinstance(schema, dict):
            if schema.get("type") == "object":
                assert schema["additionalProperties"] not in (True, {})
                assert set(schema.get("required", [])) == set(schema.get("properties", {}))
            for value in schema.values():
                walk(value)
        elif isinstance(schema, list):
            for value in schema:
                walk(value)

    walk(load_schema())


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
def test_real_run_is_valid(run, validate):
    report = analyze_run(run, RULES, Settings())
    data = json.loads(report_to_bytes(report))
    validate(data)
    assert not data["rule_errors"]
    main = next(pipeline for pipeline in data["pipelines"] if pipeline["is_main"])
    shares = [iterator["blame_share"] for iterator in main["iterators"]]
    assert sum(shares) == pytest.approx(1, abs=0.05)


@pytest.mark.long
@pytest.mark.skipif(not OTHERS, reason="the profiles of others are not beside this checkout")
@pytest.mark.parametrize("path", OTHERS, ids=lambda path: path.name)
def test_profile_of_others_is_valid_or_one_sentence(path, validate):
    try:
        report = analyze_run(path, RULES, Settings())
    except AdvisorError as error:
        assert "\n" not in str(error)
        return
    validate(json.loads(report_to_bytes(report)))
    assert report.analysis.verdict.sentence
