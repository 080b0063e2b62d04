"""The web site of the documentation: its navigation, and what `docs/site_hooks.py` adds. `make site` builds it."""

from __future__ import annotations

import json
import posixpath
import re
import sys
from pathlib import Path, PurePosixPath

import pytest
from ruamel.yaml import YAML

import advisor

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
sys.path.insert(0, str(DOCS))

import built_links  # noqa: E402
import links  # noqa: E402
import site_hooks  # noqa: E402

RULES = site_hooks.rule_pages(site_hooks.read("docs/rules.md"))


def in_navigation(entry):
    """Every page that an entry of the navigation names."""
    if isinstance(entry, str):
        return [entry]
    inner = entry.values() if isinstance(entry, dict) else entry
    return [page for part in inner for page in in_navigation(part)]


@pytest.fixture(scope="module")
def navigation():
    return in_navigation(YAML(typ="safe").load((ROOT / "mkdocs.yml").read_text("utf-8"))["nav"])


def test_every_page_is_in_the_navigation_once(navigation):
    pages = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}
    added = {*site_hooks.TOP_PAGES.values(), *site_hooks.SCHEMAS}
    assert sorted(navigation) == sorted(pages | added)


def test_the_readme_stays_short():
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= 120


def test_every_rule_has_a_page():
    assert set(RULES) == {path.stem.replace("_", "-") for path in (ROOT / "rules").glob("[!_]*.py")}
    for rule, text in RULES.items():
        outside_code = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
        headings = re.findall(r"^(#+) ", outside_code, flags=re.MULTILINE)
        assert text.startswith(f"# {rule}\n") and headings.count("#") == 1 and "##" in headings
        assert f"(../rules/{rule.replace('-', '_')}.py)" in text


def test_a_heading_in_code_is_code():
    text = "# Rules\n\n## a-rule\n\n### Example\n\n```python\n## not a heading\n### either\n```\n\n## another-rule\n"
    pages = site_hooks.rule_pages(text)
    assert list(pages) == ["a-rule", "another-rule"]
    assert "## Example\n\n```python\n## not a heading\n### either\n```" in pages["a-rule"]


def test_every_link_leads_to_a_page_of_the_site_or_into_the_repository():
    pages = {path.relative_to(DOCS).as_posix(): path.read_text("utf-8") for path in DOCS.rglob("*.md")}
    pages |= {page: (ROOT / file).read_text("utf-8") for file, page in site_hooks.TOP_PAGES.items()}
    pages |= {f"rules/{rule}.md": text for rule, text in RULES.items()}
    known = {*pages, *site_hooks.SCHEMAS, "images/fix.svg", "images/report.svg", "images/tensorboard.png"}
    repository = "https://example.org/project"
    wrong = []

    def check(page, target):
        leads_to = site_hooks.site_target(page, target, repository) or ""
        if leads_to.startswith(f"{repository}/blob/main/"):
            exists = (ROOT / leads_to.removeprefix(f"{repository}/blob/main/").partition("#")[0]).exists()
        else:
            exists = posixpath.normpath(posixpath.join(posixpath.dirname(page), leads_to.partition("#")[0])) in known
        if not exists:
            wrong.append((page, target, leads_to))
        return leads_to

    for page, text in pages.items():
        links.rewrite_links(site_hooks.rule_index(text) if page == "rules.md" else text, lambda t, p=page: check(p, t))
    assert wrong == []


@pytest.mark.parametrize("name", site_hooks.SCHEMAS.values())
def test_schema_pages_name_every_field(name):
    schema = json.loads((ROOT / "advisor/report" / name).read_text("utf-8"))
    page = site_hooks.schema_page(schema)
    for part in (schema, *schema["$defs"].values()):
        assert [field for field in part.get("properties", {}) if f"| `{field}` |" not in page] == []
    anchors = set(re.findall(r"^## (\w+)$", page, flags=re.MULTILINE))
    assert set(re.findall(r"\]\(#(\w+)\)", page)) <= anchors


def test_the_reference_documents_every_public_name():
    assert {name.rpartition(".")[2] for name in site_hooks.PUBLIC_OBJECTS} == set(advisor.__all__) - {"__version__"}


@pytest.mark.parametrize(("page", "mark"), [("command-line", "COMMAND_LINE"), ("python-api", "PYTHON_API")])
def test_references_are_filled_at_a_mark(page, mark):
    assert getattr(site_hooks, mark) in (DOCS / f"reference/{page}.md").read_text("utf-8")


def test_options_in_running_text_are_kept_on_one_line():
    html = "<p><code>advisor fix --as-if-step T -m no-gain</code> or <code>-</code></p><pre><code><span>a --b</span></code></pre>"
    assert site_hooks.on_page_content(html, None, None, None) == (
        '<p><code>advisor fix <span class="option">--as-if-step</span> T <span class="option">-m</span> no-gain</code> '
        "or <code>-</code></p><pre><code><span>a --b</span></code></pre>"
    )


def test_links_become_absolute():
    text = "[a](docs/ci.md#x) ![b](docs/images/report.svg) [c](https://a.org) [d](#e)\n\n```\n[f](g.md)\n```\n"
    assert links.absolute_links(text, PurePosixPath("."), "https://example.org/p", "v1") == (
        "[a](https://example.org/p/blob/v1/docs/ci.md#x) ![b](https://example.org/p/raw/v1/docs/images/report.svg) "
        "[c](https://a.org) [d](#e)\n\n```\n[f](g.md)\n```\n"
    )


def test_a_link_without_a_known_address_leaves_its_label():
    assert links.rewrite_links("see [the *code*](../a.py).", lambda target: None) == "see the *code*."
    assert links.resolved(PurePosixPath("docs/decisions"), "../../CONTRIBUTING.md#a") == "CONTRIBUTING.md#a"


def test_links_of_the_built_site_are_followed(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "style.css").touch()
    (tmp_path / "a/index.html").write_text("<h1 id='top'>A</h1><a href='../#there'></a><a href='../missing/'></a>")
    (tmp_path / "index.html").write_text(
        "<link href='style.css'><p id='there'></p><a href='a/#top'></a><a href='a/#gone'></a><a href='#gone'></a>"
        "<a href='https://example.org/gone'></a><a href='a/index.html?query#top'></a><img src='/style.css'>"
    )
    assert built_links.broken_links(tmp_path) == [
        "a/index.html: ../missing/",
        "index.html: a/#gone",
        "index.html: #gone",
    ]
