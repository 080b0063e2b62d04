"""The tab in a real TensorBoard and a real browser."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("tensorboard", reason="tensorboard is not installed (extra `tensorboard`)")
from tests.tensorboard.logdirs import NAME, OTHERS, RUN_OF, TAB, Served, broken, foreign, recorded, tensorboard
from tests.tensorboard.shown import MADE_MS, Shown, show_tab

pytestmark = pytest.mark.long

FIRST, SECOND = RUN_OF["keras_fit"], RUN_OF["zip_filter"]
FOREIGN, BROKEN = "job/2026_01_01_00_00_00", "broken/2026_03_03_00_00_00"


@pytest.fixture
def show(browser: Any) -> Iterator[Any]:
    contexts = []

    def opened(served: Served, **options: Any) -> Shown:
        context = browser.new_context(accept_downloads=True, **{"viewport": {"width": 1280, "height": 900}, **options})
        contexts.append(context)
        return show_tab(context, served)

    yield opened
    for context in contexts:
        context.close()


@pytest.fixture(scope="module")
def served(tmp_path_factory) -> Iterator[Served]:
    """TensorBoard on two runs of the advisor, a foreign profile and a broken one."""
    folder = tmp_path_factory.mktemp("tensorboard")
    logdir = folder / "logs"
    recorded("keras_fit", logdir)
    recorded("zip_filter", logdir)
    foreign(logdir)
    broken(logdir)
    with tensorboard(logdir, folder) as running:
        yield running


def test_the_tab_is_in_the_bar(served, show):
    shown = show(served)
    assert shown.page.locator("[role=tab]", has_text=TAB).is_visible()
    options = shown.tab.locator("#runs option").all_inner_texts()
    assert sorted(options) == sorted([FIRST, SECOND, FOREIGN, BROKEN])
    assert shown.tab.locator("#runs optgroup").count() == 2


def test_each_run_has_its_report(served, show):
    shown = show(served)
    shown.wait_for_report(SECOND)  # the newest
    second = shown.report.locator("#page-verdict .headline").inner_text()
    shown.choose(FIRST)
    shown.wait_for_report(FIRST)
    assert shown.report.locator("#page-verdict .headline").inner_text() != second
    assert "keras_fit.py:16" in shown.report.locator("body").inner_text()
    assert "captured by tfdata-advisor" in shown.tab.locator(".facts").inner_text()
    shown.check(served)


def test_a_report_works_in_its_frame(served, show):
    shown = show(served)
    shown.choose(FIRST)
    shown.wait_for_report(FIRST)
    shown.report.locator('nav a[href="#pipelines"]').click()
    shown.report.locator("#executed .node.bottleneck").first.wait_for()
    shown.report.locator('nav a[href="#timeline"]').click()
    shown.report.locator("#lanes svg").first.wait_for()
    shown.report.locator('nav a[href="#ops"]').click()
    with shown.page.expect_download() as started:
        shown.report.locator('[data-export="op-list"]').click()
    assert started.value.suggested_filename.endswith(".csv")
    shown.check(served)


def test_a_report_cannot_reach_tensorboard(served, show):
    """The frame of the report has an origin of its own."""
    shown = show(served)
    shown.choose(FIRST)
    shown.wait_for_report(FIRST)
    (frame,) = (frame for frame in shown.page.frames if "/report?" in frame.url)
    assert frame.evaluate("window.origin") == "null"
    assert (
        frame.evaluate("() => { try { return parent.document.title } catch (error) { return error.name } }")
        == "SecurityError"
    )
    assert frame.evaluate("() => fetch('runs').then(() => 'answered', () => 'refused')") == "refused"


def test_a_foreign_profile_has_a_report(served, show):
    shown = show(served)
    shown.choose(FOREIGN)
    shown.wait_for_report(FOREIGN)
    assert "map" in shown.report.locator("#page-verdict").inner_text()
    assert "without a recording" in shown.tab.locator(".facts").inner_text()
    shown.check(served)


def test_a_broken_profile_is_a_sentence_and_the_others_go_on(served, show):
    shown = show(served)
    shown.choose(BROKEN)
    problem = shown.tab.locator(".state .problem")
    problem.wait_for(timeout=MADE_MS)
    assert "host.xplane.pb" in problem.inner_text()
    shown.tab.get_by_role("button", name="Try again").click()
    problem.wait_for(timeout=MADE_MS)
    shown.choose(FIRST)
    shown.wait_for_report(FIRST)
    assert problem.count() == 0
    shown.check(served)


def test_a_report_opens_in_a_page_of_its_own(served, show):
    shown = show(served)
    shown.choose(FIRST)
    shown.wait_for_report(FIRST)
    with shown.page.expect_popup() as opened:
        shown.tab.get_by_text("Open in a new tab").click()
    opened.value.locator("#page-verdict .headline").wait_for(timeout=MADE_MS)
    shown.check(served)


def test_the_choice_survives_a_reload(served, show):
    shown = show(served)
    shown.choose(FOREIGN)
    shown.wait_for_report(FOREIGN)
    shown.page.reload()
    shown.wait_for_report(FOREIGN)


def test_the_last_choice_wins(served, show):
    shown = show(served)
    for name in (FOREIGN, BROKEN, FIRST, SECOND, FIRST):
        shown.choose(name)
    shown.wait_for_report(FIRST)
    assert shown.tab.locator("main iframe").count() == 1
    assert shown.tab.locator(".state").inner_text() == ""


@pytest.mark.parametrize(("scheme", "other"), [("light", "dark"), ("dark", "light")])
def test_tab_and_report_follow_the_theme_of_tensorboard(served, show, scheme, other):
    shown = show(served, color_scheme=scheme)
    shown.wait_for_report(SECOND)
    for frame in (shown.tab, shown.report):
        frame.locator(f'html[data-theme="{scheme}"]').wait_for()
    shown.page.evaluate("document.body.classList.toggle('dark-mode')")  # as the button in TensorBoard's bar does
    for frame in (shown.tab, shown.report):
        frame.locator(f'html[data-theme="{other}"]').wait_for(timeout=MADE_MS)
    shown.wait_for_report(SECOND)
    shown.check(served)


def test_the_tab_fits_on_a_phone(served, show):
    shown = show(served, viewport={"width": 390, "height": 844})
    shown.wait_for_report(SECOND)
    assert shown.tab.locator("html").evaluate("e => e.scrollWidth") <= 390


def test_an_empty_logdir_says_how_to_make_a_profile(tmp_path, show):
    logdir = tmp_path / "logs"
    logdir.mkdir()
    with tensorboard(logdir, tmp_path) as served:
        shown = show(served)
        shown.tab.get_by_role("heading", name="No profile yet").wait_for()
        assert str(logdir) in shown.tab.locator(".state").inner_text()
        foreign(logdir)
        shown.tab.get_by_role("button", name="Reload runs").click()
        shown.wait_for_report(FOREIGN)
        shown.check(served)


@pytest.mark.parametrize(
    "module", ["advisor.tensorboard.plugin", "advisor.tensorboard.run_finder", "advisor.model.text"]
)
def test_an_import_error_of_the_advisor_leaves_tensorboard_working(tmp_path, module):
    with tensorboard(tmp_path, tmp_path, f"import sys; sys.modules['{module}'] = None") as served:
        tabs = json.loads(served.get("data/plugins_listing"))
        assert "scalars" in tabs
        assert NAME not in tabs
        assert b"TensorBoard" in served.get("")
    assert "TensorBoard starts without the tab tf.data" in served.log.read_text()


@pytest.mark.skipif(not OTHERS.is_dir(), reason="the profiles of others are not beside this checkout")
def test_profiles_of_others(tmp_path, show):
    """Every profile, or the sentence for it; they differ in everything."""
    with tensorboard(OTHERS, tmp_path) as served:
        shown = show(served)
        names = shown.tab.locator("#runs option").all_inner_texts()
        assert len(names) > 8
        for name in names:
            shown.choose(name)
            either = shown.tab.locator(f'main iframe[title="Report of {name}"], .state .problem')
            either.wait_for(timeout=MADE_MS)
            if shown.tab.locator("main iframe").count():
                shown.wait_for_report(name)
            else:
                assert "\n" not in shown.tab.locator(".state .problem").inner_text()
        shown.check(served)
