"""Takes the text of a function apart: into a half that always computes the same and the rest, or into a function of batches.

In: the text of a file, the recorded call of a `map` and what TensorFlow traced of its function.  Out: the new functions, or the
line at which it would be cut and why it is not; or which parts of an element it reads. Nothing is executed.
"""

from advisor.splitting.batched_text import BatchText, batch_text
from advisor.splitting.cannot_split import CannotSplitError
from advisor.splitting.parameters_read import reads_alike
from advisor.splitting.parser_text import batched_parser
from advisor.splitting.rows_text import batched_rows
from advisor.splitting.split import Halves, split_function

__all__ = [
    "BatchText",
    "CannotSplitError",
    "Halves",
    "batch_text",
    "batched_parser",
    "batched_rows",
    "reads_alike",
    "split_function",
]
