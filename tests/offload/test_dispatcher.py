"""What is said if no dispatcher answers. No TensorFlow: `tests/prove/trial/service/test_served_trial.py` asks real ones."""

from __future__ import annotations

import socket
import time

import pytest

from advisor.host.calibration.constant import Constant
from advisor.model.errors import AdvisorError
from advisor.offload import dispatcher
from advisor.offload.dispatcher import Dispatcher, listed, reachable


@pytest.fixture
def silent() -> socket.socket:
    """A server that accepts connections and never answers."""
    with socket.create_server(("localhost", 0)) as server:
        yield server


def test_nothing_listens_there(silent):
    port = silent.getsockname()[1]
    silent.close()
    began = time.monotonic()
    with pytest.raises(
        AdvisorError, match=rf"No dispatcher .* answers at localhost:{port} \(the connection is refused\)"
    ):
        Dispatcher(f"grpc://localhost:{port}").wait_for_workers()
    assert time.monotonic() - began < 5


def test_the_host_is_unknown():
    with pytest.raises(AdvisorError, match="the host name is unknown"):
        Dispatcher("grpc://no-such-host.invalid:5000").workers()


@pytest.mark.long
def test_something_else_never_answers(silent, monkeypatch):
    monkeypatch.setattr(dispatcher, "DISPATCHER_ANSWER_S", Constant(1.0, "s"))
    began = time.monotonic()
    with pytest.raises(AdvisorError, match=r"did not answer within 1 s|No dispatcher"):
        Dispatcher(f"grpc://localhost:{silent.getsockname()[1]}").workers()
    assert time.monotonic() - began < 5


def test_which_addresses_can_be_reached(silent):
    there = f"localhost:{silent.getsockname()[1]}"
    assert reachable(["localhost:9", there, "no port"]) == (there,)
    assert reachable([]) == ()


def test_long_lists_are_cut():
    assert listed(["a:1", "b:1"]) == "a:1, b:1"
    assert listed(["a:1", "b:1", "c:1", "d:1", "e:1"]) == "a:1, b:1, c:1 and 2 more"
