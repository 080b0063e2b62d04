"""Check the types of a finding at runtime. Rules are plug-ins, and Python does not enforce annotations.

In: an object yielded by a rule. Out: one sentence on what is wrong with it, or None.
"""

from __future__ import annotations

import math
from dataclasses import fields, is_dataclass
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from advisor.model.finding import Finding, Prediction, Rejected
from advisor.rule import Note


def finding_error(item: object) -> str | None:
    """One sentence on what is wrong with an object yielded by a rule; None if it is valid."""
    if isinstance(item, Note):
        return None if isinstance(item.text, str) else f"yielded a Note whose text is a {type(item.text).__name__}"
    if isinstance(item, Rejected):
        wrong = _wrong_field(item, "")
        return None if wrong is None else f"yielded a Rejected whose {wrong}"
    if not isinstance(item, Finding):
        return f"yielded a {type(item).__name__}, not a Finding or a Note"
    wrong = _wrong_field(item, "")
    if wrong is not None:
        return f"yielded a finding whose {wrong}"
    if item.prediction is not None and not _is_speedup(item.prediction):
        return "yielded a finding whose prediction is not a speedup: its numbers must be finite and above 0"
    return None


def _is_speedup(prediction: Prediction) -> bool:
    return all(math.isfinite(number) and number > 0 for number in (prediction.value, prediction.low, prediction.high))


def _wrong_field(value: Any, path: str) -> str | None:  # noqa: ANN401
    """The first field, including those of nested dataclasses, whose value does not match its declared type."""
    hints = get_type_hints(type(value))
    for field in fields(value):
        name = f"{path}{field.name}"
        wrong = _wrong(getattr(value, field.name), hints[field.name], name)
        if wrong is not None:
            return wrong
    return None


def _wrong(value: Any, hint: Any, name: str) -> str | None:  # noqa: ANN401
    if get_origin(hint) in (Union, UnionType):
        options = get_args(hint)
        fitting = [option for option in options if _is_instance(value, option)]
        return _wrong(value, fitting[0], name) if fitting else _mismatch(value, name, options)
    if not _is_instance(value, hint):
        return _mismatch(value, name, (hint,))
    if get_origin(hint) is tuple:
        arguments = get_args(hint)
        kinds = [arguments[0]] * len(value) if arguments[-1] is ... else list(arguments)
        if len(kinds) != len(value):
            return f"{name} has {len(value)} items, not {len(kinds)}"
        wrongs = (_wrong(item, kind, f"{name}[{n}]") for n, (item, kind) in enumerate(zip(value, kinds, strict=True)))
        return next((wrong for wrong in wrongs if wrong is not None), None)
    return _wrong_field(value, f"{name}.") if is_dataclass(value) else None


def _is_instance(value: object, hint: Any) -> bool:  # noqa: ANN401
    kind = get_origin(hint) or hint
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, kind)


def _mismatch(value: object, name: str, options: tuple[Any, ...]) -> str:
    wanted = " or ".join(
        "None" if option is type(None) else getattr(option, "__name__", str(option)) for option in options
    )
    return f"{name} is a {type(value).__name__}, not {wanted}"
