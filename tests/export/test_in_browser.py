"""A merged timeline in a browser: what JavaScript reads, and what the trace viewer of TensorBoard and XProf imports."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

from advisor.cli import main
from tests.browser import find_browser

DATA = Path(__file__).parents[1] / "data"
FIVE = [DATA / name for name in ("keras_fit", "mirrored", "zip_filter", "generator", "interleave_map")]
VIEWER = "static/trace_viewer_index.html"
COUNT = """async () => {
  const text = await document.querySelector('input').files[0].text();
  const events = JSON.parse(text).traceEvents.filter((event) => event.ph === 'X');
  return [events.length, new Set(events.map((event) => event.pid)).size];
}"""
IMPORT = """(text) => {
  const model = new tr.Model();
  new tr.importer.Import(model).importTraces([text]);
  let slices = 0;
  for (const process of model.getAllProcesses())
    for (const thread of Object.values(process.threads)) slices += thread.sliceGroup.length;
  return [slices, model.importWarnings.length, Object.keys(model.processes).length];
}"""


@pytest.fixture(scope="module")
def merged(tmp_path_factory):
    """The file, and how many events it has to show."""
    path = tmp_path_factory.mktemp("merged") / "five.json"
    assert main(["export", "--to", "perfetto", "--out", str(path), *map(str, FIVE)]) == 0
    return path, sum(event["ph"] == "X" for event in json.loads(path.read_text())["traceEvents"])


@pytest.mark.long
def test_browser_reads_every_event(merged, tmp_path, open_file):
    path, events = merged
    empty = tmp_path / "empty.html"
    empty.write_text("<!doctype html><title>files</title><link rel=icon href='data:,'><input type=file>")
    page = open_file(empty).page
    page.locator("input").set_input_files(path)
    assert page.evaluate(COUNT) == [events, len(FIVE)]


@pytest.mark.long
def test_trace_viewer_imports_every_event(merged, browser):
    packages = filter(None, map(importlib.util.find_spec, ("xprof", "tensorboard_plugin_profile")))
    places = [Path(place) / VIEWER for package in packages for place in (package.submodule_search_locations or ())]
    viewer = next((place for place in places if place.is_file()), None)
    if viewer is None:
        pytest.skip("xprof, which brings the trace viewer along, is not installed")
    path, events = merged
    # the viewer reads a file beside it, which browsers allow only when told to
    own = browser.browser_type.launch(
        executable_path=find_browser(), args=["--no-sandbox", "--allow-file-access-from-files"]
    )
    page = own.new_page()
    page.goto(viewer.as_uri())
    page.wait_for_function("typeof tr !== 'undefined' && !!(tr.Model && tr.importer && tr.importer.Import)")
    assert page.evaluate(IMPORT, path.read_text()) == [events, 0, len(FIVE)]
    own.close()
