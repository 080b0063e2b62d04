"""Measures the script against the changed script in two live processes that take turns: one is stopped while the other is timed.

In: two `CaptureRequest`s, as for `advisor.prove.measure.end_to_end`.  Out: `EndToEnd`.

Each script starts once. The first pair are the windows of both processes, measured like those of fresh ones; each further pair
takes two turns and no start. The sequential test decides after the same numbers of pairs. A second pair of processes, started
in the other order, follows where the first leaves doubt (`advisor.prove.measure.turn_judgement`). Where turns may mislead, fresh
processes are measured instead, and `EndToEnd.how` gives the reason.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from advisor.capture.request import CaptureRequest, Progress, labelled
from advisor.host.calibration.proof import LEAST_FREE_SHARE, LIVE_MEMORY_RESERVE, MIN_RUN_STEPS, WORTHWHILE
from advisor.host.machine import memory_bytes
from advisor.model.errors import OutOfTime
from advisor.model.sequential_test import MAX_PAIRS, Decision, decide
from advisor.model.units import format_bytes
from advisor.prove.measure.end_to_end import OnProgress, measure_end_to_end
from advisor.prove.measure.end_to_end_result import EarlyRun, EndToEnd, judged_runs, out_of_time
from advisor.prove.measure.live_process import CannotTakeTurns, FirstWindow, LiveProcess, Side
from advisor.prove.measure.run_steps import RunSteps
from advisor.prove.measure.turn_judgement import TimedTurn, contradiction, drift_of, joint, leaves_doubt
from advisor.prove.trial.runs.turn_messages import TurnTaken

SIDES = ("before", "after")
MakeSide = Callable[[CaptureRequest, OnProgress], Side]
"""Prepares a side without starting it."""
Memory = Callable[[], tuple[int, int]]
"""Returns the usable memory and how much of it is free, in bytes."""
_TITLES = {"before": "unchanged", "after": "with the changes"}


@dataclass(frozen=True, slots=True)
class Rules:
    """When the sequential test stops; as for `decide`."""

    may_give_up: bool = True
    is_gain_only: bool = False


@dataclass(slots=True)
class Turns:
    """The turns of one pair of processes."""

    windows: dict[str, FirstWindow] = field(default_factory=dict)
    runs: dict[str, list[RunSteps]] = field(default_factory=lambda: {name: [] for name in SIDES})
    timed: dict[str, list[TimedTurn]] = field(default_factory=lambda: {name: [] for name in SIDES})

    @property
    def pairs(self) -> int:
        """Number of complete pairs."""
        return min(map(len, self.runs.values()))

    @property
    def ratios(self) -> list[float]:
        """Step time before / after of each complete pair."""
        return [b.step_ns / a.step_ns for b, a in zip(self.runs["before"], self.runs["after"], strict=False)]

    def add_window(self, name: str, window: FirstWindow) -> None:
        """Add the window of a process as its first turn."""
        self.windows[name] = window
        self.runs[name].append(window.steps)
        self.timed[name].append(TimedTurn(window.steps.step_ns))

    def add(self, name: str, taken: TurnTaken) -> None:
        """Add a later turn."""
        first = self.windows[name].steps
        share = None if first.wait_share is None else min(1.0, taken.wait_ns / taken.total_ns)
        step_ns = taken.total_ns / taken.steps
        self.runs[name].append(replace(first, step_ns=step_ns, wait_share=share, count=taken.steps))
        self.timed[name].append(TimedTurn(step_ns, taken.halves_ns))


class _NeedsFreshProcesses(Exception):
    """The text is the reason, as the end of a sentence."""

    def __init__(self, why: str, early: Mapping[str, EarlyRun] | None = None) -> None:
        super().__init__(why)
        self.early = early or {}
        """A run that was made alone, and can be that of the first pair."""


class _OutOfTime(Exception):
    """The deadline has come, or the next pair would end after it."""


def measure_live_pairs(
    before: CaptureRequest,
    after: CaptureRequest,
    on_progress: OnProgress,
    deadline: float | None = None,
    may_give_up: bool = True,
    is_gain_only: bool = False,
    make_side: MakeSide = LiveProcess,
    memory: Memory = memory_bytes,
) -> EndToEnd:
    """Compare the step times of both sides until the answer is clear.

    Args:
        before: How to run the unchanged script.
        after: How to run the changed script.
        on_progress: Called with progress messages.
        deadline: As for `measure_end_to_end`.
        may_give_up: As for `decide`.
        is_gain_only: As for `decide`.
        make_side: Prepares a process.
        memory: Tells the memory of this machine.

    Raises:
        ScriptFailed: The script fails without the change.
    """
    sides = {"before": replace(before, deadline=deadline), "after": replace(after, deadline=deadline)}
    measured = _LivePairs(sides, on_progress, deadline, Rules(may_give_up, is_gain_only), make_side, memory)
    try:
        why = _why_never(before, after)
        if why:
            raise _NeedsFreshProcesses(why)
        return measured.result()
    except _NeedsFreshProcesses as reason:
        fresh = measure_end_to_end(
            before,
            after,
            on_progress,
            deadline,
            may_give_up=may_give_up,
            is_gain_only=is_gain_only,
            early=reason.early,
        )
        starts = measured.starts + fresh.runs - len(reason.early)
        return replace(
            fresh, starts=starts, how=f"Fresh processes were measured instead of live ones that take turns: {reason}."
        )
    except (_OutOfTime, OutOfTime):
        turns = measured.pairs_of_processes[0]
        late = out_of_time(turns.runs, turns.pairs)
        return replace(late, is_live=True, starts=measured.starts, how=_how(measured.starts))


def _why_never(before: CaptureRequest, after: CaptureRequest) -> str:
    """Why no process is started to take turns, as the end of a sentence; empty if it may be."""
    if sys.platform != "linux":
        return "only on Linux the end of a stopped process is certain"
    if before.is_in_place or after.is_in_place:
        return "the scripts write to the real files, and would do so at the same time"
    return ""


class _LivePairs:
    """One measurement, with one or two pairs of processes."""

    def __init__(
        self,
        requests: Mapping[str, CaptureRequest],
        on_progress: OnProgress,
        deadline: float | None,
        rules: Rules,
        make_side: MakeSide,
        memory: Memory,
    ) -> None:
        self._requests, self._on_progress, self._deadline = requests, on_progress, deadline
        self._rules, self._make_side, self._memory = rules, make_side, memory
        self.pairs_of_processes: list[Turns] = [Turns()]
        self.starts = 0

    def result(self) -> EndToEnd:
        """Measure, and return the result."""
        decision = first = self._decide(SIDES, self._rules)
        if leaves_doubt(first):
            self.pairs_of_processes.append(Turns())
            second = self._decide(SIDES[::-1], replace(self._rules, may_give_up=False))  # its turns are cheap
            why = contradiction(first, second)
            if why:
                raise _NeedsFreshProcesses(why)
            decision = joint(first, second, [ratio for turns in self.pairs_of_processes for ratio in turns.ratios])
        runs = {name: [run for turns in self.pairs_of_processes for run in turns.runs[name]] for name in SIDES}
        comparison = judged_runs(runs, decision.speedup)
        return replace(
            comparison, ended_because=decision.reason, is_live=True, starts=self.starts, how=_how(self.starts)
        )

    def _decide(self, order: tuple[str, ...], rules: Rules) -> Decision:
        """Start a pair of processes, and let them take turns until the test decides; that in `order[0]` starts first."""
        turns = self.pairs_of_processes[-1]
        sides: dict[str, Side] = {}
        error: BaseException | None = None
        try:
            for name in order:
                sides[name] = self._make_side(self._requests[name], self._labelled(name, 1))
                self._start(name, sides, turns)
            seconds, steps = self._length(turns)
            while True:
                decision = decide(turns.ratios, WORTHWHILE.value, rules.may_give_up, rules.is_gain_only)
                if decision is not None:
                    self._check_drift(turns)
                    return decision
                self._check_time(2 * seconds)
                for name in order if turns.pairs % 2 == 0 else order[::-1]:
                    self._labelled(name, turns.pairs + 1)(Progress("timing"))
                    turns.add(name, sides[name].turn(seconds, steps))
                    self._check_held(sides)
        except CannotTakeTurns as cannot:
            raise _NeedsFreshProcesses(str(cannot)) from None
        except BaseException as raised:
            error = raised
            raise
        finally:
            self._end(sides, error)

    def _start(self, name: str, sides: Mapping[str, Side], turns: Turns) -> None:
        """Start one process to the end of its window; the other one, if there is one, is stopped."""
        self.starts += 1
        window = sides[name].start()
        turns.add_window(name, window)
        is_alone = len(sides) == 1
        # A window that was measured alone is as good as that of a fresh process.
        is_usable = is_alone and name == "before" and len(self.pairs_of_processes) == 1
        early = {name: EarlyRun(window.steps, window.started_s)} if is_usable else {}
        if window.has_accelerator:
            raise _NeedsFreshProcesses("the memory and the queue of an accelerator are not those of one process", early)
        try:
            self._check_held(sides)
        except _NeedsFreshProcesses as reason:
            raise _NeedsFreshProcesses(str(reason), early) from None
        if is_alone:
            need, free = LIVE_MEMORY_RESERVE.value * sides[name].held().memory_bytes, self._memory()[1]
            if need > free:
                why = f"two processes would not fit in memory ({format_bytes(free)} are free beside the first one)"
                raise _NeedsFreshProcesses(why, early)

    def _check_held(self, sides: Mapping[str, Side]) -> None:
        """Raise if a stop may harm what the scripts hold."""
        if any(side.held().sockets for side in sides.values()):
            raise _NeedsFreshProcesses("the script has open network connections, which a stop may break")
        total, free = self._memory()
        if free < LEAST_FREE_SHARE.value * total:
            raise _NeedsFreshProcesses(f"both processes hardly fit in memory ({format_bytes(free)} are free)")

    def _check_drift(self, turns: Turns) -> None:
        for name in SIDES:
            drift = drift_of(turns.timed[name])
            if drift:
                raise _NeedsFreshProcesses(f"{drift} ({_TITLES[name]})")

    def _check_time(self, seconds: float) -> None:
        if self._deadline is not None and time.monotonic() + seconds > self._deadline:
            raise _OutOfTime

    def _length(self, turns: Turns) -> tuple[float, int | None]:
        """Seconds and steps after which a turn ends: those of the window."""
        request = self._requests["before"]
        longest_s = max(window.window_s for window in turns.windows.values())
        steps = None if request.steps is None else max(request.steps, MIN_RUN_STEPS.value)
        return (longest_s if request.seconds is None else min(request.seconds, longest_s)), steps

    def _labelled(self, name: str, pair: int) -> OnProgress:
        number = len(self.pairs_of_processes)
        return labelled(
            self._on_progress, f"{_TITLES[name]}, process {number} of up to 2, turn {pair} of up to {MAX_PAIRS}"
        )

    def _end(self, sides: Mapping[str, Side], error: BaseException | None) -> None:
        """End all processes, also if the end of one fails."""
        names = list(sides)
        try:
            for name in names[:1]:
                sides[name].end(error)
        finally:
            if len(names) > 1:
                sides[names[1]].end(error)


def _how(starts: int) -> str:
    pairs = "one pair" if starts <= len(SIDES) else "two pairs"
    return f"Both versions ran as live processes that took turns ({pairs} of processes)."
