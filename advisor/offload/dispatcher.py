"""Asks a running dispatcher of tf.data service for its workers, without TensorFlow.

In: `grpc://HOST:PORT`.  Out: the addresses of the workers, and which of them can be reached from here; sentences for people if
nothing answers. TensorFlow's own client waits for an hour for a dispatcher that is not there, so it is asked here first.

Source of messages and field numbers: `tensorflow/core/data/service/dispatcher.proto` of TF 2.21. It is TensorFlow's own protocol
between its processes: a release that changes it says so through `GetVersion`, which its clients check.
"""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

from advisor.capture.remote.wire_messages import Fields, message_classes
from advisor.host.calibration.offload import DISPATCHER_ANSWER_S, WORKER_ANSWER_S, WORKERS_WAIT_S
from advisor.model.errors import AdvisorError
from advisor.model.text import one_line

PROTOCOL = "grpc://"
_METHOD = "/tensorflow.data.DispatcherService/GetWorkers"
_PACKAGE = "tfdata_advisor.data_service"
_FIELDS: Fields = {
    "GetWorkersRequest": (),
    "WorkerInfo": (("address", 1, "string"),),
    "GetWorkersResponse": (("workers", 1, "repeated WorkerInfo"),),
}
_POLL_S = 0.5
_MOST_ASKED = 16
"""Workers that are asked at the same time."""
_MOST_SHOWN = 200


class Dispatcher:
    """A dispatcher that somebody else runs."""

    def __init__(self, address: str) -> None:
        """Remember the address; nothing is sent.

        Args:
            address: `grpc://HOST:PORT`.
        """
        self.address = address
        self.name = address.removeprefix(PROTOCOL)
        """`HOST:PORT`."""

    def workers(self) -> tuple[str, ...]:
        """Return the addresses at which clients reach the registered workers; those of workers that have ended remain.

        Raises:
            AdvisorError: Nothing answers, or no dispatcher does.
        """
        try:
            import grpc
        except ImportError:
            raise AdvisorError(
                "Asking a dispatcher needs grpcio, which is not installed: pip install grpcio; it is part of TensorFlow's own "
                "requirements."
            ) from None
        with grpc.insecure_channel(self.name) as channel:
            call = channel.unary_unary(
                _METHOD,
                request_serializer=lambda message: message.SerializeToString(),
                response_deserializer=_messages()["GetWorkersResponse"].FromString,
            )
            try:
                answer = call(_messages()["GetWorkersRequest"](), timeout=DISPATCHER_ANSWER_S.value)
            except grpc.RpcError as error:
                raise AdvisorError(_explained(self.name, error)) from None
        return tuple(worker.address for worker in answer.workers)

    def wait_for_workers(
        self, report: Callable[[], None] = lambda: None, seconds: float = WORKERS_WAIT_S.value
    ) -> tuple[str, ...]:
        """Return the addresses of the workers as soon as one has registered and can be reached.

        Args:
            report: Called now and then.
            seconds: The longest time to wait.

        Raises:
            AdvisorError: There is no dispatcher, no worker has registered in time, or none can be reached from here.
        """
        deadline = time.monotonic() + seconds
        while True:
            workers = self.workers()
            if reachable(workers):
                return workers
            if time.monotonic() >= deadline:
                break
            report()
            time.sleep(_POLL_S)
        if not workers:
            raise AdvisorError(
                f"The dispatcher at {self.name} has no workers: none has registered within {seconds:.0f} s. Start at least one, "
                f"such as with `python server.py worker --dispatcher {self.name} --address ITS_HOST:5001`."
            )
        raise AdvisorError(
            f"None of the workers of the dispatcher at {self.name} can be reached from here ({listed(workers)}): they have "
            "ended, or they were started with an address that is valid on their own machine only. Start them with `--address "
            "HOST:PORT` as the trainer sees them."
        )


def reachable(addresses: Sequence[str]) -> tuple[str, ...]:
    """Return those of the addresses (`host:port`) at which something accepts connections."""
    if not addresses:
        return ()
    with ThreadPoolExecutor(min(_MOST_ASKED, len(addresses))) as pool:
        answers = list(pool.map(_is_listening, addresses))
    return tuple(address for address, is_there in zip(addresses, answers, strict=True) if is_there)


def _is_listening(address: str) -> bool:
    host, _, port = address.rpartition(":")
    with contextlib.suppress(OSError, ValueError):
        socket.create_connection((host.strip("[]"), int(port)), timeout=WORKER_ANSWER_S.value).close()
        return True
    return False


def listed(addresses: Sequence[str]) -> str:
    """Return the first addresses, and how many there are besides, for a sentence."""
    shown = ", ".join(addresses[:3])
    return shown if len(addresses) <= 3 else f"{shown} and {len(addresses) - 3} more"


def _explained(name: str, error: Any) -> str:  # noqa: ANN401  grpc has no types
    """Return in one sentence why a dispatcher did not answer, from the `grpc.RpcError`."""
    code, details = error.code().name, one_line(error.details() or "")
    if code == "DEADLINE_EXCEEDED":
        return (
            f"The dispatcher of tf.data service at {name} did not answer within {DISPATCHER_ANSWER_S.value:.0f} s: check the "
            "address and the firewall between the machines."
        )
    if code == "UNIMPLEMENTED":
        return (
            f"{name} is not a dispatcher of tf.data service: another server answers there, such as one of its workers."
        )
    if code == "UNAVAILABLE":
        return (
            f"No dispatcher of tf.data service answers at {name} ({_cause(details)}): start it, or check the address and the "
            "firewall between the machines."
        )
    return f"The dispatcher at {name} could not be asked for its workers ({details[:_MOST_SHOWN].rstrip('.') or code})."


def _cause(details: str) -> str:
    lower = details.lower()
    if "refused" in lower:
        return "the connection is refused"
    if any(words in lower for words in ("dns", "hostname lookup", "name resolution", "name or service")):
        return "the host name is unknown"
    if "http1" in lower or "http/1" in lower:
        return "a web server answers there"
    return details[:_MOST_SHOWN].rstrip(".") or "unavailable"


@cache
def _messages() -> Mapping[str, Any]:
    return message_classes(_PACKAGE, _FIELDS)
