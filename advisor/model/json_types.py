"""Types of fields in report.json, for the JSON Schema that is generated from them; they are not checked when a report is made."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

Count = Annotated[int, Meta(ge=0)]
"""A number of things, a duration or a size."""
Positive = Annotated[int, Meta(ge=1)]
"""A whole number from 1, such as a line or a column."""
Amount = Annotated[float, Meta(ge=0)]
"""A rate, a duration or a ratio."""
Share = Annotated[float, Meta(ge=0, le=1)]
"""A part of a whole."""


def one_of(*values: str) -> Meta:
    """Annotate a text that is one of `values`."""
    return Meta(extra_json_schema={"enum": list(values)})
