"""Lines from a child come whole and in order, however they are cut, and the end of the child is not waited for without limit."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from advisor.prove.session.message_lines import MessageLines

TALKS = """
import os, time
os.write(1, b"one\\ntwo\\nth")
time.sleep(0.3)
os.write(1, b"ree\\nrest")
"""


@pytest.fixture
def child():
    with subprocess.Popen([sys.executable, "-c", TALKS], stdout=subprocess.PIPE, bufsize=0) as child:
        yield child
        child.kill()


def test_lines_are_whole_and_what_has_no_end_is_none(child):
    lines = MessageLines(child.stdout, child)
    seen, pauses = [], 0
    deadline = time.monotonic() + 20
    while child.poll() is None or len(seen) < 3:
        assert time.monotonic() < deadline
        line = lines.next()
        if line is None:
            pauses += 1
        else:
            seen.append(line)
    assert seen == [b"one", b"two", b"three"]
    assert pauses, "it returns while nothing comes"
    assert lines.next() is None
    lines.close()
    lines.close()
    assert child.stdout.closed
