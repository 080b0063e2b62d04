"""Whether padding to the longest row of a batch, with zeros and empty texts, is what a `padded_batch` does.

In: a `map` and the `padded_batch` after it.  Out: a reason against it.
"""

from __future__ import annotations

from advisor.model.calls import Call
from advisor.predict.batch_functions import shapes_of


def longest_row_obstacle(call: Call, batched: Call, padder: str) -> str:
    """Return why a `padded_batch` makes something else of the results of a `map`, as a clause; empty if it does not.

    Args:
        call: The `map`.
        batched: The `padded_batch`.
        padder: What would pad in its place (`a parser`).
    """
    results, batches = shapes_of(call.element_spec), shapes_of(batched.element_spec)
    where = f"padded_batch{f' at line {batched.site.line}' if batched.site is not None else ''}"
    if batched.arguments.get("padding_values") is not None:
        return f"{where} gets padding_values, and {padder} pads with zeros and empty texts"
    if not results or len(results) != len(batches):
        return "its results are not tensors"
    if any(rows[1:] != shape for shape, rows in zip(results, batches, strict=True)):
        return f"{where} pads to a fixed length, and {padder} pads to the longest row"
    if any(rows[0] != "None" for rows in batches):
        return f"{where} drops the remainder, and of batches that {padder} pads the number of rows is not known"
    return ""
