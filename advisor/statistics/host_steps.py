"""Determines the steps of one host from the best available evidence.

In: a `HostActivity` and, if the advisor captured the run, its recorded steps.  Out: `Steps`.

The sources in order of preference: steps that TensorFlow 2.3 to 2.5 wrote into the device planes; steps marked by the program;
steps recorded from Python; calls of the `tf.function` that takes most time, or the requests of its loop if it loops over a
dataset; requests for an element; runs of the program in which a device spends most time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from advisor.model.activity import Flags, HostActivity, HostKind
from advisor.model.recording import Recording
from advisor.profile.long_names import LongName, parse_long_name
from advisor.statistics.time_spans import Ints, outermost_rows

WORKER_THREADS = "tf_data_"
"""Name prefixes of threads that prepare elements; their work does not belong to the step, which only waits for it."""
_REDUCE = "ReduceIterator"
_LOOP_CHAIN = frozenset({"Root", "Model", "Options", "Prefetch", "TakeWhile", "Scan"})
"""Types that AutoGraph and tf.data add on top of a dataset that a loop inside a `tf.function` iterates over."""
CONSUMER_THREADS = ("tf_data_iterator_get_next", "tf_data_reduce_dataset")
"""Kinds of events in which a step waits for its element: of an op in a graph, of a loop inside a `tf.function`."""


@dataclass(frozen=True, eq=False)
class Steps:
    """Steps in chronological order, as columns of equal length."""

    start_ps: Ints
    end_ps: Ints
    number: Ints
    source: str
    """`markers`, `device`, `recorder`, `function`, `iterator`, `program`; empty if there are no steps."""
    is_grouped: bool = False
    """Whether `number` is the group of the step's events in the file (events of different groups may overlap in time)."""

    def __len__(self) -> int:
        return len(self.start_ps)


def find_steps(activity: HostActivity, recording: Recording | None) -> Steps:
    """Find the steps of a host; empty if there is no evidence of steps."""
    for steps in (
        _device_steps(activity),
        _marked_steps(activity),
        _recorded_steps(activity, recording),
        _function_calls(activity),
        _requests(activity),
        _programs(activity),
    ):
        if len(steps):
            return _until_device_is_done(activity, steps)
    return _steps([], "")


def _until_device_is_done(activity: HostActivity, steps: Steps) -> Steps:
    """Let an only step end with the work on the devices that it launched, if the call or the mark ended before.

    Of several steps, each waits for the work of an earlier one, so that their lengths are right.
    """
    if len(steps) > 1 or steps.source not in ("markers", "function"):
        return steps
    ends = [int((device.start_ps + device.duration_ps).max()) for device in activity.devices if len(device)]
    return replace(steps, end_ps=np.maximum(steps.end_ps, max(ends, default=0)))


def _steps(rows: list[tuple[int, int, int]], source: str, is_grouped: bool = False) -> Steps:
    """Create steps from (number, start, end); those without a duration are dropped."""
    rows = sorted((row for row in rows if row[2] > row[1]), key=lambda row: (row[1], row[0]))
    columns = np.array(rows, np.int64).reshape(-1, 3)
    return Steps(columns[:, 1], columns[:, 2], columns[:, 0], source, is_grouped)


def _device_steps(activity: HostActivity) -> Steps:
    """Return the steps that TensorFlow derived; with several devices, the longest step of each group counts, as in XProf."""
    longest: dict[int, tuple[int, int]] = {}
    for device in activity.devices:
        for group, start, end in device.steps:
            if group not in longest or end - start > longest[group][1] - longest[group][0]:
                longest[group] = (start, end)
    return _steps([(group, *span) for group, span in longest.items()], "device", is_grouped=True)


def _marked_steps(activity: HostActivity) -> Steps:
    """Return the marked steps; of nested ones, the outermost counts."""
    rows = outermost_rows(activity, np.flatnonzero(activity.kind == HostKind.STEP))
    start = activity.start_ps[rows]
    columns = (activity.group[rows], start, start + activity.duration_ps[rows])
    marks = list(zip(*(column.tolist() for column in columns), strict=True))
    if len({number for number, _, _ in marks}) < len(marks):
        marks = [(order, start, end) for order, (_, start, end) in enumerate(sorted(marks, key=lambda row: row[1]))]
    return _steps(marks, "markers")


def _recorded_steps(activity: HostActivity, recording: Recording | None) -> Steps:
    """Return the main consumer's steps inside the window."""
    if recording is None or activity.start_unix_ns is None or not len(activity):
        return _steps([], "")
    main = {consumer.id for consumer in recording.consumers if consumer.is_main}
    first = int(activity.start_ps.min())
    last = int((activity.start_ps + activity.duration_ps).max())
    for series in recording.steps:
        if series.consumer_id in main:
            spans = [
                ((start - activity.start_unix_ns) * 1000, (end - activity.start_unix_ns) * 1000)
                for start, end in zip(series.start_ns, series.end_ns, strict=False)
            ]
            return _steps(
                [(number, a, b) for number, (a, b) in enumerate(spans) if a >= first and b <= last], "recorder"
            )
    return _steps([], "")


