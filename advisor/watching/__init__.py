"""Watching from inside a program: `advisor.watch` for loops, `advisor.AdvisorCallback` for Keras.

In: a program's own training.  Out: a run folder and a `Report`; the training runs on, whatever happens here.

Importing changes nothing. The hooks are in place while a watch is under way, and between `advisor.install()` and
`advisor.uninstall()`. Datasets that were made without them have no lines in the report.
"""

from advisor.watching.keras_callback import AdvisorCallback
from advisor.watching.watched_block import Watch, watch

__all__ = ["AdvisorCallback", "Watch", "watch"]
