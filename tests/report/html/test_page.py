"""report.html without a browser: what the file is made of."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

import advisor.report.html.page as page
from advisor.engine import load_rules
from advisor.model.errors import AdvisorError
from advisor.model.settings import Settings
from advisor.report.html import report_to_html, write_html
from advisor.report.html.sections import sections_of
from advisor.report.html.wording import prose
from advisor.report.report_json import report_to_bytes
from advisor.workflows.analyze import analyze_run
from tests.report.html.samples import GPU, PAGES, gpu_report, hostile, hosts_report, proved, real_report
from tests.report.made_reports import empty_report, healthy_report, slow_report

ROOT = Path(__file__).parents[3]
OTHERS = sorted(path for path in (ROOT / "../shared/profiles").glob("*") if path.is_dir())
needs_gpu_profile = pytest.mark.skipif(not GPU.is_dir(), reason="the profiles of others are not beside this checkout")


class Elements(HTMLParser):
    """Names and attributes of all elements."""

    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


def elements(report):
    return Elements(report_to_html(report).decode()).found


def test_nothing_is_loaded_from_elsewhere():
    found = elements(real_report("keras_fit"))
    assert {"a", "script", "section"} <= {tag for tag, _ in found}
    for tag, attributes in found:
        assert "src" not in attributes
        if tag != "a":
            assert attributes.get("href", "data:,") == "data:,"
        else:
            assert attributes["href"].startswith("#")


def test_policy_allows_only_what_is_in_the_file():
    found = elements(real_report("keras_fit"))
    (policy,) = (a["content"] for tag, a in found if tag == "meta" and a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    assert len(re.findall(r"sha256-", policy)) == len(page.SCRIPTS) + 2
    assert "require-trusted-types-for 'script'" in policy


def test_no_markup_needs_an_inline_style_or_handler():
    for report in (real_report("keras_fit"), proved()):
        for _, attributes in elements(report):
            assert "style" not in attributes
            assert not any(name.startswith("on") for name in attributes)


def test_every_table_has_a_caption_and_ids_are_unique():
    text = report_to_html(real_report("zip_filter")).decode()
    tables = re.findall(r"<table(?! class=\"code\").*?</table>", text, re.DOTALL)
    assert tables
    assert all("<caption" in table for table in tables)
    ids = [attributes["id"] for _, attributes in Elements(text).found if "id" in attributes]
    assert len(ids) == len(set(ids))


def test_library_files_are_those_that_the_notice_names():
    notice = (ROOT / "THIRD_PARTY.md").read_text()
    vendor = Path(page.__file__).parent / "assets" / "vendor"
    libraries = sorted(vendor.glob("*.js"))
    assert len(libraries) == 3
    for library in libraries:
        assert hashlib.sha256(library.read_bytes()).hexdigest() in notice
        text = library.read_text()
        assert "</script" not in text.lower()
        assert "<!--" not in text
    licences = " ".join(path.read_text() for path in vendor.glob("*.LICENSE"))
    assert licences.count("copyright notice") >= 3


@pytest.mark.long
@pytest.mark.parametrize("name", ["keras_fit", "zip_filter", "mirrored", "model_bound"])
def test_size_of_real_runs(name):
    assert len(report_to_html(real_report(name))) < 3_000_000


@pytest.mark.long
def test_size_of_very_many_and_very_long_pipelines():
    report = real_report("zip_filter")
    (pipeline, *_) = report["pipelines"]
    ranks = [{**call, **{key: call[key] * 30 for key in ("num_calls", "total_ns", "self_ns", "blame_ns")}}
             for call in pipeline["slowest_calls"]]  # fmt: skip
    long = {**pipeline, "iterators": pipeline["iterators"] * 30, "slowest_calls": ranks}
    others = [{**pipeline, "id": f"q{number}", "is_main": False} for number in range(500)]
    text = report_to_html({**report, "pipelines": [long, *others]})
    assert len(text) < 3_000_000
    assert b"of lesser importance are not drawn" in text
    assert b"more are not drawn" in text


@pytest.mark.long
@needs_gpu_profile
def test_size_of_a_profile_with_kernels():
    assert len(report_to_html(gpu_report())) < 3_000_000


def test_hostile_texts_stay_text_and_the_size_bounded():
    data = report_to_html(hostile())
    text = data.decode()
    assert len(data) < 3_000_000
    assert "\x1b" not in text
    assert "alert(1)" in text
    scripts = [a for tag, a in Elements(text).found if tag == "script"]
    assert len(scripts) == len(page.SCRIPTS) + 1
    assert not any(tag == "img" for tag, _ in Elements(text).found)


def test_data_is_inert_json():
    text = report_to_html(hostile()).decode()
    (data,) = re.findall(r'<script type="application/json" id="report-data">(.*?)</script>', text, re.DOTALL)
    assert "<" not in data
    assert set(json.loads(data)) >= {"pipelines", "timeline", "hosts", "memory"}


def test_page_without_data_says_what_to_capture():
    report = proved()
    report["statistics"] = None
    report["timeline"] = []
    text = report_to_html(report).decode()
    for name in ("overview", "input", "ops", "kernels", "memory", "hosts", "timeline"):
        section = text.split(f'id="page-{name}"')[1].split("</section>")[0]
        assert "No data." in section
        assert "advisor analyze" in section


def test_a_page_that_the_statistics_leave_empty_says_which_capture_fills_it():
    pages = sections_of({"statistics": {"device": {}, "warnings": ["no steps"]}, "pipelines": [], "timeline": []})
    hints = {section.id: section.missing for section in pages if section.missing}
    assert tuple(hints) == PAGES[1:], "all but the verdict"
    assert all(re.search(r"\bCapture |` captures one\.$", hint) for hint in hints.values())


def test_all_pages_are_there_in_order():
    pages = [a["data-page"] for _, a in elements(real_report("keras_fit")) if "data-page" in a]
    assert tuple(pages) == PAGES


def test_proof_is_shown_with_its_intervals():
    report = proved()
    report["fixes"][0]["site"] = report["findings"][0]["site"]
    text = report_to_html(report).decode()
    assert "Before and after" in text
    assert "2.4x to 2.6x" in text
    assert "Proved on the training, kept; measured 2.5x (2.4x to 2.6x)." in re.sub(r"\s+", " ", text)


def test_proof_on_the_pipeline_alone_is_told_from_one_on_the_training():
    from tests.report import test_proof_text

    made = test_proof_text.proved(proved_on="pipeline", training="not measured")
    fixes = (dataclasses.replace(made.fixes[0], proved_on="pipeline"), *made.fixes[1:])
    made = dataclasses.replace(made, fixes=fixes, comparison=dataclasses.replace(made.comparison, end_to_end=None))
    report = json.loads(report_to_bytes(made))
    report["fixes"][0]["site"] = report["findings"][0]["site"]
    text = re.sub(r"\s+", " ", report_to_html(report).decode())
    assert "proved on the pipeline alone, kept" in text
    assert "<dt>Proved on</dt><dd>the pipeline alone</dd>" in text
    assert "<dt>Training</dt><dd>not measured</dd>" in text
    assert "proved on the training" not in text


def test_how_it_was_proved_is_shown():
    from tests.report import test_proof_text

    text = report_to_html(json.loads(report_to_bytes(test_proof_text.proved()))).decode()
    for said in (
        "A training step is 2.9x (2.7x to 3.1x) faster.",
        "+ds.cache()",
        "Shuffle less: would reorder.",
        "A note.",
    ):
        assert said in text


def section(text, name):
    return text.split(f'id="page-{name}"')[1].split("</section>")[0]


def test_stragglers_stand_on_the_page_of_hosts(tmp_path):
    text = section(report_to_html(hosts_report(tmp_path)).decode(), "hosts")
    assert "b is a straggler" in text
    assert "b (straggler)" in text
    assert "Definition of a step: from one request for an element to the next." in text


def test_limits_and_the_plan_stand_below_the_findings():
    report = real_report("zip_filter")
    report["outlook"]["plan"] = {"sentence": "Both together: 3x."}
    text = section(report_to_html(report).decode(), "verdict")
    assert "Both together: 3x." in text
    assert "all cores together" in text


def test_headroom_is_on_the_first_page_as_in_the_text():
    report = real_report("zip_filter")
    headroom = {"sentence": "The input pipeline alone delivers 412 elements/s (measured).", "measured_ns": None}
    report["outlook"]["headroom"] = headroom
    for level, measured_ns, is_shown in (("none", None, True), ("high", None, False), ("high", 2.4e6, True)):
        report["verdict"]["level"], headroom["measured_ns"] = level, measured_ns
        assert (headroom["sentence"] in section(report_to_html(report).decode(), "verdict")) is is_shown


def test_only_an_input_bound_run_has_a_bottleneck_on_its_first_page():
    report = real_report("interleave_map")
    assert "<h2>Bottleneck</h2>" in section(report_to_html(report).decode(), "verdict")
    report["verdict"]["input_bound"] = False
    assert "<h2>Bottleneck</h2>" not in section(report_to_html(report).decode(), "verdict")


def test_rows_of_the_wait_that_would_read_the_same_name_their_branch():
    report = real_report("zip_filter")
    assert b"(input 1 of Zip)" not in report_to_html(report)
    (pipeline,) = report["pipelines"]
    guilty = next(it for it in pipeline["iterators"] if it["is_bottleneck"])
    (cheap,) = (it for it in pipeline["iterators"] if it["parent_id"] == guilty["parent_id"] and it is not guilty)
    cheap |= {"calls": guilty["calls"], "name": guilty["name"], "blame_share": guilty["blame_share"]}
    text = section(report_to_html(report).decode(), "verdict")
    assert text.count("(input 1 of Zip)") == text.count("(input 2 of Zip)") == 1


@needs_gpu_profile
def test_a_profile_of_others_says_what_it_cannot_tell():
    text = report_to_html(gpu_report()).decode()
    verdict = section(text, "verdict")
    assert "<dt>Ceiling</dt>" not in verdict, "a card without a value says nothing"
    assert "has no recording of the calls" in verdict
    assert "Inferred from the iterators that ran" in section(text, "pipelines")
    assert "Inferred from the iterators that ran" not in report_to_html(real_report("zip_filter")).decode()


def test_file_is_written_whole(tmp_path):
    write_html(real_report("keras_fit"), tmp_path / "report.html")
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


@pytest.mark.parametrize("made", [empty_report, healthy_report, slow_report])
def test_reports_without_pipelines_or_findings_are_pages(made):
    text = report_to_html(json.loads(report_to_bytes(made()))).decode()
    assert made().analysis.verdict.sentence.split(".")[0] in text


@pytest.mark.long
@pytest.mark.skipif(not OTHERS, reason="the profiles of others are not beside this checkout")
@pytest.mark.parametrize("path", OTHERS, ids=lambda path: path.name)
def test_profiles_of_others_are_pages(path):
    try:
        report = report_to_bytes(analyze_run(path, load_rules([], Settings()), Settings()))
    except AdvisorError:
        pytest.skip("holds nothing to report")
    assert len(report_to_html(json.loads(report))) < 3_000_000


def test_sentences_are_escaped_before_they_become_markup():
    assert prose("<b> `advisor fix <x>`: --ceiling measures it, no-gain") == (
        '&lt;b&gt; <code>advisor fix &lt;x&gt;</code>: <span class="option">--ceiling</span> measures it, no-gain'
    )
