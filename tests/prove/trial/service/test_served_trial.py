"""A service that somebody else runs: same elements, and what is said when parts of it are missing or end."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from advisor.capture.instrument.dataset_ids import call_id_of
from advisor.host.calibration.constant import Constant
from advisor.model.errors import AdvisorError
from advisor.model.offload_result import DYNAMIC, OFF, PYTHON
from advisor.offload.dispatcher import Dispatcher, reachable
from advisor.prove.trial.service import served_trial
from advisor.prove.trial.service.served_trial import ServedTrial
from advisor.prove.trial.service.service_messages import ServiceTried, TryService
from advisor.prove.trial.service.service_pipeline import TimedDataset
from advisor.prove.trial.service.service_versions import graph_version, own_version, probe
from tests.recorded import Recorded

pytestmark = [pytest.mark.tensorflow, pytest.mark.long]
OTHER_TENSORFLOW = os.environ.get("OTHER_TENSORFLOW", "")
"""A Python with another release of TensorFlow, such as the one of `uv venv` with tensorflow-cpu 2.20.0."""
BENCHMARKS = Path(__file__).parents[4] / "benchmarks"


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorter stretches: these tests do not look at the rates."""
    for name, value in (("SERVICE_WARMUP_S", 0.3), ("SERVICE_PART_S", 0.2)):
        assert isinstance(getattr(served_trial, name), Constant)
        monkeypatch.setattr(served_trial, name, Constant(value, "s"))


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give up early where nothing more can come."""
    monkeypatch.setattr(served_trial, "STALL_S", Constant(15.0, "s"))


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Any]:
    """A dispatcher with a journal, without workers."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    from running_service import RunningService

    folder, journal = tmp_path / "service", tmp_path / "journal"
    folder.mkdir()
    journal.mkdir()
    with RunningService(folder, work_dir=journal) as running:
        running.start_dispatcher()
        yield running


def read(
    recorded: Recorded,
    dataset: Any,
    service: Any,
    folder: Path,
    policy: str = DYNAMIC,
    during_the_pass: Callable[[], None] = lambda: None,
) -> ServiceTried:
    """Read the dataset through the service; the function runs in a thread when the pass through the workers is under way."""
    after = call_id_of(dataset)
    assert after is not None
    recorded.recorder.is_open = False

    class Interrupted(TimedDataset):
        def __iter__(self) -> Iterator[Any]:
            for number, element in enumerate(super().__iter__()):
                if number == 80:
                    threading.Thread(target=during_the_pass).start()
                yield element

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(served_trial, "TimedDataset", Interrupted)
        trial = ServedTrial(
            recorded.recorder, TryService(after, [], policy, service.address), (), folder, lambda *_: None
        )
        return trial.measure()


def slow(elements: int, milliseconds: float, batch: int = 4) -> Any:
    """A dataset whose every element takes the worker some time, before it asks the dispatcher for the next one."""
    import tensorflow as tf
    from tensorflow.python.data.experimental.ops.testing import sleep

    return tf.data.Dataset.range(elements).apply(sleep(int(milliseconds * 1000))).map(lambda x: x * 2).batch(batch)


def test_the_same_elements_come_from_all_workers(recorded: Recorded, service: Any, tmp_path: Path) -> None:
    service.start_worker()
    service.start_worker()
    tried = read(recorded, slow(120, 10), service, tmp_path)
    served = tried.measurement
    assert served.measurement.is_same is True, served.measurement.comparison
    assert (served.measurement.local_elements, served.measurement.service_elements) == (120, 120)
    assert (served.workers, served.lost, tried.notes) == (2, (), ())
    assert served.delivered_per_s is not None and served.client_cpu_s is not None
    assert served.delivered_per_s > served.measurement.local_elements_per_s  # two workers wait at the same time


@pytest.mark.slow
def test_without_sharding_every_worker_sends_everything(recorded: Recorded, service: Any, tmp_path: Path) -> None:
    service.start_worker()
    service.start_worker()
    served = read(recorded, slow(60, 1), service, tmp_path, OFF).measurement
    assert served.measurement.is_same is True and served.measurement.service_elements == 120


