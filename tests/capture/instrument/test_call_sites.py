"""Where in the user's files something happens."""

from __future__ import annotations

import runpy
import sys

import pytest

from advisor.capture.instrument.call_sites import LOOP_OPCODES, SiteFinder


def test_equal_code_of_two_files_has_two_places(tmp_path):
    finder = SiteFinder()
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text("def make(call):\n    return call()\n")
        make = runpy.run_path(str(tmp_path / name))["make"]
        place = make(lambda: finder.place(sys._getframe(1)))
        assert place.site is not None
        assert (place.site.file, place.site.line) == (str(tmp_path / name), 2)


@pytest.mark.parametrize("iterated", ["dataset", "tqdm.tqdm(dataset)", "enumerate(tqdm.tqdm(dataset))"])
def test_a_loop_is_at_what_it_iterates_over_also_through_a_progress_bar(iterated, tmp_path):
    """On Python 3.11, the position of the loop's instructions ends with its last statement, here a call that never runs."""
    script = f"""import tqdm
def train(dataset):
    for epoch in range(2):
        for batch in {iterated}:
            if batch is None:
                print(
                    batch)
"""
    (tmp_path / "train.py").write_text(script)
    finder, places = SiteFinder(), []

    class Dataset:
        def __iter__(self):
            places.append(finder.place(sys._getframe(1)))
            return iter([1, 2])

    runpy.run_path(str(tmp_path / "train.py"))["train"](Dataset())
    assert len(places) == 2
    for place in places:
        assert place.opcode in LOOP_OPCODES
        assert place.library == ("tqdm" if "tqdm" in iterated else None)
        assert place.site is not None and (place.site.line, place.site.end_line) == (4, 4)
