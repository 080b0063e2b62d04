"""What the web site needs beyond the pages in this folder; mkdocs calls the functions `on_*` (`mkdocs.yml`).

* README.md and other pages at the top of the repository become pages of the site.
* docs/rules.md, which is generated from the rule files, becomes an index and one page per rule.
* The JSON Schemas become pages with a table per object.
* The command-line and API references, which are empty in the repository, are filled from the code.
* Links are adapted: to the pages of the site, and to the repository for everything else. Without the environment variable
  REPOSITORY_URL the address of the repository is unknown, and of such a link only the label remains.
* Options in running text are kept on one line: browsers break `--write` after its hyphens.
* The links of the built site are checked. A broken one is a warning, which `mkdocs build --strict` turns into an error.
"""

from __future__ import annotations

import json
import logging
import os
import posixpath
import re
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from built_links import broken_links
from links import file_url, resolved, rewrite_links

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
TOP_PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
}
"""File at the top of the repository -> page of the site."""
SCHEMAS = {
    "reference/report-json.md": "report.schema.json",
    "reference/comparison-json.md": "comparison.schema.json",
    "reference/check-json.md": "check.schema.json",
    "reference/change-json.md": "change.schema.json",
    "reference/offload-json.md": "offload.schema.json",
    "reference/journal-json.md": "journal.schema.json",
}
"""Page of the site -> JSON Schema in advisor/report/."""
RULES = "rules.md"
_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_INLINE_CODE = re.compile(r"<code>[^<\n]*</code>")
_OPTION = re.compile(r"(?<![\w-])--?[a-z][\w-]*")
COMMAND_LINE = "<!-- site: command line -->"
PYTHON_API = "<!-- site: python api -->"
"""Places in pages that are filled from the code."""
PUBLIC_OBJECTS = (
    "advisor._analyze_functions.analyze_script",
    "advisor._analyze_functions.analyze_run",
    "advisor._analyze_functions.analyze_dataset",
    "advisor._analyze_functions.analyze_function",
    "advisor._analyze_functions.analyze",
    "advisor.optimize",
    "advisor.workflows.watch.watch",
    "advisor.workflows.keras_callback.AdvisorCallback",
    "advisor.install",
    "advisor.uninstall",
    "advisor.model.outcome.Report",
    "advisor.model.finding.Finding",
    "advisor.model.finding.Fix",
    "advisor.model.finding.Safety",
    "advisor.model.errors.AdvisorError",
    "advisor.model.errors.ScriptFailed",
)
"""Every name in `advisor.__all__` except the version, at the place of its definition."""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Add the rule pages to the navigation, and make the same anchors of headings as GitHub."""
    from pymdownx.slugs import slugify

    config.mdx_configs.setdefault("toc", {})["slugify"] = slugify(case="lower")
    repository = os.environ.get("REPOSITORY_URL", "")
    if repository:
        config.repo_url, config.repo_name = repository, "GitHub"
    for section in config.nav or []:
        if "Rules" in section:
            section["Rules"] += [f"rules/{rule}.md" for rule in rule_pages(read("docs/rules.md"))]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are not in the folder docs/, and replace the page with all rules by an index."""
    from mkdocs.structure.files import File

    pages = {page: read(file) for file, page in TOP_PAGES.items()}
    rules = read("docs/rules.md")
    pages[RULES] = rule_index(rules)
    pages |= {f"rules/{rule}.md": text for rule, text in rule_pages(rules).items()}
    pages |= {page: schema_page(json.loads(read(f"advisor/report/{name}"))) for page, name in SCHEMAS.items()}
    for uri, text in pages.items():
        if existing := files.get_file_from_path(uri):
            files.remove(existing)
        files.append(File.generated(config, uri, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Fill the references, and adapt the links of a page."""
    uri = page.file.src_uri
    if uri not in SCHEMAS:  # made here, with links that are right
        repository = os.environ.get("REPOSITORY_URL", "")
        markdown = rewrite_links(markdown, lambda target: site_target(uri, target, repository))
    markdown = re.sub(r"^\|.*", _unescape_pipes_in_code, markdown, flags=re.MULTILINE)
    markdown = markdown.replace(COMMAND_LINE, command_line_directive())
    return markdown.replace(PYTHON_API, "\n\n".join(f"::: {name}" for name in PUBLIC_OBJECTS))


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Keep the options in running text on one line (`.option` in stylesheets/site.css)."""
    return _INLINE_CODE.sub(lambda code: _OPTION.sub(r'<span class="option">\g<0></span>', code[0]), html)


def on_post_build(config: MkDocsConfig) -> None:
    """Check the links of the built site."""
    for link in broken_links(Path(config.site_dir)):
        logging.getLogger("mkdocs.hooks.site").warning("Broken link in %s", link)


def _unescape_pipes_in_code(row: re.Match[str]) -> str:
    r"""Write `a\|b` in a table as `a|b`: GitHub needs the backslash, Python-Markdown would show it."""
    return re.sub(r"`[^`]+`", lambda code: code[0].replace("\\|", "|"), row[0])


def read(file: str) -> str:
    """Return the text of a file of the repository."""
    return (ROOT / file).read_text("utf-8")


def command_line_directive() -> str:
    """Return the block that mkdocs-click replaces by the options of all commands."""
    options = {"module": "advisor.cli", "command": "advisor", "prog_name": "advisor", "depth": 1, "style": "plain"}
    return "\n".join(["::: mkdocs-click", *(f"    :{name}: {value}" for name, value in options.items())])


def rule_index(rules: str) -> str:
    """Return docs/rules.md up to its first rule, with links to the pages of the rules."""
    introduction = _split_rules(rules)[0]
    return re.sub(r"\]\(#([\w-]+)\)", r"](rules/\1.md)", introduction)


def rule_pages(rules: str) -> dict[str, str]:
    """Return id -> page, of each rule in docs/rules.md."""
    pages = {}
    for section in _split_rules(rules)[1:]:
        rule = section.partition("\n")[0].removeprefix("## ").strip()
        name = rule.replace("-", "_")
        files = [path for path in (f"rules/{name}.py", f"examples/{name}.py") if (ROOT / path).is_file()]
        text = "".join(
            part if part.startswith("```") else re.sub(r"^#(#+ )", r"\1", part, flags=re.MULTILINE)
            for part in _with_fences(section)
        )
        sources = ", ".join(f"[`{path}`](../{path})" for path in files)
        pages[rule] = f"{text.rstrip()}\n\n## Source\n\n{sources}\n"
    return pages


def _split_rules(rules: str) -> list[str]:
    """Split before each heading of the second level that is not in fenced code."""
    sections = [""]
    for part in _with_fences(rules):
        if part.startswith("```"):
            sections[-1] += part
            continue
        first, *others = re.split(r"^(?=## )", part, flags=re.MULTILINE)
        sections[-1] += first
        sections += others
    return sections


def _with_fences(text: str) -> list[str]:
    """Split into fenced code and what is between."""
    parts, end = [], 0
    for fence in _FENCE.finditer(text):
        parts += [text[end : fence.start()], fence[0]]
        end = fence.end()
    return [part for part in (*parts, text[end:]) if part]


def site_target(uri: str, target: str, repository: str) -> str | None:
    """Return where a relative link of a page leads on the site.

    Args:
        uri: The page, relative to the site.
        target: The link, relative to the file in the repository that the page is made of.
        repository: URL of the repository; empty if it is unknown.

    Returns:
        A relative link to a page or picture of the site, a URL in the repository, or None if its address is unknown.
    """
    source = next((file for file, page in TOP_PAGES.items() if page == uri), f"docs/{uri}")
    if uri.startswith("rules/"):
        source = "docs/rules.md"
    path, hash_sign, anchor = resolved(PurePosixPath(source).parent, target).partition("#")
    if (ROOT / path / "README.md").is_file():
        path += "/README.md"
    if path == "docs/rules.md" and anchor:
        page, hash_sign, anchor = f"rules/{anchor}.md", "", ""
    elif path in TOP_PAGES:
        page = TOP_PAGES[path]
    elif path.startswith("docs/") and path.endswith((".md", ".svg", ".png")):
        page = path.removeprefix("docs/")
    elif schema := next((page for page, name in SCHEMAS.items() if path == f"advisor/report/{name}"), ""):
        page = schema
    else:
        return file_url(path + hash_sign + anchor, repository, "main") if repository else None
    return posixpath.relpath(page, posixpath.dirname(uri) or ".") + hash_sign + anchor


def schema_page(schema: dict[str, Any]) -> str:
    """Return the page of a JSON Schema: a table for the document and one for each kind of object in it."""
    lines = [f"# {schema['title']}", "", schema.get("description", ""), "", *_fields(schema)]
    for name, part in schema["$defs"].items():
        lines += ["", f"## {name}", "", part.get("description", "")]
        lines += ["", *_fields(part)] if "properties" in part else ["", _kind(part)]
    return "\n".join(lines) + "\n"


def _fields(part: dict[str, Any]) -> list[str]:
    required = set(part.get("required", ()))
    rows = ["| field | type | |", "|---|---|---|"]
    for name, field in part.get("properties", {}).items():
        text = field.get("description", "").replace("|", "\\|").replace("<", "&lt;")
        optional = "" if name in required else " (optional)"
        rows.append(f"| `{name}` | {_kind(field)}{optional} | {text} |")
    return rows


def _kind(field: dict[str, Any]) -> str:
    """Return the type of a value as text, with links to the objects on the page."""
    if reference := field.get("$ref"):
        name = reference.rpartition("/")[2]
        return f"[{name}](#{name})"
    if alternatives := field.get("anyOf"):
        kinds = dict.fromkeys(_kind(one) for one in alternatives)
        return " or ".join(sorted(kinds, key=lambda kind: kind == "null"))
    if "enum" in field:
        return ", ".join(f"`{json.dumps(value)}`" for value in field["enum"])
    kind = field.get("type", "any")
    if kind == "array":
        items = field.get("items") or {}
        return f"list of {_kind(items)}" if items else "list"
    if kind == "object" and isinstance(field.get("additionalProperties"), dict):
        return f"object with values of {_kind(field['additionalProperties'])}"
    return str(kind)
