"""How pytest-xdist deals out the tests: the tests of some files go to one process, which prepares what they share once.

`--dist loadgroup` is for this, but it renames the tests, which pytest 9.2 no longer allows: the groups are torn apart.
"""

from __future__ import annotations

from xdist.scheduler import LoadScopeScheduling

IN_ONE_PROCESS = (
    "tests/capture/instrument/test_captured_state.py",
    "tests/capture/remote/test_sampling.py",
    "tests/capture/test_planted_lines.py",
    "tests/commands/test_every_command.py",
    "tests/examples/test_collecting_scripts.py",
    "tests/export/test_in_browser.py",
    "tests/hostile/test_table.py",
    "tests/profile/test_capture.py",
    "tests/tensorboard/test_in_browser.py",
    "tests/test_archives.py",
)


class SharedFiles(LoadScopeScheduling):
    """Deals out the tests one at a time, those of `IN_ONE_PROCESS` a file at a time."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return file if file in IN_ONE_PROCESS else nodeid
