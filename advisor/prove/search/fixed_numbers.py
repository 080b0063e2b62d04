"""Among equals, the cheapest: whether small fixed numbers would do as well as `tf.data.AUTOTUNE` in the changes of a proof.

In: the loop's result, the held script, the length of a training step.  Out: the result with what was compared (`FixedNumbers`);
the numbers replace AUTOTUNE only if they are as fast and save much memory.

AUTOTUNE adapts to another machine, and its threads cost nothing while they wait, so fewer threads alone are no reason to give it
up. How many calls in parallel are enough depends on how fast the training takes the elements. So both variants feed imagined
steps as long as those of the training without their wait.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Protocol

from advisor.capture.request import RESULT, Progress
from advisor.host.calibration.proof import NUMBERS_RESERVE, NUMBERS_S, WORTHWHILE
from advisor.model.calls import Call
from advisor.model.edits import Code, Edit, InsertAfter, SetArgument, Value
from advisor.model.errors import AdvisorError
from advisor.model.finding import Finding
from advisor.model.proof_result import FixedNumbers
from advisor.model.termination import is_interrupt
from advisor.model.text import message_of
from advisor.model.units import NS_PER_S
from advisor.prove.search.loop_result import Attempt, LoopInterrupted, LoopResult, edits_of, interrupted
from advisor.prove.search.script_proof import needs_script, only_overlaps
from advisor.prove.trial.messages import NumbersCompared

_AUTOTUNE = Code("tf.data.AUTOTUNE")
_PARALLEL = frozenset({"map", "batch", "padded_batch", "ragged_batch"})
"""Methods whose number of parallel calls may be any number; that of `interleave` depends on its `cycle_length`."""
_LEAST_CALLS = 2
_BUFFER = 1


class Session(Protocol):
    """The part of `advisor.prove.session.proof_session.ProofSession` used here."""

    def compare_numbers(
        self, edits: tuple[Edit, ...], numbered: tuple[Edit, ...], step_ns: int, seconds: float
    ) -> NumbersCompared:
        """Compare the pipeline with AUTOTUNE and the one with numbers, both feeding imagined steps.

        Args:
            edits: All edits, with AUTOTUNE.
            numbered: The same edits with numbers.
            step_ns: Length of an imagined step in nanoseconds.
            seconds: Seconds for the whole comparison.
        """
        ...


def with_cheapest(
    session: Session,
    loop: LoopResult,
    calls: Mapping[str, Call],
    step_ns: float,
    cores: float,
    deadline: float,
    on_progress: Callable[[Progress], None],
    clock: Callable[[], float] = time.monotonic,
) -> LoopResult:
    """Compare AUTOTUNE with fixed numbers, once for all changes that will be proved on the whole script.

    Args:
        session: The held script.
        loop: The result of the loop.
        calls: The recorded calls by id.
        step_ns: Length of a training step without its wait for input; 0 if unknown, and then nothing is compared.
        cores: Number of cores.
        deadline: A time of `clock`.
        on_progress: Called with progress messages.
        clock: Source of the time in seconds.

    Raises:
        LoopInterrupted: Ctrl-C.
    """
    methods = {call.id: call.method for call in calls.values()}
    chosen = [attempt for attempt in loop.attempts if attempt.is_kept or _is_left_to_script(attempt, methods)]
    parallel = enough_calls(_rate_of(loop), step_ns, cores)
    numbered = {id(choice.finding): with_numbers(choice.finding, calls, parallel) for choice in chosen}
    changed = [choice for choice in chosen if numbered[id(choice.finding)] is not choice.finding]
    is_too_long = 10 * step_ns > NUMBERS_S.value * NS_PER_S
    if not step_ns or is_too_long or not changed or clock() + NUMBERS_S.value >= deadline:
        return loop
    on_progress(Progress("proving", text="fixed numbers instead of AUTOTUNE"))
    began = clock()
    try:
        before = edits_of([choice.finding for choice in chosen], calls)
        after = edits_of([numbered[id(choice.finding)] for choice in chosen], calls)
        if any(isinstance(edit, InsertAfter) and edit.method in ("cache", "snapshot") for edit in before):
            return loop  # it would be filled twice, and an epoch that reads it hardly needs the calls before it
        compared = session.compare_numbers(before, after, round(step_ns), NUMBERS_S.value)
    except (AdvisorError, ValueError) as error:
        on_progress(Progress(RESULT, text=f"Fixed numbers were not compared with AUTOTUNE: {message_of(error)}."))
        return loop
    except KeyboardInterrupt as error:
        if not is_interrupt(error):
            raise
        raise LoopInterrupted(interrupted(loop, "before fixed numbers were compared with AUTOTUNE")) from error
    is_as_fast = compared.speed is not None and compared.speed.low >= 1 / WORTHWHILE.value
    result = FixedNumbers(
        parallel_calls=parallel if _sets(after, "num_parallel_calls", before) else None,
        buffer_size=_BUFFER if any(_is_prefetch(edit) for edit in before) else None,
        step_ns=round(step_ns),
        autotune_bytes=compared.autotune_bytes,
        fixed_bytes=compared.fixed_bytes,
        peak_bytes=compared.peak_bytes,
        speed=None if compared.speed is None else (compared.speed.value, compared.speed.low, compared.speed.high),
        is_chosen=compared.is_material and is_as_fast,
        seconds=clock() - began,
        autotune_calls=math.floor(cores) if cores >= 1 else None,
    )
    on_progress(Progress(RESULT, text=result.sentence))
    loop = replace(loop, fixed_numbers=result)
    return _with_findings(loop, numbered) if result.is_chosen else loop


def enough_calls(rate: float | None, step_ns: float, cores: float) -> int | None:
    """Return how many parallel calls feed the training, with a reserve; None if they are as many as there are cores, or unknown.

    Args:
        rate: Elements per second of the pipeline alone, whose AUTOTUNE may use one thread per core; None if unknown.
        step_ns: Length of a training step without its wait.
        cores: Number of cores.
    """
    if not rate or not step_ns:
        return None
    needed = max(_LEAST_CALLS, math.ceil(NUMBERS_RESERVE.value * cores * NS_PER_S / (rate * step_ns)))
    return needed if needed < math.floor(cores) else None


def with_numbers(finding: Finding, calls: Mapping[str, Call], parallel: int | None) -> Finding:
    """Return the finding with numbers for AUTOTUNE in its fix; the same object if there is nothing to replace.

    Args:
        finding: The finding.
        calls: The recorded calls by id.
        parallel: Number of parallel calls; None: that of AUTOTUNE.
    """
    if finding.fix is None:
        return finding
    edits = tuple(_numbered(edit, calls, parallel) for edit in finding.fix.edits)
    if edits == finding.fix.edits:
        return finding
    return replace(finding, fix=replace(finding.fix, edits=edits), proposed=finding.fix)


def _numbered(edit: Edit, calls: Mapping[str, Call], parallel: int | None) -> Edit:
    call = calls.get(edit.call_id)
    if _is_prefetch(edit):
        assert isinstance(edit, InsertAfter)
        return replace(edit, arguments=tuple((name, _of(value, _BUFFER)) for name, value in edit.arguments))
    is_free = call is not None and call.method in _PARALLEL and call.nested_in is None
    if isinstance(edit, SetArgument) and edit.name == "num_parallel_calls" and is_free and parallel is not None:
        return replace(edit, value=_of(edit.value, parallel))
    return edit


def _of(value: Value, number: int) -> Value:
    return number if value == _AUTOTUNE else value


def _is_prefetch(edit: Edit) -> bool:
    return (
        isinstance(edit, InsertAfter)
        and edit.method == "prefetch"
        and any(value == _AUTOTUNE for _, value in edit.arguments)
    )


def _sets(edits: tuple[Edit, ...], name: str, before: tuple[Edit, ...]) -> bool:
    return any(isinstance(edit, SetArgument) and edit.name == name and edit not in before for edit in edits)


def _is_left_to_script(attempt: Attempt, methods: Mapping[str, str]) -> bool:
    """Whether the whole script will measure the change, which overlaps the pipeline with the training."""
    fix = attempt.finding.fix
    return fix is not None and only_overlaps(fix) and needs_script(attempt, methods)


def _rate_of(loop: LoopResult) -> float | None:
    """Elements per second of the pipeline alone with all changes: of the latest trial that was kept, or that was measured."""
    if loop.total is not None and loop.total.rate_after:
        return loop.total.rate_after
    measured = [attempt for attempt in reversed(loop.attempts) if attempt.trial.rate_after]
    chosen = next((attempt for attempt in measured if attempt.is_kept), next(iter(measured), None))
    return None if chosen is None else chosen.trial.rate_after


def _with_findings(loop: LoopResult, numbered: Mapping[int, Finding]) -> LoopResult:
    def new(finding: Finding) -> Finding:
        return numbered.get(id(finding), finding)

    attempts = tuple(replace(attempt, finding=new(attempt.finding)) for attempt in loop.attempts)
    return replace(loop, attempts=attempts, kept=tuple(map(new, loop.kept)))
