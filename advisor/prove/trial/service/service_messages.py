"""The messages by which the held script's process is asked to run its pipeline through tf.data service.

In: nothing.  Out: `MeasureService`, answered with `ServiceMeasured`; `TryService`, answered with `ServiceTried`.
"""

from __future__ import annotations

from typing import Any

import msgspec

from advisor.model.offload_result import ServedMeasurement, ServiceMeasurement


class MeasureService(msgspec.Struct, frozen=True, tag=True):
    """Run the pipeline up to a call through worker processes and measure it; answered with `ServiceMeasured`."""

    after_id: str
    """The call, as the first run recorded it."""
    edits: list[dict[str, Any]]
    """Edits of calls before it, see `advisor.prove.trial.messages.edits_to_json`."""
    policy: str
    """`dynamic` or `off`."""
    server: str
    """The text of server.py."""


class ServiceMeasured(msgspec.Struct, frozen=True, tag=True):
    """The answer to `MeasureService`."""

    measurement: ServiceMeasurement


class TryService(msgspec.Struct, frozen=True, tag=True):
    """Read the pipeline up to a call through a service that runs elsewhere; answered with `ServiceTried`."""

    after_id: str
    """The call, as the first run recorded it."""
    edits: list[dict[str, Any]]
    """As in `MeasureService`."""
    policy: str
    """`dynamic` or `off`."""
    address: str
    """Its dispatcher, `grpc://HOST:PORT`."""


class ServiceTried(msgspec.Struct, frozen=True, tag=True):
    """The answer to `TryService`."""

    measurement: ServedMeasurement
    notes: tuple[str, ...] = ()
    """Sentences for the user."""


ServiceRequest = MeasureService | TryService
