"""Among equals, the cheapest, with real pipelines: parallel calls, the size of a prefetch, and the place of a cache."""

from __future__ import annotations

import json
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from advisor.capture.request import CaptureRequest
from advisor.cli import main
from advisor.model.calls import Call, Site
from advisor.model.edits import Code, InsertAfter, SetArgument
from advisor.model.finding import Finding, Fix, Safety
from advisor.prove.search.fixed_numbers import with_cheapest
from advisor.prove.search.loop_result import Attempt, LoopResult, edits_of
from advisor.prove.session.proof_session import ProofSession
from advisor.prove.trial.trial_result import FASTER

pytestmark = [pytest.mark.tensorflow, pytest.mark.long, pytest.mark.timed, pytest.mark.slow]
STEP_S = 0.05
MIB = 1 << 20
LARGE_ELEMENTS = """
    import time
    import tensorflow as tf

    def load(x):
        time.sleep(0.05)
        return x

    def read(x):
        x = tf.numpy_function(load, [x], tf.int64)
        return tf.fill([8 << 20], tf.cast(x % 7, tf.uint8))

    options = tf.data.Options()
    options.threading.private_threadpool_size = 16  # as many calls in parallel as on a machine with 16 cores
    dataset = tf.data.Dataset.range(10**9).map(read).with_options(options)
    for element in dataset:
        time.sleep(0.05)
    """
MAP, END = "tfadv_2", "tfadv_3"
TWO_PLACES = """
    import time
    import tensorflow as tf

    def decode(x):
        y = tf.ones([200, 200]) * tf.cast(x + 1, tf.float32)
        for _ in range(18):
            y = tf.linalg.matmul(y, y) / tf.reduce_max(y)
        return tf.cast(y[:64, :64] * 255.0, tf.uint8)

    def scale(x):
        return tf.cast(x, tf.float32) / 255.0

    dataset = tf.data.Dataset.range(64).map(decode)
    dataset = dataset.map(scale).batch(8)
    for epoch in range(100_000):
        for batch in dataset:
            time.sleep(0.02)
    """


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    def write(text: str) -> Path:
        path = tmp_path / "train.py"
        path.write_text(textwrap.dedent(text))
        return path

    return write


def call_in(path: Path, call_id: str, method: str) -> Call:
    """A call of the script, as its first run recorded it."""
    lines = path.read_text().splitlines()
    line = next(number for number, text in enumerate(lines, 1) if f".{method}(" in text)
    column = lines[line - 1].index(f".{method}(") + 2
    return Call(call_id, method, Site(str(path), line, column, line, column))


def test_as_many_parallel_calls_as_the_training_needs_take_less_memory_and_are_as_fast(script) -> None:
    path = script(LARGE_ELEMENTS)
    calls = {MAP: call_in(path, MAP, "map"), END: call_in(path, END, "with_options")}
    autotune = Code("tf.data.AUTOTUNE")
    edits = SetArgument(MAP, "num_parallel_calls", autotune), InsertAfter(END, "prefetch", (("", autotune),))
    finding = Finding("serial-map", "Parallelise map(read)", "", fix=Fix(edits, Safety.EXACT, is_auto=True))
    request = CaptureRequest(out=path.parent / "run", script=path)
    with ProofSession(request, calls[END], 300.0, lambda progress: None) as session:
        trial = session.try_fix((), edits_of([finding], calls), Safety.EXACT, 0)
        assert trial.verdict == FASTER
        loop = LoopResult((Attempt(finding, trial, is_kept=True),), (finding,), trial)
        deadline = time.monotonic() + 120
        result = with_cheapest(session, loop, calls, STEP_S * 1e9, 16, deadline, lambda progress: None)
    numbers = result.fixed_numbers
    assert numbers is not None and numbers.is_chosen, numbers
    assert numbers.parallel_calls is not None and 2 <= numbers.parallel_calls <= 6
    assert numbers.buffer_size == 1
    assert numbers.autotune_bytes - numbers.fixed_bytes >= 64 * MIB
    (kept,) = result.kept
    assert kept.fix is not None and kept.fix.edits == (
        SetArgument(MAP, "num_parallel_calls", numbers.parallel_calls),
        InsertAfter(END, "prefetch", (("", 1),)),
    )
    assert (
        f"num_parallel_calls={numbers.parallel_calls} and prefetch(1) instead of AUTOTUNE: as fast" in numbers.sentence
    )


def test_of_two_places_for_a_cache_that_save_as_much_the_smaller_one_is_kept_and_the_other_is_told(
    script, capsys
) -> None:
    path = script(TWO_PLACES)
    command = ["fix", "--as-if-step", "20ms", "--budget", "3min", "--json", "fix.json", str(path)]
    assert main(command) == 0
    report = json.loads(Path("fix.json").read_text())
    applied = [fix for fix in report["fixes"] if fix["applied"]]
    assert [fix["rule"] for fix in applied] == ["repeated-work"]
    assert "map(decode).cache()" in report["proof"]["diff"]
    (finding,) = [finding for finding in report["findings"] if finding["rule"] == "repeated-work"]
    sizes = [finding["evidence"][name]["value"] for name in ("cache_bytes", "larger_cache_bytes")]
    assert sizes[1] > 3 * sizes[0]
    trade = "would save about as much (predicted: "
    assert trade in finding["because"]
    assert trade in report["proof"]["fixes"][0]["note"]
    assert trade in " ".join(capsys.readouterr().out.split())
    memory = report["proof"]["fixes"][0]["memory_bytes"]
    assert memory["before"] and memory["after"]
