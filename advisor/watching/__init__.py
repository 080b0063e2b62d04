"""Watching from inside a program: `advisor.watch` for loops, `advisor.AdvisorCallback` for Keras.

In: a program's own training.  Out: a run folder and a `Report`; the training runs on, whatever happens here.

Importing this package (which `from advisor import watch` and `from advisor import AdvisorCallback` do) begins to record the
calls that make datasets. Datasets that were made before have no lines in the report.
"""

from advisor.capture.in_process import hooks, is_run_by_advisor
from advisor.watching.keras_callback import AdvisorCallback
from advisor.watching.watched_block import Watch, watch

__all__ = ["AdvisorCallback", "Watch", "watch"]

if not is_run_by_advisor():
    hooks()
