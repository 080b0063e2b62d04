"""report.html in a browser, from file://: pages, graph, tables, theme, keyboard, phone, print; nothing said, nothing loaded."""

from __future__ import annotations

import csv
import itertools

import pytest

from advisor.report.html import report_to_html
from tests.report.html.samples import GPU, MARKUP, PAGES, gpu_report, hostile, proved, real_report

needs_gpu_profile = pytest.mark.skipif(not GPU.is_dir(), reason="the profiles of others are not beside this checkout")


@pytest.fixture
def show(tmp_path, open_file):
    """Write a report and open it; returns what was opened, and its file."""

    def shown(report, **options):
        path = tmp_path / "report.html"
        path.write_bytes(report_to_html(report))
        return open_file(path, **options), path

    return shown


def go(page, name):
    page.locator(f'nav a[href="#{name}"]').click()
    page.locator(f"#page-{name}:not([hidden])").wait_for(state="attached")  # a function to wait for would need `eval`


@pytest.mark.parametrize("report", [
    pytest.param(lambda: real_report("zip_filter"), id="zip_filter", marks=pytest.mark.long),
    pytest.param(lambda: real_report("mirrored"), id="mirrored", marks=pytest.mark.long),
    pytest.param(proved, id="proved"),
    pytest.param(hostile, id="hostile", marks=pytest.mark.long),
    pytest.param(lambda: hostile(real_report("keras_fit")), id="hostile-real", marks=pytest.mark.long),
    pytest.param(gpu_report, id="gpu", marks=[needs_gpu_profile, pytest.mark.long]),
])  # fmt: skip
@pytest.mark.parametrize("width", [1280, pytest.param(390, marks=pytest.mark.long)])
def test_every_page_shows_and_is_quiet(show, report, width):
    opened, path = show(report(), viewport={"width": width, "height": 844})
    for name in PAGES:
        go(opened.page, name)
        visible = opened.page.locator("section.page:visible")
        assert visible.count() == 1
        assert visible.get_attribute("data-page") == name
        assert opened.page.evaluate("document.documentElement.scrollWidth") <= width
    opened.check(path)


def test_hostile_texts_are_seen_as_text(show):
    opened, path = show(hostile())
    assert MARKUP.split("<img")[0] in opened.page.locator("#page-verdict .headline").inner_text()
    assert opened.page.locator("img").count() == 0
    go(opened.page, "pipelines")
    opened.page.locator("#executed .node").first.click()
    opened.check(path)


@pytest.mark.long
def test_graph_node_shows_its_figures_and_rules(show):
    opened, path = show(real_report("interleave_map"))
    page = opened.page
    go(page, "pipelines")
    bottleneck = page.locator("#executed .node.bottleneck")
    assert bottleneck.count() == 1
    bottleneck.click()
    details = page.locator("#node-details article:visible")
    assert details.count() == 1
    assert details.locator("h3").inner_text() == "Map"
    assert ".map(heavy)" in details.inner_text()
    assert page.locator("#executed .edge.path").count() >= 4
    assert page.locator("#executed .group").count() == 2  # the consumer's thread, and those of Prefetch
    assert page.locator("#written .node.related").text_content().startswith(".map(heavy)")
    opened.check(path)


@pytest.mark.long
def test_bottleneck_is_chosen_and_in_view_on_a_phone(show):
    opened, path = show(real_report("zip_filter"), viewport={"width": 390, "height": 844})
    page = opened.page
    go(page, "pipelines")
    chosen = page.locator("#executed .node.chosen")
    assert chosen.count() == 1
    assert chosen.get_attribute("class") == page.locator("#executed .node.bottleneck").get_attribute("class")
    assert page.locator("#node-details article:visible h3").inner_text() == chosen.locator(".title").text_content()
    frame, node = page.locator("#executed").bounding_box(), chosen.bounding_box()
    assert frame["x"] - 1 <= node["x"]
    assert node["x"] + node["width"] <= frame["x"] + frame["width"] + 1
    assert node["width"] >= 0.75 * 236 - 1, "shrunk no further than its text can be read"
    opened.check(path)


