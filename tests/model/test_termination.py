"""SIGTERM lets go of what a block holds, and ends the program as it would without us."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap

import pytest

from advisor.model.termination import Terminated, raising_when_terminated

PROGRAM = """
    import signal, sys, tempfile, time
    from advisor.model.termination import cleaning_up_when_terminated
    {before}
    with cleaning_up_when_terminated(), tempfile.TemporaryDirectory(dir=sys.argv[1]):
        print("ready", flush=True)
        time.sleep(30)
    print("not ended")
"""


def ended(tmp_path, before=""):
    program = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(PROGRAM).format(before=before), str(tmp_path)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert program.stdout is not None
    assert program.stdout.readline() == "ready\n"
    program.terminate()
    out, err = program.communicate(timeout=20)
    return program.returncode, out, err


def test_a_program_dies_of_the_signal_and_leaves_nothing(tmp_path):
    assert ended(tmp_path) == (-signal.SIGTERM, "", "")
    assert list(tmp_path.iterdir()) == []


def test_a_handler_of_the_programs_own_is_left_alone(tmp_path):
    assert ended(tmp_path, "signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))") == (7, "", "")


@pytest.fixture
def default_handlers():
    """As in a program that `nohup` did not start."""
    numbers = (signal.SIGTERM, signal.SIGHUP)
    before = [signal.signal(number, signal.SIG_DFL) for number in numbers]
    yield
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)


def test_the_next_signals_do_not_disturb_and_the_default_comes_back(default_handlers):
    with pytest.raises(Terminated) as raised, raising_when_terminated():
        try:
            signal.raise_signal(signal.SIGTERM)
        finally:
            signal.raise_signal(signal.SIGTERM)
            signal.raise_signal(signal.SIGHUP)
    assert raised.value.number == signal.SIGTERM
    assert signal.getsignal(signal.SIGTERM) is signal.getsignal(signal.SIGHUP) is signal.SIG_DFL
