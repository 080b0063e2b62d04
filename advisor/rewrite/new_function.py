"""Writes another function in place of the one that a call takes.

In: `Source`, a located call and the text of the function.  Out: the splice.
"""

from __future__ import annotations

import re

from advisor.rewrite.arguments import find_argument
from advisor.rewrite.batch_function import NameOf
from advisor.rewrite.cannot_rewrite import CannotRewriteError
from advisor.rewrite.splices import Splice
from advisor.rewrite.syntax import LocatedCall, Source

_TENSORFLOW = re.compile(r"\btf(?:\.\w+)+")


def set_function(source: Source, call: LocatedCall, text: str, name_of: NameOf) -> Splice:
    """Replace the function of a call.

    Args:
        source: The text.
        call: The call.
        text: A lambda expression in which `tf` is TensorFlow.
        name_of: Returns a name of TensorFlow as the file writes it.

    Raises:
        CannotRewriteError: The function is not an argument of this call.
    """
    argument = find_argument(call, "map_func")
    if argument is None:
        raise CannotRewriteError(f"The function of {call.method} is not an argument in this line.")
    if "#" in source.text[argument.start : argument.end]:
        raise CannotRewriteError(f"The function of {call.method} contains a comment.")
    written = _TENSORFLOW.sub(lambda match: name_of(match.group(), call.node), text)
    return Splice(argument.start, argument.end, written)