@pytest.mark.long
def test_rank_shows_one_slow_call(show):
    opened, _ = show(real_report("interleave_map"))
    page = opened.page
    go(page, "pipelines")
    whole = page.locator("#executed .node").first.get_attribute("aria-label")
    page.locator("#pick-rank").select_option("1")
    one = page.locator("#executed .node").first.get_attribute("aria-label")
    assert whole != one
    assert page.locator("#pick-rank option").count() == 11
    root = page.locator("#executed .node").filter(has_text="Root").get_attribute("aria-label")
    assert "1 call" in root


@pytest.mark.long
def test_pipeline_and_host_can_be_chosen(show):
    report = real_report("interleave_map")
    second = {**real_report("zip_filter")["pipelines"][0], "id": "p9", "host": "other", "is_main": False}
    report["pipelines"].append(second)
    opened, path = show(report)
    page = opened.page
    go(page, "pipelines")
    page.locator("#pick-host").select_option("other")
    names = page.locator("#executed .node .title").all_text_contents()
    assert any("Zip" in name for name in names)
    assert page.locator(".summary:visible").count() == 1
    page.locator('[data-pick="0"]').click()
    assert page.locator("#executed .node.bottleneck .title").text_content() == "Map"
    opened.check(path)


@pytest.mark.long
def test_graph_by_keyboard(show):
    opened, path = show(real_report("interleave_map"))
    page = opened.page
    go(page, "pipelines")
    root = page.locator('#executed [data-node="0"]')
    root.focus()
    page.keyboard.press("ArrowUp")
    assert page.evaluate("document.activeElement.dataset.node") == "1"
    page.keyboard.press("Enter")
    assert page.locator("#node-details article:visible h3").inner_text() == "Prefetch"
    opened.check(path)


@pytest.mark.long
def test_tables_sort_and_filter(show):
    opened, path = show(real_report("zip_filter"))
    page = opened.page
    head = page.locator("#blame thead th").filter(has_text="Self time")
    cells = page.locator(f"#blame tbody tr td:nth-child({7})")

    def values():
        return [float(cell.get_attribute("data-value")) for cell in cells.all()]

    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "descending"
    assert all(a >= b for a, b in itertools.pairwise(values()))
    head.locator("button").press("Enter")
    assert head.get_attribute("aria-sort") == "ascending"
    assert all(a <= b for a, b in itertools.pairwise(values()))
    go(page, "input")
    rows = page.locator("#input-ops tbody tr:visible")
    before = rows.count()
    page.locator('[data-filter="input-ops"]').fill("zip")
    assert 0 < rows.count() <= before
    assert all("zip" in text.lower() for text in rows.all_inner_texts())
    opened.check(path)


@pytest.mark.long
def test_table_is_saved_as_csv_with_full_precision(show, tmp_path):
    report = real_report("zip_filter")
    opened, path = show(report)
    go(opened.page, "ops")
    with opened.page.expect_download() as started:
        opened.page.locator('[data-export="op-list"]').click()
    started.value.save_as(tmp_path / "ops.csv")
    rows = list(csv.DictReader((tmp_path / "ops.csv").open(newline="")))
    assert len(rows) == len(report["statistics"]["ops"])
    assert [int(row["Self time"]) for row in rows] == [op["self_ns"] for op in report["statistics"]["ops"]]
    assert opened.said == []
    assert {url for url in opened.asked if not url.startswith("blob:")} == {path.as_uri()}


@pytest.mark.long
def test_theme_switches_and_follows_the_system(show):
    opened, path = show(real_report("keras_fit"), color_scheme="dark")
    page = opened.page

    def ground():
        return page.evaluate("getComputedStyle(document.body).backgroundColor")

    dark, button = ground(), page.locator("#theme")
    button.click()
    assert button.inner_text() == "Theme: light"
    light = ground()
    assert light != dark
    button.click()
    assert ground() == dark
    page.emulate_media(color_scheme="light")
    assert ground() == dark  # chosen: the system has no say
    button.click()
    assert ground() == light
    opened.check(path)


