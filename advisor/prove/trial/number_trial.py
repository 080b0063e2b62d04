"""Compares a pipeline with AUTOTUNE and the same one with fixed numbers, in the script's process, both feeding imagined steps.

In: how to make the datasets, the length of a step.  Out: `NumbersCompared`.

The memory of both is measured while they reach their steady state, one beside the other, so that neither uses what the other
has released. The one with numbers comes first: what only the first one takes, such as the stacks of new threads, then counts
against the numbers. Their speed is measured only if they save much memory.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from advisor.host.calibration.proof import MATERIAL_BYTES, MATERIAL_SHARE, NUMBERS_TURNS
from advisor.model.edits import Edit
from advisor.prove.trial.ab_benchmark import measure
from advisor.prove.trial.ab_side import CannotMeasure, Plan, Side
from advisor.prove.trial.messages import NumbersCompared
from advisor.prove.trial.peak_memory import PeakMemory


def compare_numbers(
    dataset_of: Callable[[tuple[Edit, ...]], Any],
    edits: tuple[Edit, ...],
    numbered: tuple[Edit, ...],
    step_s: float,
    seconds: float,
    report: Callable[[str, int, int | None], None],
    start_bytes: int = 0,
) -> NumbersCompared:
    """Compare memory and, if much of it is saved, speed.

    Args:
        dataset_of: Returns the dataset with edits.
        edits: All edits, with AUTOTUNE.
        numbered: The same edits with numbers.
        step_s: Wait after each element, in place of a training step.
        seconds: Time for all of it.
        report: Receives the progress.
        start_bytes: Resident memory of the process before any pipeline ran in it; 0: none has run.

    Raises:
        CannotMeasure: One of them fails, or the memory or the speed could not be measured.
    """
    deadline = time.monotonic() + seconds
    plan = Plan(max_turns=NUMBERS_TURNS.value)
    sides: list[Side] = []
    taken: list[int] = []
    try:
        for name, its_edits in (("with fixed numbers", numbered), ("with AUTOTUNE", edits)):
            with PeakMemory() as memory:
                sides.append(Side(name, dataset_of(its_edits), [], plan, step_s=step_s))
                sides[-1].prepare(lambda: report("warming up", len(sides), 2))
            if memory.grown_bytes is None:
                raise CannotMeasure("the memory of the process is unknown")
            start_bytes = start_bytes or memory.start_bytes
            taken.append(memory.grown_bytes)
        fixed, tuned = taken
        peak = start_bytes + tuned
        is_material = tuned - fixed >= max(MATERIAL_BYTES.value, MATERIAL_SHARE.value * peak)
        speed = None
        if is_material:
            left_s = max(0.0, deadline - time.monotonic())
            plan = replace(plan, budget_s=left_s, longest_s=left_s)
            speed = measure(sides[1], sides[0], plan, lambda done, of: report("measuring", done, of)).speedup
            if speed is None:
                raise CannotMeasure("there was too little time to compare them")
    finally:
        for side in sides:
            side.close()
    return NumbersCompared(tuned, fixed, peak, is_material, speed)
