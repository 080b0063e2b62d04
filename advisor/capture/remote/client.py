"""TensorFlow's profiler server, asked over gRPC: `tf.profiler.experimental.server.start(port)` in a job answers here.

In: an address and what to collect.  Out: the bytes of an XSpace, or what went wrong as a `grpc.RpcError`.

The service is asked directly, not through `tf.profiler.experimental.client.trace`: this needs no TensorFlow where the
command runs (grpcio is enough and loads in a tenth of a second), tells why a call failed, can be cancelled, hands on the
tracer levels (TF 2.21's client drops them: "expects an i value"), and lets the server send the profile instead of writing it
to a disk that both machines must see. JAX's `start_server` and TensorFlow
Serving offer the same service.

Messages and numbers: `tsl/profiler/protobuf/profiler_service.proto` and `profiler_options.proto`, as TF 2.21 has them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

_METHOD = "/tensorflow.ProfilerService/Profile"
_PACKAGE = "tfdata_advisor.profiler_service"
_OPTIONS_VERSION = 1
"""`ProfileOptions.version` from which a level of 0 means off; at 0 the server takes its own defaults."""
_CONNECT_MS = 5_000
"""gRPC's own limit for one attempt to connect is 20 s: too long to wait for a firewall that answers nothing."""
_FIELDS = {
    "Options": (
        ("include_dataset_ops", 1, "bool"),
        ("host_tracer_level", 2, "uint32"),
        ("device_tracer_level", 3, "uint32"),
        ("python_tracer_level", 4, "uint32"),
        ("version", 5, "uint32"),
        ("enable_hlo_proto", 7, "bool"),
        ("duration_ms", 9, "uint64"),
    ),
    "Request": (
        ("duration_ms", 1, "uint64"),
        ("opts", 4, "Options"),
        ("repository_root", 5, "string"),
        ("session_id", 6, "string"),
        ("host_name", 7, "string"),
        ("emit_xspace", 9, "bool"),
    ),
    "Response": (("empty_trace", 7, "bool"), ("xspace", 8, "bytes")),  # an XSpace, kept as it came
}
"""The fields that are used: (name, number, type)."""


@dataclass(frozen=True, slots=True)
class TracerLevels:
    """How much is traced. Fields as in `tf.profiler.experimental.ProfilerOptions`."""

    host: int = 2
    """1: the most important events, tf.data's iterators not among them; 2: all that the analysis needs; 3: everything."""
    python: int = 0
    """1: Python calls too; slows the job down much."""
    device: int = 1
    """0: no device activity."""


@dataclass(frozen=True, slots=True)
class Wish:
    """One collection, the same for every worker."""

    duration_ms: int
    levels: TracerLevels
    session: str
    """Name of the run's folder: `2026_01_31_12_00_00`."""
    repository: str
    """Absolute `plugins/profile` folder, where servers that cannot send the profile write it (see `Answer.xspace`)."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server gave."""

    is_empty: bool
    """No event was collected."""
    xspace: bytes
    """Empty from servers older than `emit_xspace`, which write `<repository>/<session>/<host>_<port>.xplane.pb` themselves."""


class Worker:
    """A connection to one profiler server."""

    def __init__(self, address: str) -> None:
        """`address`: `host:port`. Nothing is sent yet."""
        import grpc

        self.address = address
        self._channel = grpc.insecure_channel(
            address,
            options=[("grpc.max_receive_message_length", -1), ("grpc.min_reconnect_backoff_ms", _CONNECT_MS)],
        )
        self._profile = self._channel.unary_unary(
            _METHOD,
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=_message("Response").FromString,
        )

    def ask(self, wish: Wish, timeout_s: float) -> Any:  # noqa: ANN401  grpc has no types
        """Begin a collection. Returns a `grpc.Future` of a response for `read_answer`; cancelling it ends the session there."""
        options = _message("Options")(
            version=_OPTIONS_VERSION,
            include_dataset_ops=True,
            enable_hlo_proto=True,
            host_tracer_level=wish.levels.host,
            python_tracer_level=wish.levels.python,
            device_tracer_level=wish.levels.device,
            duration_ms=wish.duration_ms,
        )
        request = _message("Request")(
            duration_ms=wish.duration_ms,
            opts=options,
            repository_root=wish.repository,
            session_id=wish.session,
            host_name=self.address,
            emit_xspace=True,
        )
        return self._profile.future(request, timeout=timeout_s)

    def close(self) -> None:
        """Give the connection up."""
        self._channel.close()


def read_answer(response: Any) -> Answer:  # noqa: ANN401
    """The response of a finished call."""
    return Answer(bool(response.empty_trace), bytes(response.xspace))


@cache
def _message(name: str) -> Any:  # noqa: ANN401  protobuf's classes exist at run time only
    from google.protobuf import message_factory

    return message_factory.GetMessageClass(_pool().FindMessageTypeByName(f"{_PACKAGE}.{name}"))


@cache
def _pool() -> Any:  # noqa: ANN401
    from google.protobuf import descriptor_pb2, descriptor_pool

    field = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name=f"{_PACKAGE}.proto", package=_PACKAGE, syntax="proto3")
    for message_name, fields in _FIELDS.items():
        message = file.message_type.add(name=message_name)
        for name, number, kind in fields:
            added = message.field.add(name=name, number=number, label=field.LABEL_OPTIONAL)
            if kind in _FIELDS:
                added.type, added.type_name = field.TYPE_MESSAGE, f".{_PACKAGE}.{kind}"
            else:
                added.type = field.Type.Value(f"TYPE_{kind.upper()}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return pool
