"""What TensorBoard's start costs, and what it survives."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

pytest.importorskip("tensorboard", reason="tensorboard is not installed (extra `tensorboard`)")

REPOSITORY = Path(__file__).parents[2]
HEAVY = (
    "tensorflow", "msgspec", "networkx", "libcst", "jinja2", "google.protobuf", "advisor.capture", "advisor.engine",
    "advisor.graph", "advisor.profile", "advisor.report", "advisor.statistics", "advisor.workflows",
)  # fmt: skip
START = """
import argparse, json, sys
from tensorboard.backend import http_util
from tensorboard.plugins import base_plugin
before = set(sys.modules)
from advisor.tensorboard.loader import TfDataLoader
at_import = sorted(name for name in set(sys.modules) - before if not name.startswith("advisor"))
flags = argparse.Namespace(host=None, bind_all=False, logdir_spec="")
plugin = TfDataLoader().load(base_plugin.TBContext(logdir=".", flags=flags))
plugin.is_active(), plugin.frontend_metadata(), plugin.get_plugin_apps(), plugin.data_plugin_names()
print(json.dumps([at_import, sorted(set(sys.modules) - before)]))
"""


@pytest.fixture(scope="module")
def imported():
    """The modules that the entry point imports, and those after the plugin has been asked whether it is active."""
    done = subprocess.run(
        [sys.executable, "-c", START], capture_output=True, text=True, check=True, cwd=REPOSITORY / "rules"
    )
    return json.loads(done.stdout)


def test_the_entry_point_imports_nothing_but_the_advisors_version(imported):
    assert imported[0] == []


def test_nothing_heavy_is_imported_before_the_first_report(imported):
    assert [name for name in imported[1] if any(name == heavy or name.startswith(f"{heavy}.") for heavy in HEAVY)] == []


@pytest.mark.parametrize(
    "module", ["advisor.tensorboard.plugin", "advisor.tensorboard.reports", "advisor.model.run_folder"]
)
def test_an_import_error_costs_the_tab_only(monkeypatch, caplog, module):
    from advisor.tensorboard.loader import TfDataLoader

    for name in [
        name for name in sys.modules if name.startswith("advisor.tensorboard.") and not name.endswith("loader")
    ]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    with caplog.at_level(logging.WARNING):
        assert TfDataLoader().load(None) is None
    (record,) = caplog.records
    assert record.getMessage().startswith("TensorBoard starts without the tab tf.data")
    assert record.exc_info is None


def test_an_error_while_the_plugin_is_made_costs_the_tab_only(monkeypatch):
    import advisor.tensorboard.plugin as plugin
    from advisor.tensorboard.loader import TfDataLoader

    def fail(*_):
        raise RuntimeError("planned")

    monkeypatch.setattr(plugin, "RunFinder", fail)
    assert TfDataLoader().load(type("Context", (), {"flags": None, "logdir": ""})) is None


def test_the_entry_point_names_the_loader():
    from tensorboard.plugins import base_plugin

    points = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["project"]["entry-points"][
        "tensorboard_plugins"
    ]
    ((name, target),) = points.items()
    module, _, attribute = target.partition(":")
    loader = getattr(__import__(module, fromlist=[attribute]), attribute)
    assert name == "tfdata_advisor"
    assert issubclass(loader, base_plugin.TBLoader)
