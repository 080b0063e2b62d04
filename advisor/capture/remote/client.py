"""gRPC client for TensorFlow's profiler server, which a job starts with `tf.profiler.experimental.server.start(port)`.

In: an address and what to collect.  Out: the bytes of an XSpace, or a `grpc.RpcError`.

The client does not use `tf.profiler.experimental.client.trace`, for these reasons: it needs grpcio, which loads in a tenth of a
second, but not TensorFlow; it reports why a call failed; a call can be cancelled; the tracer levels are transmitted (the client
of TF 2.21 drops them: "expects an i value"); and the server sends the profile instead of writing it to a disk that both machines
can access. JAX's `start_server` and TensorFlow Serving offer the same service.

Source of messages and field numbers: `tsl/profiler/protobuf/profiler_service.proto` and `profiler_options.proto` of TF 2.21.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from advisor.capture.remote.wire_messages import Fields, message_classes

_METHOD = "/tensorflow.ProfilerService/Profile"
_PACKAGE = "tfdata_advisor.profiler_service"
_OPTIONS_VERSION = 1
"""`ProfileOptions.version`. From version 1 on a level of 0 means off; with version 0 the server uses its own defaults."""
_CONNECT_MS = 5_000
"""Limit for one attempt to connect. gRPC's default of 20 s is too long if a firewall drops the packets."""
_FIELDS: Fields = {
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
    "Response": (("empty_trace", 7, "bool"), ("xspace", 8, "bytes")),  # a serialized XSpace, not decoded here
}
"""The fields that are used: (name, number, type)."""


@dataclass(frozen=True, slots=True)
class TracerLevels:
    """How much is traced. The fields correspond to `tf.profiler.experimental.ProfilerOptions`."""

    host: int = 2
    """1: the most important events, without tf.data's iterators; 2: everything that the analysis needs; 3: all events."""
    python: int = 0
    """1: trace Python calls, which slows the job down considerably."""
    device: int = 1
    """0: no device activity."""


@dataclass(frozen=True, slots=True)
class ProfileRequest:
    """A request for a profile, the same for each worker."""

    duration_ms: int
    levels: TracerLevels
    session: str
    """Name of the run's folder, e.g. `2026_01_31_12_00_00`."""
    repository: str
    """Absolute path of the `plugins/profile` folder, for servers that cannot send the profile (see `ProfileResponse.xspace`)."""


@dataclass(frozen=True, slots=True)
class ProfileResponse:
    """The response of a server."""

    is_empty: bool
    """Whether no events were collected."""
    xspace: bytes
    """The profile. It is empty if the server is too old to support `emit_xspace`; such a server writes
    `<repository>/<session>/<host>_<port>.xplane.pb` itself."""


class Worker:
    """A connection to one profiler server."""

    def __init__(self, address: str) -> None:
        """Create a connection without sending anything.

        Args:
            address: `host:port`.
        """
        import grpc

        self.address = address
        self._channel = grpc.insecure_channel(
            address,
            options=[("grpc.max_receive_message_length", -1), ("grpc.min_reconnect_backoff_ms", _CONNECT_MS)],
        )
        self._profile = self._channel.unary_unary(
            _METHOD,
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=_messages()["Response"].FromString,
        )

    def request_profile(self, wanted: ProfileRequest, timeout_s: float) -> Any:  # noqa: ANN401  grpc has no types
        """Start to collect a profile.

        Args:
            wanted: What to collect.
            timeout_s: Time limit for the whole call.

        Returns:
            A `grpc.Future` of a response for `read_response`. Cancelling it ends the profiler session in the job.
        """
        options = _messages()["Options"](
            version=_OPTIONS_VERSION,
            include_dataset_ops=True,
            enable_hlo_proto=True,
            host_tracer_level=wanted.levels.host,
            python_tracer_level=wanted.levels.python,
            device_tracer_level=wanted.levels.device,
            duration_ms=wanted.duration_ms,
        )
        request = _messages()["Request"](
            duration_ms=wanted.duration_ms,
            opts=options,
            repository_root=wanted.repository,
            session_id=wanted.session,
            host_name=self.address,
            emit_xspace=True,
        )
        return self._profile.future(request, timeout=timeout_s)

    def close(self) -> None:
        """Close the connection."""
        self._channel.close()


def read_response(response: Any) -> ProfileResponse:  # noqa: ANN401
    """Convert the response of a finished call."""
    return ProfileResponse(bool(response.empty_trace), bytes(response.xspace))


@cache
def _messages() -> Mapping[str, Any]:
    return message_classes(_PACKAGE, _FIELDS)
