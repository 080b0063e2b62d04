"""The recipes of scripts from the wild are well-formed, and the fetcher refuses a text that is not the recipe's. No network."""

import hashlib
import sys
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from advisor.model.errors import AdvisorError
from advisor.model.recording import Consumer, Host, Recording, ScriptExit, StepSeries, Window
from tests.examples.conftest import REPOSITORY

BENCHMARKS = REPOSITORY / "benchmarks"
RECIPES = sorted((BENCHMARKS / "wild" / "recipes").glob("*.toml"))
TEXT = "import tensorflow as tf\n\nepochs = 100\nplot()\nshow()\nfit(epochs)\n"


@pytest.fixture(autouse=True)
def benchmarks_on_path(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    yield
    for name in [name for name in sys.modules if name.split(".")[0] in ("wild", "wild_scripts", "published")]:
        sys.modules.pop(name)


def recipe_of(edits=(), text=TEXT, **changes):
    from wild.recipe import Recipe

    fields = {
        "title": "a test",
        "repository": "someone/something",
        "commit": "a" * 40,
        "licence": "MIT",
        "script": "src/train.py",
        "folder": "src",
        "wanted": "input-bound",
        "reason": "a test",
        "covers": ["a test"],
        "stand_ins": [],
        "name": "test",
        "files": [
            {"path": "src/train.py", "sha256": hashlib.sha256(text.encode()).hexdigest(), "edits": list(edits)},
        ],
    }
    return msgspec.convert({**fields, **changes}, Recipe)


@pytest.fixture
def sources(tmp_path):
    path = tmp_path / "sources" / "someone+something" / "src" / "train.py"
    path.parent.mkdir(parents=True)
    path.write_text(TEXT)
    return tmp_path / "sources"


def test_there_are_at_least_25_scripts():
    from wild.recipe import read_recipes

    recipes = list(read_recipes())
    assert len({(recipe.repository, recipe.script) for recipe in recipes}) >= 25
    assert len({recipe.repository for recipe in recipes}) >= 8


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_it_is_well_formed(path):
    from wild.recipe import read_recipe
    from wild.stand_ins import check_stand_in

    recipe = read_recipe(path)
    for stand_in in recipe.stand_ins:
        check_stand_in(stand_in.make, stand_in.options)
        assert not Path(stand_in.into).is_absolute()


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_it_quotes_no_more_than_a_few_words(path):
    from wild.recipe import read_recipe

    for file in read_recipe(path).files:
        for edit in file.edits:
            assert len(edit.old or "") <= 40, f"{path.name}: {edit.old!r}"


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_its_packages_are_in_the_extra(path):
    import tomllib

    from wild.recipe import read_recipe

    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    there = {name.split(">")[0].split("[")[0].replace("_", "-") for name in project["wild"]}
    assert {name.replace("_", "-") for name in read_recipe(path).packages} <= there


def test_edits_apply_and_keep_the_line_numbers(sources, tmp_path):
    from wild.fetch import place_files

    edits = [
        {"line": 3, "old": "100", "new": "2", "why": "fewer epochs"},
        {"line": 4, "until": 5, "new": "pass", "why": "no plots"},
    ]
    script = place_files(recipe_of(edits), tmp_path / "work", sources)
    assert script == tmp_path / "work" / "train.py"
    assert script.read_text() == "import tensorflow as tf\n\nepochs = 2\npass\n\nfit(epochs)\n"


def test_a_changed_text_is_refused_and_nothing_is_written(sources, tmp_path):
    from wild.fetch import place_files

    (sources / "someone+something" / "src" / "train.py").write_text(TEXT + "# changed\n")
    with pytest.raises(AdvisorError, match=r"is not the text of a{12} that test was written for") as caught:
        place_files(recipe_of(), tmp_path / "work", sources)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "work").exists()


def test_a_missing_copy_is_one_sentence(tmp_path):
    from wild.fetch import place_files

    with pytest.raises(AdvisorError, match=r"cannot be read \(No such file or directory\): test needs it in --sources"):
        place_files(recipe_of(), tmp_path / "work", tmp_path)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        ({"line": 3, "old": "200", "new": "2"}, "Line 3 of src/train.py has '200' 0 times"),
        ({"line": 3, "old": "0", "new": "2"}, "Line 3 of src/train.py has '0' 2 times"),
        ({"line": 30, "new": ""}, "names line 30, but the file ends after 7 lines"),
    ],
)
def test_an_edit_that_does_not_fit_is_refused(sources, tmp_path, edit, message):
    from wild.fetch import place_files

    with pytest.raises(AdvisorError, match=message):
        place_files(recipe_of([{**edit, "why": "a test"}]), tmp_path / "work", sources)


