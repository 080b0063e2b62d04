"""Makes one call of a replay, and turns its exception into `CannotReplay`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from advisor.model.errors import AdvisorError
from advisor.replay.edited import CannotReplay


def attempted(name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:  # noqa: ANN401
    """Return what the function returns.

    Args:
        name: Name of the call for error messages.
        function: A method of a dataset.
        args: Positional arguments.
        kwargs: Keyword arguments.

    Raises:
        CannotReplay: The function raised an exception; the message has its last line.
    """
    try:
        return function(*args, **kwargs)
    except AdvisorError:
        raise
    except Exception as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [""]
        text = lines[-1] if type(error).__name__ in lines[-1] else f"{type(error).__name__}: {lines[-1]}"
        raise CannotReplay(name, text[:300].rstrip(".")) from error  # the last line, where AutoGraph puts the error
