"""Whether a function does the same in another place of its pipeline, where the elements have another form.

In: an `Analysis`, a recorded call and the calls that it moves before.  Out: yes or no.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from advisor.model.calls import Call
from advisor.model.pipeline import Analysis
from advisor.predict.splits import text_of, text_of_file
from advisor.predict.structure import linear_chain
from advisor.splitting import reads_alike


def is_retraced_alike(analysis: Analysis, call: Call, before: Sequence[Call]) -> bool:
    """Return whether the function of a call is known to be the same one before other calls as after them.

    TensorFlow traces it again, for elements that these calls have not changed. It is the same if all components have the same
    types and shapes there, or if the text of the function names only those that do.

    Args:
        analysis: The analysis.
        call: The call.
        before: The calls directly before it, nearest first; none of them changes what the function reads.
    """
    chain = linear_chain(analysis, call)
    if len(chain) <= len(before) + 1:
        return False
    specs = [other.element_spec for other in chain[1 : len(before) + 2]]
    if any(not spec or spec.endswith("…") for spec in specs):
        return False
    if len(set(specs)) == 1:
        return True
    text = text_of_file(analysis, call)
    return text is not None and reads_alike(text, call, specs[0], specs[-1], partial(text_of, analysis))