@pytest.mark.parametrize(
    ("edits", "message"),
    [
        ([{"line": 4, "until": 3}], "before its first line"),
        ([{"line": 3, "new": "a\nb"}], "adds lines"),
        ([{"line": 3, "until": 4, "old": "a"}], "beyond that line"),
        ([{"line": 3, "until": 5}, {"line": 5}], "overlap or are not in order"),
        ([{"line": 5}, {"line": 3}], "overlap or are not in order"),
    ],
)
def test_a_contradictory_edit_is_no_recipe(edits, message):
    with pytest.raises(msgspec.ValidationError, match=message):
        recipe_of([{"why": "a test", **edit} for edit in edits])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"licence": "GPL-3.0"}, "licence"),
        ({"commit": "main"}, "commit"),
        ({"script": "other.py"}, "is not one of the files"),
        ({"folder": "elsewhere"}, "elsewhere"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_a_recipe_without_what_it_needs_is_refused(changes, message):
    with pytest.raises(msgspec.ValidationError, match=message):
        recipe_of(**changes)


def test_an_unknown_stand_in_is_refused():
    from wild.stand_ins import check_stand_in

    with pytest.raises(ValueError, match="there is no stand-in 'poems'"):
        check_stand_in("poems", {})
    with pytest.raises(ValueError, match="captchas cannot be made so"):
        check_stand_in("captchas", {"colour": "red"})


def test_stand_ins_are_the_same_in_every_run(tmp_path):
    from wild.stand_ins import make_stand_in

    for name, options in [
        ("captchas", {"count": 3}),
        ("tagged_sentences", {"count": 5}),
        ("heart", {"rows": 4}),
        ("read_sentences", {"count": 1}),
        ("method_paths", {"count": 3, "contexts": 8}),
        ("masks", {"count": 1, "width": 80, "height": 60}),
    ]:
        contents = []
        for turn in ("first", "second"):
            folder = tmp_path / name / turn
            make_stand_in(name, folder, options)
            contents.append({file.name: file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()})
        assert contents[0] == contents[1] and contents[0]


def test_a_row_says_what_is_not_as_it_should_be():
    from wild_scripts import Answer, Row, faults

    answer = Answer(80.0, 40, False, 0.01, "none", 5e6, "", ())
    assert faults(Row(recipe_of(), answer), None) == ["wanted input-bound", "late: 80 s with steps of 5 ms"]
    assert faults(Row(recipe_of(wanted="not-input-bound"), answer, speedup=1.5), 0.005) == [
        "late: 80 s with steps of 5 ms",
        "the intervention says input-bound",
    ]
    nothing = Answer(80.0, 0, False, None, "unknown", None, "", ())
    assert faults(Row(recipe_of(), nothing), None) == ["no verdict"]
    assert faults(Row(recipe_of(), None, "exit code 3: no"), None) == ["not analysed: exit code 3: no"]


def test_between_the_thresholds_an_intervention_decides_nothing():
    from wild_scripts import Answer, Row

    answer = Answer(20.0, 40, True, 0.2, "high", 5e6, "", ())
    assert [Row(recipe_of(), answer, speedup=speedup).agrees for speedup in (None, 1.05, 1.15, 1.3)] == [
        "-", "no", "unclear", "yes",
    ]  # fmt: skip


def test_soon_is_a_minute_or_the_time_of_twelve_steps_and_needs_a_verdict():
    from wild_scripts import Answer

    def is_soon(seconds, wait, step_s, steps=9, level="none"):
        return Answer(seconds, steps, False, wait, level, None if step_s is None else step_s * 1e9, "", ()).is_soon

    assert is_soon(59.0, 0.01, 0.005) and is_soon(59.0, 0.01, None)
    assert is_soon(224.0, 0.01, 21.4) and not is_soon(84.0, 0.01, 6.58)
    assert not is_soon(80.0, 0.01, 1.0), "few steps are no excuse"
    assert not is_soon(30.0, None, None, steps=0, level="unknown"), "no verdict"
    assert is_soon(30.0, None, None, steps=0), "the buffer was full, so the share does not matter"


def test_the_time_until_the_verdict_has_four_parts():
    from wild.phases import Phases, phases_of
    from wild_scripts import Row, answer_of, table

    s = 1_000_000_000
    window = Window(30 * s, 34 * s, 3, 2, "seconds", plain_start_ns=20 * s, plain_end_ns=30 * s, plain_steps=5)
    consumers = (Consumer("other", None, "for", None), Consumer("c", None, "for", None, is_main=True))
    host = Host("host", 2.0, 2, 1, 1)
    loop = Recording("train.py", host, ScriptExit("stopped"), consumers=consumers, window=window)
    series = StepSeries("c", start_ns=(12 * s, 15 * s), wait_ns=(0, 0), end_ns=(15 * s, 17 * s))
    steps = replace(loop, steps=(StepSeries("other", (1 * s,), (0,), (2 * s,)), series))
    assert phases_of(steps, 2 * s, 40 * s) == Phases(10.0, 3.0, 19.0, 6.0)
    assert phases_of(loop, 2 * s, 40 * s) == Phases(18.0, None, 14.0, 6.0)
    assert phases_of(replace(steps, window=None), 2 * s, 40 * s) is None
    report = {
        "verdict": {"step_time_ms": {"median": 2000.0}, "input_bound": False, "input_wait_share": 0.0, "level": "none"},
        "window": None,
        "findings": [],
    }
    rows = [Row(recipe_of(), answer_of(report, 38.0, phases)) for phases in (Phases(10.0, 3.0, 19.0, 6.0), None)]
    head, rule, *lines = table([*rows, Row(recipe_of(), None, "exit code 3")])
    assert "| 38 s, 0 steps | 10.0 s | 3.0 s | 19.0 s | 6.0 s | yes |" in lines[0]
    assert {line.count("|") for line in (head, rule, *lines)} == {14}