def _function_calls(activity: HostActivity) -> Steps:
    """Return the steps from one call of the main `tf.function` to the next; the last step ends with its call.

    Calls inside other calls are ignored. If the function loops over a dataset, the steps are those of the loop, because it takes
    one step per element and not per call.
    """
    is_call = (activity.kind == HostKind.FUNCTION_CALL) | (activity.kind == HostKind.TRACED_CALL)
    rows = outermost_rows(activity, np.flatnonzero(is_call))
    if not len(rows):
        return _steps([], "")
    name, start = activity.name[rows], activity.start_ps[rows]
    total = np.zeros(len(activity.names), np.int64)
    np.add.at(total, name, activity.duration_ps[rows])
    main = name == int(total.argmax())
    calls = sorted(zip(start[main].tolist(), (start + activity.duration_ps[rows])[main].tolist(), strict=True))
    requests = _loop_requests(activity)
    if _num_inside(requests, calls) > max(1, len(calls)):
        return _between(requests)  # all of them, because the call in which the window opens has no event
    ends = [start for start, _ in calls[1:]] + [finish for _, finish in calls[-1:]]
    return _steps(
        [(order, start, end) for order, ((start, _), end) in enumerate(zip(calls, ends, strict=True))], "function"
    )


def _loop_requests(activity: HostActivity) -> Ints:
    """Return the times at which loops inside `tf.function`s requested an element, sorted."""
    inputs = [_is_loop_input(parse_long_name(name)) for name in activity.names]
    is_request = (activity.kind == HostKind.ITERATOR) & np.array(inputs or [False], np.bool_)[activity.name]
    return np.sort(activity.start_ps[is_request])


def _num_inside(times: Ints, calls: list[tuple[int, int]]) -> int:
    """Return the number of `times` inside one of `calls`, which are sorted and disjoint."""
    begins, ends = (np.array(column, np.int64) for column in zip(*calls, strict=True))
    call = np.searchsorted(begins, times, side="right") - 1
    return int(np.count_nonzero((call >= 0) & (times < ends[call])))


def _between(requests: Ints) -> Steps:
    """Return the steps from one request for an element to the next; the requests are sorted by time."""
    spans = zip(requests[:-1].tolist(), requests[1:].tolist(), strict=True)
    return _steps([(order, start, end) for order, (start, end) in enumerate(spans)], "iterator")


def on_workers(activity: HostActivity) -> npt.NDArray[np.bool_]:
    """Whether each event ran on a thread that prepares elements."""
    flags = [
        thread.startswith(WORKER_THREADS) and not thread.startswith(CONSUMER_THREADS) for thread in activity.threads
    ]
    is_worker: npt.NDArray[np.bool_] = np.array(flags or [False], np.bool_)[activity.thread]
    return is_worker


def waits_for_input(activity: HostActivity) -> Flags:
    """Calls in which a step waits for its element: of a pipeline's root on a thread of the step, or of a loop's input."""
    roots = [_is_root(parse_long_name(name)) for name in activity.names]
    inputs = [_is_loop_input(parse_long_name(name)) for name in activity.names]
    is_call = activity.kind == HostKind.ITERATOR
    if any(inputs):  # the root of the loop's own pipeline contains the loop's body
        of_loops = [name.startswith(_REDUCE) for name in activity.names]
        roots = [root and not of_loop for root, of_loop in zip(roots, of_loops, strict=True)]
    calls = is_call & np.array(roots or [False], np.bool_)[activity.name] & ~on_workers(activity)
    waits: Flags = calls | (is_call & np.array(inputs or [False], np.bool_)[activity.name])
    return waits


def _is_root(name: LongName | None) -> bool:
    return name is not None and len(name.nodes) == 1


def _is_loop_input(name: LongName | None) -> bool:
    """Whether the iterators are a loop over a dataset inside a `tf.function`: a Scan with the loop's body as its function."""
    if name is None or name.prefix != _REDUCE or len(name.nodes) < 2:
        return False
    above = [node.type for node in name.nodes[:-1]]
    return above[-1] == "Scan" and above.count("Scan") == 1 and set(above) <= _LOOP_CHAIN


def _requests(activity: HostActivity) -> Steps:
    """Return the steps from one request for an element to the next."""
    is_request = (activity.kind == HostKind.GET_NEXT) & ~on_workers(activity)
    for chosen in (is_request, waits_for_input(activity)):
        start = np.sort(activity.start_ps[chosen])
        if len(start) > 1:
            return _between(start)
    return _steps([], "")


def _programs(activity: HostActivity) -> Steps:
    """Return steps between runs of the program in which the first device spends most time; the last ends with its run."""
    for device in activity.devices:
        total: dict[str, int] = {}
        for name, start, end in device.programs:
            total[name] = total.get(name, 0) + end - start
        if total:
            main = max(total, key=lambda name: total[name])
            runs = [(start, end) for name, start, end in device.programs if name == main]
            ends = [start for start, _ in runs[1:]] + [runs[-1][1]]
            return _steps(
                [(n, start, end) for n, ((start, _), end) in enumerate(zip(runs, ends, strict=True))], "program"
            )
    return _steps([], "")
