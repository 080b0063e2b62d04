"""Why a profiler server gave no profile, in one sentence that says what to do.

In: an address and gRPC's error.  Out: a `Refusal`.

The texts that are looked for are those of gRPC 1.85 and of TensorFlow 2.21's profiler; one that is not known is shown as it is.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_PROXIES = ("grpc_proxy", "https_proxy", "http_proxy")
"""The variables that gRPC heeds, in its order."""
_MOST_SHOWN = 200


@dataclass(frozen=True, slots=True)
class Refusal:
    """No profile from one worker."""

    sentence: str
    is_final: bool = False
    """Another attempt would end the same way."""


def explain_failure(address: str, error: Any, limit_s: float) -> Refusal:  # noqa: ANN401  grpc has no types
    """What gRPC's error means to somebody who wants a profile. `limit_s`: how long was waited at most."""
    code, details = error.code().name, " ".join((error.details() or "").split())
    port = address.rpartition(":")[2]
    if code == "UNAVAILABLE":
        return _unavailable(address, port, details)
    if code == "UNIMPLEMENTED":
        return _no_profiler(address)
    if code == "DEADLINE_EXCEEDED":
        return Refusal(
            f"The job at {address} had not handed over its profile after {limit_s:g} s: collect less, with a shorter "
            "--duration and without Python's calls.",
            is_final=True,
        )
    if "nother profil" in details:
        return Refusal(
            f"The job at {address} is being profiled already (by its own TensorBoard callback or "
            "tf.profiler.experimental.start, or by another capture), and TensorFlow has only one profiler: capture again "
            "when that has ended."
        )
    return Refusal(f"The job at {address} could not be profiled ({_shown(details) or code}).")


def explain_nothing_collected(address: str, attempts: int) -> Refusal:
    """The server answered, and no event had happened."""
    times = "1 attempt" if attempts == 1 else f"{attempts} attempts"
    return Refusal(
        f"The job at {address} did nothing that the profiler could see ({times}): capture while it trains, not while it "
        "loads, waits or has ended, or longer (--duration)."
    )


def explain_unseen_file(address: str, folder: Path) -> Refusal:
    """An old server wrote the profile itself, and it is not here."""
    return Refusal(
        f"The job at {address} runs a TensorFlow that cannot send its profile and wrote it to {folder} on its own machine: "
        "name a folder that both machines see with --out, or copy it from there and run advisor analyze on it.",
        is_final=True,
    )


def _unavailable(address: str, port: str, details: str) -> Refusal:
    text = details.lower()
    if "hostname lookup" in text or "name not found" in text or "resolv" in text or "dns" in text:
        return Refusal(
            f"There is no host {address.rpartition(':')[0]} for this machine: check the name in the address.", True
        )
    if "http/2" in text and "parsing" in text:
        return _no_profiler(address)
    if "failed to connect" not in text:
        return Refusal(
            f"The job at {address} ended, or the connection broke, while it was being profiled: capture earlier, or "
            "shorter (--duration)."
        )
    if "refused" in text:
        return Refusal(
            f"No profiler server listens at {address}: the job has to call tf.profiler.experimental.server.start({port}) "
            "before it trains, and to run while it is captured."
        )
    return Refusal(
        f"Nothing answers at {address} ({_reason(details)}): the host is down, a firewall drops the connection or the port "
        f"is not published; open it, or tunnel it (ssh -L {port}:localhost:{port} HOST).{_proxy_hint()}"
    )


def _no_profiler(address: str) -> Refusal:
    return Refusal(
        f"What listens at {address} is no profiler server: give the port of tf.profiler.experimental.server.start, not that "
        "of TensorBoard or of the training cluster.",
        is_final=True,
    )


def _reason(details: str) -> str:
    """The last part of gRPC's chain of causes."""
    return _shown(details.rpartition(": ")[2] or details)


def _shown(details: str) -> str:
    text = "".join(letter if letter.isprintable() else " " for letter in details).rstrip(". ")
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."


def _proxy_hint() -> str:
    name = next((name for name in _PROXIES if os.environ.get(name)), None)
    return f" gRPC goes through the proxy in {name}: put the host into no_proxy." if name else ""
