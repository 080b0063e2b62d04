"""Sets an argument of a call in the text.

In: `Source`, a located call, a parameter's name and its new value as text.  Out: the splices.
"""

from __future__ import annotations

from collections.abc import Iterator

from advisor.model.call_parameters import POSITIONS
from advisor.rewrite.cannot_rewrite import CannotRewriteError
from advisor.rewrite.splices import Splice
from advisor.rewrite.syntax import NEWLINE, LocatedArgument, LocatedCall, Source


def set_argument(source: Source, call: LocatedCall, name: str, value: str) -> Iterator[Splice]:
    """Replace the argument, whether passed by position or name, or add it by name.

    Args:
        source: The parsed file.
        call: The call to change.
        name: Name of the parameter.
        value: The new value as source text.

    Raises:
        CannotRewriteError: The parameter is unknown, the call is inside a library, or arguments are hidden in `*` or `**`.
    """
    order = POSITIONS.get(call.method, ())
    if name not in order:
        raise CannotRewriteError(f"{call.method} has no known parameter {name}.")
    if call.form.is_library:
        raise CannotRewriteError(f"{call.method} is not called in this line but inside a library.")
    if any(argument.star for argument in call.arguments):
        raise CannotRewriteError(f"The arguments of {call.method} include * or **, which may contain {name}.")
    argument = find_argument(call, name)
    if argument is not None:
        yield Splice(argument.start, argument.end, value)
        return
    yield from add_argument(source, call, f"{name}={value}")


def set_keyword(source: Source, call: LocatedCall, name: str, value: str, positional: int) -> Iterator[Splice]:
    """Set an argument that is passed by name, of a call that is not one of a dataset.

    Args:
        source: The parsed file.
        call: The call to change.
        name: Name of the parameter.
        value: The new value as source text.
        positional: Number of arguments that may be passed by position, as the parameter follows them.

    Raises:
        CannotRewriteError: Arguments are hidden in `*` or `**`, or more are passed by position.
    """
    if any(argument.star for argument in call.arguments):
        raise CannotRewriteError(f"The arguments of {call.method} include * or **, which may contain {name}.")
    if sum(argument.keyword is None for argument in call.arguments) > positional:
        raise CannotRewriteError(f"{name} may be among the arguments of {call.method} that are passed by position.")
    present = next((argument for argument in call.arguments if argument.keyword == name), None)
    if present is not None:
        yield Splice(present.start, present.end, value)
    else:
        yield from add_argument(source, call, f"{name}={value}")


def find_argument(call: LocatedCall, name: str) -> LocatedArgument | None:
    """Return the argument of a call for a parameter, whether passed by position or name; None if it is not passed.

    Args:
        call: A located call of a tf.data method.
        name: Name of the parameter; its position is that in `POSITIONS`.
    """
    order = POSITIONS.get(call.method, ())
    for position, argument in enumerate(call.arguments):
        is_positional = (
            argument.keyword is None
            and not argument.star
            and position >= call.form.skip
            and order[position - call.form.skip :][:1] == (name,)
        )
        if argument.keyword == name or is_positional:
            return argument
    return None


def add_argument(source: Source, call: LocatedCall, text: str) -> Iterator[Splice]:
    """Add an argument after all others, in a line of its own if they have one each.

    Args:
        source: The parsed file.
        call: The call.
        text: The argument, as in `name=value`.
    """
    if not call.arguments:
        yield Splice(call.open_end, call.open_end, text)
        return
    last = call.arguments[-1]
    indent = source.line_before(last.start if last.keyword is None else last.start - len(last.keyword) - 1)
    has_own_line = not indent.strip() and NEWLINE.search(source.text, call.open_end, last.end) is not None
    if not has_own_line:
        yield Splice(last.end, last.end, f", {text}")
        return
    # One argument per line: the new one gets its own line, after a possible comment on the line of the last one.
    after = last.end if last.comma_end is None else last.comma_end
    rest = source.line_after(after)
    if last.comma_end is None:
        yield Splice(last.end, last.end, ",")
    place = after + len(rest.rstrip()) if rest.lstrip().startswith("#") else after
    yield Splice(place, place, f"{source.newline}{indent}{text}{',' if last.comma_end is not None else ''}")