def test_python_code_is_refused(recorded: Recorded, service: Any, tmp_path: Path) -> None:
    import tensorflow as tf

    service.start_worker()
    dataset = tf.data.Dataset.range(40).map(lambda x: tf.numpy_function(lambda y: y + 1, [x], tf.int64)).batch(4)
    served = read(recorded, dataset, service, tmp_path).measurement.measurement
    assert served.objection is not None and served.objection.cause == PYTHON


@pytest.mark.slow
def test_a_worker_that_is_killed_in_the_middle(
    recorded: Recorded, service: Any, tmp_path: Path, impatient: None
) -> None:
    from running_service import end

    service.start_worker()
    service.start_worker()

    def kill_one() -> None:
        time.sleep(0.3)  # just after a batch was sent, a worker may hold no element at all
        end(service.workers[0])

    served = read(recorded, slow(400, 20, batch=40), service, tmp_path, during_the_pass=kill_one).measurement
    assert served.workers == 2 and len(served.lost) == 1
    compared = served.measurement
    assert compared.is_same is None and compared.objection is None
    assert 0 < compared.service_elements < 400, compared.comparison
    assert served.lost[0] in compared.comparison
    assert f"{compared.service_elements} of 400 elements" in compared.comparison, compared.comparison


@pytest.mark.slow
def test_a_dispatcher_that_is_restarted_continues_with_its_journal(
    recorded: Recorded, service: Any, tmp_path: Path
) -> None:
    from running_service import end

    service.start_worker()
    service.start_worker()

    def restart() -> None:
        end(service.dispatcher)
        service.start_dispatcher()

    served = read(recorded, slow(400, 20), service, tmp_path, during_the_pass=restart).measurement
    assert served.measurement.is_same is True, served.measurement.comparison
    assert served.measurement.service_elements == 400 and served.lost == ()


@pytest.mark.slow
def test_a_dispatcher_that_ends_for_good(recorded: Recorded, service: Any, tmp_path: Path, impatient: None) -> None:
    from running_service import end

    service.start_worker()
    dataset = slow(400, 20)
    served = read(recorded, dataset, service, tmp_path, during_the_pass=lambda: end(service.dispatcher)).measurement
    assert served.measurement.is_same is None
    assert "the dispatcher no longer answers" in served.measurement.comparison


def test_without_workers_it_is_said_after_a_bounded_time(service: Any) -> None:
    began = time.monotonic()
    with pytest.raises(AdvisorError, match=r"has no workers: none has registered within 2 s. Start at least one"):
        Dispatcher(service.address).wait_for_workers(seconds=2)
    assert time.monotonic() - began < 10


def test_a_worker_with_an_address_of_its_own_machine_is_said(service: Any) -> None:
    service.start_worker(address="localhost:9")
    with pytest.raises(AdvisorError, match=r"None of the workers .* can be reached from here \(localhost:9\)"):
        Dispatcher(service.address).wait_for_workers(seconds=1)


def test_a_worker_is_no_dispatcher(service: Any) -> None:
    service.start_worker()
    (worker,) = Dispatcher(service.address).workers()
    assert reachable([worker, "localhost:9"]) == (worker,)
    with pytest.raises(AdvisorError, match=r"is not a dispatcher of tf.data service"):
        Dispatcher(f"grpc://{worker}").workers()


def test_every_worker_says_which_tensorflow_it_runs(service: Any) -> None:
    service.start_worker()
    service.start_worker()
    elements = probe(service.address).take(2)
    assert [graph_version(element) for element in elements] == [own_version()[0]] * 2


@pytest.mark.skipif(not OTHER_TENSORFLOW, reason="OTHER_TENSORFLOW names no Python with another TensorFlow")
def test_a_worker_with_another_tensorflow_is_said(recorded: Recorded, service: Any, tmp_path: Path) -> None:
    service.start_worker()
    service.start_worker(python=OTHER_TENSORFLOW)
    tried = read(recorded, slow(100, 1), service, tmp_path)
    (note,) = tried.notes
    assert note.startswith("1 of 2 workers runs a") and f"TensorFlow than the training ({own_version()[1]})" in note
    assert tried.measurement.workers == 2
