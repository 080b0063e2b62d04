"""Cuts the text of a function in two: a first half that always computes the same, and the rest.

In: the text of a file, the recorded call of a `map` and what TensorFlow traced of its function.  Out: the two functions, or the
line at which it would be cut and why it is not. Nothing is executed.
"""

from advisor.splitting.cannot_split import CannotSplitError
from advisor.splitting.split import Halves, split_function

__all__ = ["CannotSplitError", "Halves", "split_function"]
