"""The form of a constant that was fitted or guessed: its value, unit and origin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")

TWO_CORES = "virtual machine with 2 cores, TensorFlow 2.21.0, processor not recorded"
"""The kind of machine that all figures of this project come from. Nothing is known about machines with many cores."""
CHOSEN = "no machine"
"""For values that were chosen instead of measured."""
JUDGEMENT = "Chosen by judgement; no measurement is recorded."


@dataclass(frozen=True, slots=True)
class Constant(Generic[T]):
    """One constant with its origin."""

    value: T
    unit: str
    """`ns`, `s`, `bytes/ns`, `share`, `ratio`, `steps`, `elements`, ..."""
    how: str = JUDGEMENT
    """How the value was obtained: the measurement, or the reason for a choice."""
    machine: str = CHOSEN
    """Where it was measured."""
