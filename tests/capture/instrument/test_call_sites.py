"""Equal code in two files is two places."""

from __future__ import annotations

import runpy
import sys

from advisor.capture.instrument.call_sites import SiteFinder


def test_equal_code_of_two_files_has_two_places(tmp_path):
    finder = SiteFinder()
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text("def make(call):\n    return call()\n")
        make = runpy.run_path(str(tmp_path / name))["make"]
        place = make(lambda: finder.place(sys._getframe(1)))
        assert place.site is not None
        assert (place.site.file, place.site.line) == (str(tmp_path / name), 2)
