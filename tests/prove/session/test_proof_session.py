"""Proof sessions of real scripts: measured and judged on their own data; what goes wrong is said, nothing is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from advisor.capture.request import CaptureRequest, Progress
from advisor.model.calls import Call, Site
from advisor.model.codec import decode
from advisor.model.edits import Code, InsertAfter, SetArgument
from advisor.model.errors import AdvisorError, ScriptFailed
from advisor.model.finding import Safety
from advisor.model.recording import Recording
from advisor.prove.session.proof_session import ProofSession
from advisor.prove.trial.trial_result import BROKEN, FASTER, REFUSED

pytestmark = pytest.mark.tensorflow
SLOW_MAP = """
    import sys
    import time
    import tensorflow as tf

    def work(x):
        time.sleep(0.004)
        return x * 2

    def slow(x):
        return tf.numpy_function(work, [x], tf.int64)

    open("notes.txt", "w").write(str(sys.argv[1:]))
    dataset = tf.data.Dataset.range(120).map(slow).shuffle(20).batch(4)
    for epoch in range(1000):
        for batch in dataset:
            pass
    """
MAP, SHUFFLE, BATCH = "tfadv_2", "tfadv_3", "tfadv_4"


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    monkeypatch.chdir(tmp_path)

    def write(text: str) -> Path:
        path = tmp_path / "train.py"
        path.write_text(textwrap.dedent(text))
        return path

    return write


@pytest.fixture
def no_leftovers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing is left in the folder for temporary files."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield
    assert list(folder.glob("advisor-*")) == []


def consumed(path: Path, method: str, call_id: str) -> Call:
    """The consumed call, as the first run recorded it."""
    lines = path.read_text().splitlines()
    line = next(number for number, text in enumerate(lines, 1) if f".{method}(" in text)
    column = lines[line - 1].index(f".{method}(") + 2
    return Call(call_id, method, Site(str(path), line, column, line, column))


def session(path: Path, call: Call, **more: object) -> ProofSession:
    request = CaptureRequest(out=path.parent / "run", script=path, args=("--fast",))
    return ProofSession(request, call, 300.0, lambda progress: None, **more)  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.timed
def test_a_fix_is_measured_judged_and_profiled(script: Callable[[str], Path], no_leftovers: None) -> None:
    path = script(SLOW_MAP)
    cache = (InsertAfter(MAP, "cache"),)
    with session(path, consumed(path, "batch", BATCH)) as proof:
        assert proof.written_files == (str(path.parent / "notes.txt"),)
        trial = proof.try_fix((), cache, Safety.EXACT, 1000)
        assert (trial.verdict, trial.safety_seen, trial.elements_compared) == (FASTER, Safety.EXACT, 30)
        assert trial.speedup is not None
        assert 2 < trial.speedup.low <= trial.speedup.value <= trial.speedup.high
        assert trial.rate_before is not None
        assert trial.rate_after is not None
        assert trial.rate_after > 2 * trial.rate_before
        assert trial.turns >= 6
        if sys.platform == "linux":
            assert trial.memory_before_bytes is not None
            assert trial.memory_before_bytes > 50_000_000

        broken = proof.try_fix(cache, (InsertAfter(SHUFFLE, "cache"),), Safety.REORDERED)
        assert (broken.verdict, broken.safety_seen) == (BROKEN, Safety.CHANGES)
        too_big = proof.try_fix((), cache, Safety.EXACT, 10**15)
        assert too_big.verdict == REFUSED
        assert "memory" in too_big.note
        strange = proof.try_fix((), (InsertAfter("tfadv_77", "cache"),), Safety.EXACT)
        assert (strange.verdict, strange.is_replayable) == (REFUSED, False)

        folder = proof.profile(cache)
        recording = decode((folder / "recording.json").read_bytes(), Recording)
        assert [call.method for call in recording.calls] == ["range", "map", "shuffle", "batch", "cache"]
        assert recording.consumers[0].call_id == BATCH
        assert recording.window is not None
        assert recording.window.steps > 20
        assert list(folder.glob("plugins/profile/*/*.xplane.pb"))
    assert proof.runs == 1
    assert not (path.parent / "notes.txt").exists()  # what the script writes is thrown away


@pytest.mark.long
def test_a_cache_over_unknown_noise_in_python_is_broken(script: Callable[[str], Path]) -> None:
    path = script(
        """
        import numpy as np
        import tensorflow as tf

        def noise(x):
            return np.float32(x + np.random.rand())

        dataset = tf.data.Dataset.range(64).map(lambda x: tf.numpy_function(noise, [x], tf.float32)).batch(4)
        for epoch in range(1000):
            for batch in dataset:
                pass
        """
    )
    with session(path, consumed(path, "batch", "tfadv_3")) as proof:
        assert proof.try_fix((), (InsertAfter(MAP, "cache"),), Safety.EXACT).verdict == BROKEN


@pytest.mark.long
@pytest.mark.parametrize(
    "loop",
    [
        pytest.param(
            "import keras\n"
            "model = keras.Sequential([keras.layers.Dense(1)])\n"
            "model.compile('sgd', 'mse')\n"
            "model.fit(dataset, epochs=100, verbose=0)",
            id="keras",
        ),
        pytest.param(
            "@tf.function\ndef train(data):\n    for x, y in data:\n        tf.print(tf.reduce_sum(x))\ntrain(dataset)",
            id="tf.function",
        ),
        pytest.param(
            "strategy = tf.distribute.MirroredStrategy(['/cpu:0'])\n"
            "for x in strategy.experimental_distribute_dataset(dataset):\n    pass",
            id="distributed",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "strategy = tf.distribute.MirroredStrategy(['/cpu:0'])\n"
            "for x in strategy.distribute_datasets_from_function(lambda context: dataset):\n    pass",
            id="from_function",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "print(dataset.reduce(0.0, lambda total, row: total + tf.reduce_sum(row[0])))",
            id="reduce",
            marks=pytest.mark.slow,
        ),
        pytest.param("iterator = iter(dataset)\nwhile True:\n    next(iterator)", id="next", marks=pytest.mark.slow),
    ],
)
def test_every_kind_of_consumer_is_held_before_its_first_element(
    script: Callable[[str], Path], loop: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = tmp_path / "datasets"  # what a run writes there is not thrown away
    kept.mkdir()
    monkeypatch.setenv("TFDS_DATA_DIR", str(kept))
    path = script(
        f"import tensorflow as tf\nopen('{kept}/begun', 'w')\n"
        "def row(x):\n"
        "    return tf.cast([x], tf.float32), tf.cast([x], tf.float32)\n"
        "dataset = tf.data.Dataset.range(64).map(row).batch(4)\n" + loop + f"\nopen('{kept}/finished', 'w')\n"
    )
    with session(path, consumed(path, "batch", "tfadv_3")) as proof:
        broken = proof.try_fix((), (InsertAfter(MAP, "take", (("", 60),)),), Safety.EXACT)
        assert (broken.verdict, broken.safety_seen) == (BROKEN, Safety.CHANGES), broken.note
    assert [file.name for file in kept.iterdir()] == ["begun"]


@pytest.mark.slow
def test_calls_in_another_order_are_matched_by_their_site(script: Callable[[str], Path]) -> None:
    path = script(
        """
        import sys
        import tensorflow as tf
        if len(sys.argv) > 1:
            tf.data.Dataset.range(3)  # the first run made none here
        dataset = tf.data.Dataset.range(64).map(lambda x: x + 1).batch(4)
        for batch in dataset:
            pass
        """
    )
    batch = consumed(path, "batch", "tfadv_3")
    calls = (consumed(path, "map", "tfadv_2"), batch)
    with session(path, batch, calls=calls) as proof:
        trial = proof.try_fix((), (InsertAfter("tfadv_2", "skip", (("", 1),)),), Safety.EXACT)
        assert (trial.verdict, trial.safety_seen) == (BROKEN, Safety.CHANGES)


@pytest.mark.long
def test_a_script_that_fails_on_its_way_shows_its_own_error(
    script: Callable[[str], Path], capsys: pytest.CaptureFixture[str], no_leftovers: None
) -> None:
    path = script("import tensorflow as tf\nraise ValueError('no such data')\n# .batch(\n")
    with pytest.raises(ScriptFailed, match="no such data"), session(path, consumed(path, "batch", "tfadv_1")):
        pass
    assert "ValueError: no such data" in capsys.readouterr().err


@pytest.mark.slow
def test_a_script_that_never_consumes_the_dataset_is_told(script: Callable[[str], Path], no_leftovers: None) -> None:
    path = script("import tensorflow as tf\nprint(tf.data.Dataset.range(5).batch(2))\n")
    with (
        pytest.raises(AdvisorError, match="did not consume the dataset of batch"),
        session(path, consumed(path, "batch", "tfadv_2")),
    ):
        pass


@pytest.mark.long
def test_a_pipeline_that_raises_is_refused_with_its_own_words(script: Callable[[str], Path]) -> None:
    path = script(
        """
        import tensorflow as tf

        def decode(x):
            raise ValueError("record 7 is damaged")

        dataset = tf.data.Dataset.range(8).map(lambda x: tf.numpy_function(decode, [x], tf.int64)).batch(2)
        for batch in dataset:
            pass
        """
    )
    with session(path, consumed(path, "batch", "tfadv_3")) as proof:
        trial = proof.try_fix((), (SetArgument(MAP, "num_parallel_calls", Code("tf.data.AUTOTUNE")),), Safety.EXACT)
    assert trial.verdict == REFUSED
    assert "record 7 is damaged" in trial.note


@pytest.mark.long
def test_a_pipeline_that_hangs_is_given_up_and_the_next_one_tried(
    script: Callable[[str], Path], no_leftovers: None
) -> None:
    path = script(
        """
        import threading
        import time
        import tensorflow as tf

        lock = threading.Lock()

        def work(x):
            if not lock.acquire(blocking=False):
                time.sleep(10_000)
            time.sleep(0.01)
            lock.release()
            return x

        dataset = tf.data.Dataset.range(64).map(lambda x: tf.numpy_function(work, [x], tf.int64)).batch(4)
        for batch in dataset:
            pass
        """
    )
    with session(path, consumed(path, "batch", "tfadv_3"), silence_s=8.0) as proof:
        hanging = proof.try_fix((), (SetArgument(MAP, "num_parallel_calls", 4),), Safety.EXACT)
        assert hanging.verdict == REFUSED
        assert "made no progress for 8 s" in hanging.note
        again = proof.try_fix((), (InsertAfter("tfadv_1", "take", (("", 60),)),), Safety.EXACT)
        assert again.verdict == BROKEN
    assert proof.runs == 2


@pytest.mark.slow
def test_a_slow_pipeline_is_not_taken_for_one_that_hangs(script: Callable[[str], Path], no_leftovers: None) -> None:
    path = script(
        """
        import time
        import tensorflow as tf

        def work(x):
            time.sleep(0.15)
            return x

        dataset = tf.data.Dataset.range(20).map(lambda x: tf.numpy_function(work, [x], tf.int64)).batch(4)
        for batch in dataset:
            pass
        """
    )
    with session(path, consumed(path, "batch", "tfadv_3"), silence_s=5.0) as proof:
        trial = proof.try_fix((), (InsertAfter("tfadv_1", "take", (("", 16),)),), Safety.EXACT)
        assert trial.verdict == BROKEN, trial
    assert proof.runs == 1


@pytest.mark.long
def test_a_killed_child_is_one_sentence_and_leaves_nothing(script: Callable[[str], Path], no_leftovers: None) -> None:
    path = script(SLOW_MAP)

    def kill(progress: Progress) -> None:
        child = proof._process._child if proof._process is not None else None
        if progress.phase == "warming up" and child is not None:
            os.kill(child.pid, signal.SIGKILL)

    request = CaptureRequest(out=path.parent / "run", script=path)
    proof = ProofSession(request, consumed(path, "batch", BATCH), 300.0, kill)
    with pytest.raises(AdvisorError, match="killed by signal 9"), proof:
        proof.try_fix((), (InsertAfter(MAP, "cache"),), Safety.EXACT)


@pytest.mark.long
def test_ctrl_c_ends_the_child_too(script: Callable[[str], Path], tmp_path: Path, no_leftovers: None) -> None:
    path = script(SLOW_MAP)
    parent = tmp_path / "parent.py"
    parent.write_text(
        textwrap.dedent(
            f"""
            import sys
            from pathlib import Path
            from advisor.capture.request import CaptureRequest
            from advisor.model.edits import (InsertAfter)
            from advisor.model.finding import (Safety)
            from advisor.prove.session.proof_session import ProofSession
            from tests.prove.session.test_proof_session import consumed
            path = Path({str(path)!r})
            request = CaptureRequest(out=path.parent / "run", script=path)
            proof = ProofSession(request, consumed(path, "batch", {BATCH!r}), 300.0, lambda p: None)
            try:
                with proof:
                    print(proof._process._child.pid, flush=True)
                    proof.try_fix((), (InsertAfter({MAP!r}, "cache"),), Safety.EXACT)
            except KeyboardInterrupt:
                print("interrupted", flush=True)
            """
        )
    )
    root = Path(__file__).parents[3]
    process = subprocess.Popen(
        [sys.executable, str(parent)],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": str(root)},
    )
    assert process.stdout is not None
    child = int(process.stdout.readline())
    timer = threading.Timer(3.0, lambda: os.killpg(process.pid, signal.SIGINT))
    timer.start()
    assert process.stdout.readline() == "interrupted\n"
    assert process.wait(60) == 0
    deadline = time.monotonic() + 20
    while Path(f"/proc/{child}").exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not Path(f"/proc/{child}").exists()
