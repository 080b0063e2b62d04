"""Explains why no profile could be collected from a profiler server, and what to do about it.

In: an address and gRPC's error.  Out: a `NoProfile`.

It recognizes the error messages of gRPC 1.85 and of TensorFlow 2.21's profiler. Other messages are shown unchanged.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from advisor.model.text import one_line, printable

_PROXIES = ("grpc_proxy", "https_proxy", "http_proxy")
"""Environment variables with which gRPC chooses a proxy, in order of precedence."""
_MOST_SHOWN = 200


@dataclass(frozen=True, slots=True)
class NoProfile:
    """Why there is no profile of a worker."""

    sentence: str
    is_final: bool = False
    """Whether another attempt would fail, too."""


def explain_failure(address: str, error: Any, limit_s: float) -> NoProfile:  # noqa: ANN401  grpc has no types
    """Explain an error of gRPC.

    Args:
        address: `host:port` of the server.
        error: The `grpc.RpcError`.
        limit_s: Time limit of the call.
    """
    code, details = error.code().name, one_line(error.details() or "")
    port = address.rpartition(":")[2]
    if code == "UNAVAILABLE":
        return _unavailable(address, port, details)
    if code == "UNIMPLEMENTED":
        return _no_profiler(address)
    if code == "DEADLINE_EXCEEDED":
        return NoProfile(
            f"The job at {address} did not send its profile within {limit_s:g} s; collect less, with a shorter --duration "
            "and without tracing Python calls.",
            is_final=True,
        )
    if "nother profil" in details:
        return NoProfile(
            f"The job at {address} is being profiled already (by its own TensorBoard callback or "
            "tf.profiler.experimental.start, or by another capture), and TensorFlow supports only one profiler session; "
            "capture again after that session has ended."
        )
    return NoProfile(f"The job at {address} could not be profiled ({_shown(details) or code}).")


def explain_nothing_collected(address: str, attempts: int) -> NoProfile:
    """Explain that the server returned a profile without events.

    Args:
        address: `host:port` of the server.
        attempts: Number of attempts so far.
    """
    times = "1 attempt" if attempts == 1 else f"{attempts} attempts"
    return NoProfile(
        f"The profile of the job at {address} has no events ({times}); capture while the job trains and not while it loads "
        "or waits, or increase --duration."
    )


def explain_unseen_file(address: str, folder: Path) -> NoProfile:
    """Explain that an old server wrote the profile to a folder that this machine cannot access.

    Args:
        address: `host:port` of the server.
        folder: The folder.
    """
    return NoProfile(
        f"The TensorFlow version of the job at {address} cannot send its profile; it wrote the profile to {folder} on the "
        "job's machine. Specify a folder that both machines can access with --out, or copy the profile from there and run "
        "advisor analyze on it.",
        is_final=True,
    )


def _unavailable(address: str, port: str, details: str) -> NoProfile:
    text = details.lower()
    if "hostname lookup" in text or "name not found" in text or "resolv" in text or "dns" in text:
        return NoProfile(
            f"The host name {address.rpartition(':')[0]} cannot be resolved on this machine; check the address.", True
        )
    if "http/2" in text and "parsing" in text:
        return _no_profiler(address)
    if "failed to connect" not in text:
        return NoProfile(
            f"The job at {address} ended, or the connection broke, while it was being profiled; capture earlier or with a "
            "shorter --duration."
        )
    if "refused" in text:
        return NoProfile(
            f"No profiler server listens at {address}; the job must call tf.profiler.experimental.server.start({port}) "
            "before it trains, and must be running during the capture."
        )
    return NoProfile(
        f"No response from {address} ({_reason(details)}): the host is down, a firewall drops the connection or the port "
        f"is not published. Open the port, or use a tunnel (ssh -L {port}:localhost:{port} HOST).{_proxy_hint()}"
    )


def _no_profiler(address: str) -> NoProfile:
    return NoProfile(
        f"The server at {address} is not a profiler server; specify the port given to tf.profiler.experimental.server.start, "
        "not that of TensorBoard or of the training cluster.",
        is_final=True,
    )


def _reason(details: str) -> str:
    """Return the last part of gRPC's chain of causes."""
    return _shown(details.rpartition(": ")[2] or details)


def _shown(details: str) -> str:
    text = printable(details).rstrip(". ")
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."


def _proxy_hint() -> str:
    name = next((name for name in _PROXIES if os.environ.get(name)), None)
    return f" gRPC uses the proxy set in {name}; add the host to no_proxy." if name else ""
