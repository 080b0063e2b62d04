"""Imports the new functions of another file beside the function that is imported from it already.

In: `Source` and the name of the imported function.  Out: the splice: `from data import decode` gets `, decode_batch`.
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from advisor.rewrite.cannot_rewrite import CannotRewriteError
from advisor.rewrite.splices import Splice
from advisor.rewrite.syntax import Source, find_all


def import_beside(source: Source, beside: str, names: Sequence[str]) -> Splice:
    """Import names from the file that a name is imported from.

    Args:
        source: The text.
        beside: The imported name, as the text uses it.
        names: What else is imported.

    Raises:
        CannotRewriteError: The text does not import the name, or does so more than once.
    """
    found = [
        alias
        for statement in find_all(source.module, cst.ImportFrom)
        if not isinstance(statement.names, cst.ImportStar)
        for alias in statement.names
        if (alias.evaluated_alias or alias.evaluated_name) == beside
    ]
    if len(found) != 1:
        raise CannotRewriteError(f"The import of {beside} is not plain.")
    last = found[0].asname.name if found[0].asname is not None else found[0].name
    end = source.span(last)[1]
    return Splice(end, end, "".join(f", {name}" for name in names))