@pytest.mark.long
def test_timeline_draws_lanes_and_zooms(show):
    opened, path = show(real_report("mirrored"))
    page = opened.page
    go(page, "timeline")
    rectangles = page.locator('#lanes svg g[aria-label="rect"] rect')
    whole = rectangles.count()
    assert whole > 500
    page.locator('[data-lane="in"]').click()
    assert 0 < rectangles.count() < whole
    page.locator("#lanes").press("Home")
    assert rectangles.count() == whole
    opened.check(path)


@pytest.mark.long
def test_link_to_a_finding_opens_its_page(show):
    opened, path = show(proved())
    page = opened.page
    go(page, "pipelines")
    page.evaluate("location.hash = 'finding-1'")
    page.locator("#page-verdict:not([hidden])").wait_for(state="attached")
    assert page.locator("#finding-1").is_visible()
    opened.check(path)


@pytest.mark.long
def test_focus_follows_the_page_and_landmarks_are_there(show):
    opened, _ = show(real_report("keras_fit"))
    page = opened.page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    go(page, "overview")
    assert page.evaluate("document.activeElement.id") == "title-overview"
    assert page.locator('nav a[aria-current="page"]').inner_text() == "Overview"
    for landmark in ("header", "nav[aria-label]", "main", "footer"):
        assert page.locator(f"body > {landmark}").count() == 1
    unnamed = page.evaluate("[...document.querySelectorAll('button, select, input')].filter(e => !e.textContent.trim() && "
                            "!e.getAttribute('aria-label') && !(e.labels && e.labels.length)).length")  # fmt: skip
    assert unnamed == 0


@pytest.mark.long
def test_all_pages_are_on_paper(show):
    opened, path = show(real_report("keras_fit"))
    page = opened.page
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    assert page.locator("section.page:visible").count() == len(PAGES)
    assert page.locator("#lanes svg").is_visible()
    assert not page.locator("nav").is_visible()
    assert len(page.pdf()) > 20_000
    opened.check(path)


@pytest.mark.long
def test_evidence_is_on_paper(show):
    opened, _ = show(proved())
    page = opened.page
    evidence = page.locator("details:has-text('Evidence') dl").first
    assert not evidence.is_visible()
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    assert evidence.is_visible()
    page.emulate_media(media="screen")
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert not evidence.is_visible()


@pytest.mark.long
@pytest.mark.parametrize("title", ["Speedup", "Measured", "Kept", "Verdict"])
def test_what_a_fix_gave_is_seen_on_a_phone(show, title):
    opened, _ = show(proved(), viewport={"width": 390, "height": 844})
    cells = opened.page.locator(f'td[data-title="{title}"]')
    assert cells.count() > 0
    for number in range(cells.count()):
        box = cells.nth(number).bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= 390
        assert opened.page.evaluate(
            "e => getComputedStyle(e, '::before').content", cells.nth(number).element_handle()
        ) == (f'"{title}"')


@pytest.mark.long
@pytest.mark.parametrize("name", PAGES)
def test_a_deep_link_shows_its_tab_on_a_phone(show, name):
    opened, path = show(real_report("keras_fit"), viewport={"width": 390, "height": 844})
    opened.page.goto(f"{path.as_uri()}#{name}")
    opened.page.reload()
    tab = opened.page.locator('nav a[aria-current="page"]')
    assert tab.get_attribute("href") == f"#{name}"
    box = tab.bounding_box()
    assert box["x"] >= 0 and box["x"] + box["width"] <= 390


@pytest.mark.long
@pytest.mark.parametrize("graph", ["executed", "written"])
def test_a_node_with_the_focus_is_told_by_a_ring(show, graph):
    opened, _ = show(real_report("interleave_map"))
    page = opened.page
    go(page, "pipelines")
    rings = page.locator(f"#{graph} .ring")
    drawn = "e => getComputedStyle(e).stroke !== 'none' && parseFloat(getComputedStyle(e).strokeWidth) >= 3"
    assert not any(page.evaluate(drawn, ring) for ring in rings.element_handles())
    page.locator(f"#{graph} .node").last.focus()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowDown")
    assert [page.evaluate(drawn, ring) for ring in rings.element_handles()].count(True) == 1
