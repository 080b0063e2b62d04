"""The messages by which the held script's process is asked to run its pipeline through tf.data service.

In: nothing.  Out: `MeasureService`, answered with `ServiceMeasured`.
"""

from __future__ import annotations

from typing import Any

import msgspec

from advisor.model.offload import ServiceMeasurement


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
