"""Functions of maps, as scripts have them, that decode or compute something and draw random numbers. Used by `splitting.py`.

In: nothing.  Out: `CASES`, to which each module adds its own.
"""

from splitting_functions import control_flow, forms, names, statements  # noqa: F401
from splitting_functions.common import ADDED, Case

KINDS = (
    "statements", "nested calls", "names", "control flow", "decorators", "random state", "state", "Python values", "form",
)  # fmt: skip
CASES: list[Case] = sorted(ADDED, key=lambda case: KINDS.index(case[0]))
"""All cases, in the order of the kinds."""

__all__ = ["CASES"]
