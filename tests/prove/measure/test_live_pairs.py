"""The alternation of two live processes and its fall-backs, on recorded turns; no process is started."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from advisor.capture.request import CaptureRequest, Progress
from advisor.model.outcome import Interval
from advisor.prove.measure import live_pairs
from advisor.prove.measure.end_to_end_result import EarlyRun, EndToEnd
from advisor.prove.measure.live_pairs import measure_live_pairs
from advisor.prove.measure.live_process import CannotTakeTurns, FirstWindow, Held
from advisor.prove.measure.run_steps import RunSteps
from advisor.prove.trial.runs.turn_messages import TurnTaken
from advisor.prove.trial.trial_result import FASTER, REFUSED, SAME
from tests.prove.run_recordings import MS

GIB = 1 << 30


@dataclass
class Recorded:
    """Turns of both sides; `B` is the unchanged script."""

    steps_ms: Mapping[str, Iterable[float]]
    """Step times of the window and the turns, over all processes of the side."""
    held: Mapping[str, Held] = field(default_factory=dict)
    has_accelerator: bool = False
    log: list[str] = field(default_factory=list)
    """What was done to which side: `B start`, `A turn`, ..."""

    def make(self, request: CaptureRequest, on_progress: object) -> RecordedSide:
        assert request.script is not None
        return RecordedSide(self, request.script.name)


class RecordedSide:
    """See `Side`."""

    def __init__(self, recorded: Recorded, name: str) -> None:
        self._recorded, self._name = recorded, name
        self._steps: Iterator[float] = iter(recorded.steps_ms[name])
        recorded.steps_ms = {**recorded.steps_ms, name: self._steps}

    def start(self) -> FirstWindow:
        self._note("start")
        steps = RunSteps(self._next(), 0.5, 50, 100)
        return FirstWindow(steps, 3.0, 15.0, self._recorded.has_accelerator)

    def turn(self, seconds: float, steps: int | None) -> TurnTaken:
        assert (seconds, steps) == (3.0, None)
        self._note("turn")
        step = self._next()
        return TurnTaken(40, round(40 * step), round(10 * step), (step, step))

    def held(self) -> Held:
        return self._recorded.held.get(self._name, Held(0, GIB))

    def end(self, error: BaseException | None = None) -> None:
        self._note(f"end {type(error).__name__}" if error else "end")

    def _next(self) -> float:
        step = next(self._steps, None)
        if step is None:
            raise CannotTakeTurns("the script ended before its turns were over")
        return step * MS

    def _note(self, what: str) -> None:
        self._recorded.log.append(f"{self._name} {what}")


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> list[Mapping[str, EarlyRun]]:
    """What was measured with fresh processes instead: the early runs of each measurement, which is always faster."""
    made: list[Mapping[str, EarlyRun]] = []

    def measure(*args: object, early: Mapping[str, EarlyRun], **kwargs: object) -> EndToEnd:
        made.append(early)
        runs = tuple(RunSteps(10.0 * MS, 0.5, 50, 100) for _ in range(3))
        return EndToEnd(FASTER, Interval(1.5, 1.4, 1.6), runs, runs)

    monkeypatch.setattr(live_pairs, "measure_end_to_end", measure)
    return made


def measured(
    recorded: Recorded, free: int = 8 * GIB, deadline: float | None = None, in_place: bool = False
) -> EndToEnd:
    sides = (CaptureRequest(Path("unused"), Path(name), in_place=in_place) for name in ("B", "A"))
    return measure_live_pairs(
        *sides, lambda progress: None, deadline, make_side=recorded.make, memory=lambda: (16 * GIB, free)
    )


def test_a_clear_gain_takes_one_pair_of_processes(fresh: list[object]) -> None:
    recorded = Recorded({"B": (20.0, 20.2, 19.9), "A": (10.0, 10.1, 10.0)})
    comparison = measured(recorded)
    assert recorded.log == ["B start", "A start", "A turn", "B turn", "B turn", "A turn", "B end", "A end"]
    assert (comparison.verdict, comparison.is_live, comparison.runs, len(comparison.before)) == (FASTER, True, 2, 3)
    assert [run.step_ns for run in comparison.after] == [10.0 * MS, 10.1 * MS, 10.0 * MS]
    assert comparison.after[1].wait_share == 0.25
    assert comparison.speedup is not None and comparison.speedup.value == pytest.approx(2.0)
    assert comparison.test is not None and (
        comparison.test.pairs,
        comparison.test.max_pairs,
        comparison.test.median,
    ) == (3, 8, None)
    assert "one pair of processes" in comparison.how
    assert fresh == []


def test_no_difference_takes_one_pair_of_processes(fresh: list[object]) -> None:
    recorded = Recorded({"B": (10.0, 10.02, 10.01), "A": (10.0, 10.01, 10.02)})
    comparison = measured(recorded)
    assert (comparison.verdict, comparison.runs, comparison.ended_because) == (SAME, 2, "futile")


def test_a_gain_near_the_limit_is_measured_with_a_second_pair_in_the_other_order(fresh: list[object]) -> None:
    first = (1.10, 1.11, 1.09)
    second = (1.08, 1.09, 1.085)
    recorded = Recorded({"B": [10 * ratio for ratio in (*first, *second)], "A": [10.0] * 6})
    comparison = measured(recorded)
    assert recorded.log[8:] == ["A start", "B start", "B turn", "A turn", "A turn", "B turn", "A end", "B end"]
    assert (comparison.verdict, comparison.runs, len(comparison.before), comparison.ended_because) == (
        FASTER,
        4,
        6,
        "clear",
    )
    assert "two pairs of processes" in comparison.how
    one, two = (live_pairs.decide(ratios, 1.05) for ratios in (first, second))
    assert one is not None and two is not None and comparison.speedup is not None
    assert comparison.speedup.low == pytest.approx(min(one.speedup.low, two.speedup.low))
    assert comparison.speedup.high == pytest.approx(max(one.speedup.high, two.speedup.high))


def test_pairs_of_processes_that_contradict_each_other_are_no_result(fresh: list[object]) -> None:
    recorded = Recorded({"B": [10.6, 10.62, 10.58, 9.98, 10.0, 10.02], "A": [10.0] * 6})
    comparison = measured(recorded)
    assert comparison.how.startswith("Fresh processes were measured instead of live ones that take turns: two pairs of")
    assert fresh == [{}]
    assert comparison.runs == 4 + 6


B, A = (20.0,), (10.0,)


@pytest.mark.parametrize(
    ("recorded", "free", "why", "is_early"),
    [
        (Recorded({"B": (20.0, 20.0), "A": (10.0, 10.0, 10.0)}), 8 * GIB, "the script ended before its turns were over", False),
        (Recorded({"B": B, "A": A}, {"B": Held(1, GIB)}), 8 * GIB, "open network connections", True),
        (Recorded({"B": B, "A": A}, {"A": Held(1, GIB)}), 8 * GIB, "open network connections", False),
        (Recorded({"B": B, "A": A}, has_accelerator=True), 8 * GIB, "accelerator", True),
        (Recorded({"B": B, "A": A}, {"B": Held(0, 7 * GIB)}), 8 * GIB, "two processes would not fit in memory (8 GiB", True),
        (Recorded({"B": B, "A": A}, {"B": Held(0, 1)}), GIB // 2, "both processes hardly fit in memory (512 MiB", True),
        (
            Recorded({"B": (10.0, 11.0, 12.1, 13.2), "A": (7.0, 11.0, 10.0, 10.1, 9.9, 10.0, 10.1, 10.0)}),
            8 * GIB, "the script ended", False,
        ),
        (
            Recorded({"B": (20.0, 22.0, 24.2, 26.6), "A": (20.0 / 1.5, 22.0 / 1.5, 24.2 / 1.9, 26.6 / 1.7)}),
            8 * GIB, "its step times drift", False,
        ),
    ],
    ids=["end", "sockets", "sockets of the changed", "GPU", "memory", "little memory", "end later", "drift"],
)  # fmt: skip
def test_fresh_processes_are_measured_where_turns_mislead(
    recorded: Recorded, free: int, why: str, is_early: bool, fresh: list[Mapping[str, EarlyRun]]
) -> None:
    """A window that was measured before another process was there is the run of the first pair."""
    comparison = measured(recorded, free)
    assert (
        why in comparison.how
        and comparison.how.startswith("Fresh processes were measured")
        and comparison.how.endswith(".")
    )
    assert (comparison.verdict, comparison.is_live) == (FASTER, False)
    assert [set(early) for early in fresh] == [{"before"} if is_early else set()]
    starts = sum(line.endswith("start") for line in recorded.log)
    assert sum("end" in line for line in recorded.log) == starts
    assert comparison.runs == starts + 6 - is_early


def test_scripts_that_write_to_the_real_files_never_take_turns(fresh: list[object]) -> None:
    recorded = Recorded({"B": (), "A": ()})
    assert "the real files" in measured(recorded, in_place=True).how
    assert (recorded.log, fresh) == ([], [{}])


def test_no_turn_begins_that_would_end_after_the_deadline(fresh: list[object]) -> None:
    recorded = Recorded({"B": itertools.repeat(20.0), "A": itertools.repeat(10.0)})
    comparison = measured(recorded, deadline=time.monotonic() + 2.0)
    assert recorded.log == ["B start", "A start", "B end _OutOfTime", "A end _OutOfTime"]
    assert (comparison.verdict, comparison.is_out_of_time, comparison.runs, fresh) == (REFUSED, True, 2, [])


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_both_processes_are_ended_whatever_happens(
    error: type[BaseException], fresh: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(side: RecordedSide, seconds: float, steps: int | None) -> TurnTaken:
        raise error

    monkeypatch.setattr(RecordedSide, "turn", fail)
    recorded = Recorded({"B": (20.0,), "A": (10.0,)})
    with pytest.raises(error):
        measured(recorded)
    assert recorded.log == ["B start", "A start", f"B end {error.__name__}", f"A end {error.__name__}"]


def test_progress_names_the_side_and_the_turn(fresh: list[object]) -> None:
    told: list[Progress] = []
    recorded = Recorded({"B": (20.0, 20.2, 19.9), "A": (10.0, 10.1, 10.0)})
    sides = (CaptureRequest(Path("unused"), Path(name)) for name in ("B", "A"))
    measure_live_pairs(*sides, told.append, make_side=recorded.make, memory=lambda: (16 * GIB, 8 * GIB))
    assert [progress.text for progress in told][:2] == [
        "with the changes, process 1 of up to 2, turn 2 of up to 8",
        "unchanged, process 1 of up to 2, turn 2 of up to 8",
    ]
