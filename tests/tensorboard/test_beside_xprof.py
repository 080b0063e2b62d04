"""The tab tf.data and XProf's tab Profile in one TensorBoard (`make xprof`)."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("tensorboard", reason="tensorboard is not installed (extra `tensorboard`)")
pytest.importorskip("xprof", reason="xprof is not installed (make xprof)")
from tests.tensorboard.logdirs import NAME, RUN_OF, Served, recorded, tensorboard, unpacked

pytestmark = pytest.mark.long

RUN = RUN_OF["keras_fit"]
PROFILE = "profile"
"""The name that XProf gives its plugin."""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("beside")
    unpacked(recorded("keras_fit", folder / "logs"))
    with tensorboard(folder / "logs", folder) as running:
        yield running


def answer(served: Served, path: str) -> Any:
    body = served.get(path)
    return json.loads(gzip.decompress(body) if body.startswith(b"\x1f\x8b") else body)  # XProf compresses unasked


def test_both_tabs_are_listed(served: Served) -> None:
    tabs = answer(served, "data/plugins_listing")
    assert {name: tabs[name]["enabled"] for name in (NAME, PROFILE)} == {NAME: True, PROFILE: True}


def test_both_answer_for_the_same_run(served: Served) -> None:
    ours = answer(served, f"data/plugin/{NAME}/runs")["runs"]
    assert [run["name"] for run in ours] == [RUN]
    assert RUN in answer(served, f"data/plugin/{PROFILE}/runs")
    assert answer(served, f"data/plugin/{PROFILE}/run_tools?run={RUN}")


def test_the_log_shows_no_error_of_the_tab(served: Served) -> None:
    # XProf itself logs a traceback when it reads a run for the first time: its cache does not exist yet.
    assert "advisor/tensorboard/" not in Path(served.log).read_text(encoding="utf-8", errors="replace")
