"""Reads device planes as columns: kernels and copies of GPU streams, XLA ops of a TPU.

In: a `/device:...` plane.  Out: `DeviceActivity`.

TensorFlow 2.3 to 2.5 added derived lines to the plane ("TensorFlow Ops", "Steps", ...); later versions derive them when a profile
is displayed. Only the steps of these lines are read, because everything else follows from the streams. The name of an op is in
`tf_op` (`level 0` in TensorFlow 2.4) or at the start of the annotation; that of an XLA op is in `hlo_op`.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Mapping
from typing import Any

import numpy as np

from advisor.model.activity import MAX_PS, NO_GROUP, DeviceActivity, DeviceKind, Picoseconds
from advisor.profile.events import SLICE, Labels
from advisor.profile.iterators import decode_stats
from advisor.profile.op_names import parse_op_name, xla_type
from advisor.profile.safe_names import text
from advisor.profile.xspace import parse_events

DEVICE_PLANE = b"/device:"
STEPS_LINE = "Steps"
XLA_OPS_LINE = "XLA Ops"
PROGRAMS_LINE = "XLA Modules"
DERIVED_LINES = frozenset(
    {
        STEPS_LINE,
        XLA_OPS_LINE,
        "TensorFlow Ops",
        "TensorFlow Name Scope",
        "Framework Ops",
        "Framework Name Scope",
        PROGRAMS_LINE,
        "Async XLA Ops",
        "XLA TraceMe",
        "Overlay",
        "Source code",
        "Launch Stats",
    }
)
"""Lines that repeat or summarise the streams. Source: `trace_utils.h` and `xplane_schema.cc` of TensorFlow's profiler."""
_DERIVED_IDS = range(0xDEADBEEF - 32, 0xDEADBEEF + 32)
_HALF_NAME = re.compile(r"half|fp16|bf16|bfloat16|_h\d+(gemm|cudnn)|h884|h1688|hmma", re.IGNORECASE)
"""Names of kernels that compute with 16-bit floats; XProf matches only `half` and `fp16` and therefore misses bfloat16."""
_HALF_HLO = re.compile(r"^%?[\w.\-]+ = \(?(bf16|f16)\[")
"""Matches the text of an XLA op in the file if its result is a 16-bit float."""
_HALF_SHAPE = re.compile(r"half|bfloat16")
_NUMBERS = frozenset({"group_id", "is_eager"})
_WANTED = (
    "tf_op",
    "level 0",
    "annotation",
    "hlo_op",
    "kernel_details",
    "shape",
    "memcpy_details",
    "group_id",
    "is_eager",
)


def decode_device(plane: Any, zero_ns: int) -> DeviceActivity:  # noqa: ANN401
    """Decode the events of one device. `zero_ns` is subtracted from the timestamps of the lines."""
    decoder = _DeviceDecoder(plane)
    lines = [(line, text(line.name) or text(line.display_name)) for line in plane.lines]
    streams = [(line, name) for line, name in lines if not _is_derived(line, name)]
    if not any(len(line.events) for line, _ in streams):  # a TPU shows ops and no streams
        streams = [(line, name) for line, name in lines if name == XLA_OPS_LINE]
    for line, name in streams:
        decoder.decode(line, name, zero_ns)
    steps: list[tuple[int, int, int]] = []
    programs: list[tuple[str, int, int]] = []
    for line, name in lines:
        if name == STEPS_LINE:
            steps += [(group, start, end) for group, _, start, end in decoder.spans(line, zero_ns)]
        elif name == PROGRAMS_LINE:
            programs += [(program, start, end) for _, program, start, end in decoder.spans(line, zero_ns)]
    return decoder.activity(text(plane.name), steps, programs)


def _is_derived(line: Any, name: str) -> bool:  # noqa: ANN401
    return name in DERIVED_LINES or (line.id & 0xFFFF_FFFF) in _DERIVED_IDS


class _DeviceDecoder:
    """Decodes the lines of one device plane into one set of columns."""

    def __init__(self, plane: Any) -> None:  # noqa: ANN401
        self._stat_names = {number: text(stat.name) for number, stat in plane.stat_metadata.items()}
        self._wanted = {number: name for number, name in self._stat_names.items() if name in _WANTED}
        self._event_names = {number: text(meta.name) for number, meta in plane.event_metadata.items()}
        self._display_names = {number: text(meta.display_name) for number, meta in plane.event_metadata.items()}
        self._facts = decode_stats(plane.stats, self._stat_names)
        self._names, self._details = Labels(), Labels()
        self._ops: dict[tuple[str, str], int] = {}
        self._op_numbers: dict[tuple[str, str], int] = {}
        """Cache of parsed ops, by the text in the file."""
        self._half: dict[str, bool] = {}
        self._streams: list[str] = []
        self._parts: list[tuple[np.ndarray[Any, Any], ...]] = []

    def decode(self, line: Any, stream: str, zero_ns: int) -> None:  # noqa: ANN401
        zero_ps = (line.timestamp_ns - zero_ns) * 1000
        offset, duration = array("q"), array("q")
        numbers = {name: array("i") for name in ("name", "op", "group", "details")}
        kinds, eager, half = array("B"), array("B"), array("B")
        is_xla_line = stream == XLA_OPS_LINE
        for first in range(0, len(line.events), SLICE):
            for event in parse_events(line.events[first : first + SLICE]):
                stats = self._read(event.stats)
                name = self._event_names.get(event.metadata_id, "")
                if is_xla_line:
                    name = self._display_names.get(event.metadata_id) or name
                details = stats.get("kernel_details", "")
                offset.append(event.offset_ps)
                duration.append(event.duration_ps)
                numbers["name"].append(self._names.number(name))
                numbers["op"].append(self._op(stats, name, is_xla_line))
                numbers["group"].append(_group(stats))
                numbers["details"].append(self._details.number(details) if details else -1)
                kinds.append(DeviceKind.XLA_OP if is_xla_line else _kind(name, details, stats))
                eager.append(bool(stats.get("is_eager")))
                half.append(self._is_half(self._event_names.get(event.metadata_id, ""), str(stats.get("shape", ""))))
        start, length = sane_times(np.frombuffer(offset, np.int64), np.frombuffer(duration, np.int64), zero_ps)
        order = np.lexsort((-length, start))
        columns = [np.frombuffer(column, np.int32)[order] for column in numbers.values()]
        codes = [np.frombuffer(column, np.uint8)[order] for column in (kinds, eager, half)]
        stream_column = np.full(len(order), len(self._streams), np.int32)
        self._parts.append((start[order], length[order], stream_column, *columns, *codes))
        self._streams.append(stream)

    def spans(self, line: Any, zero_ns: int) -> list[tuple[int, str, int, int]]:  # noqa: ANN401
        """Return the events of a derived line: (group, name, start, end) in ps; without a group, their position is used."""
        zero_ps = (line.timestamp_ns - zero_ns) * 1000
        spans = []
        for order, event in enumerate(parse_events(list(line.events))):
            group = _group(self._read(event.stats))
            start = min(max(zero_ps + event.offset_ps, 0), MAX_PS)
            name = self._event_names.get(event.metadata_id, "")
            spans.append(
                (order if group == NO_GROUP else group, name, start, start + min(max(event.duration_ps, 0), MAX_PS))
            )
        return spans

    def activity(
        self, name: str, steps: list[tuple[int, int, int]], programs: list[tuple[str, int, int]]
    ) -> DeviceActivity:
        empty = (*(np.zeros(0, np.int64),) * 2, *(np.zeros(0, np.int32),) * 5, *(np.zeros(0, np.uint8),) * 3)
        columns = [np.concatenate(column) for column in zip(*(self._parts or [empty]), strict=True)]
        start, duration, stream, name_of, op, group, details, kind, eager, half = columns
        return DeviceActivity(
            name=name,
            facts=self._facts,
            names=self._names.texts(),
            streams=tuple(self._streams),
            start_ps=start,
            duration_ps=duration,
            stream=stream,
            name_of=name_of,
            kind=kind,
            op=op,
            group=group,
            is_eager=eager.astype(np.bool_),
            details=details,
            is_half=half.astype(np.bool_),
            ops=tuple(self._ops),
            kernel_details=self._details.texts(),
            steps=tuple(sorted(steps)),
            programs=tuple(sorted(programs, key=lambda run: run[1])),
            has_xla_ops=any(hlo for _, hlo in self._op_numbers),
        )

    def _read(self, stats: Any) -> dict[str, Any]:  # noqa: ANN401
        """Return the requested stats of an event; texts as str, numbers as numbers."""
        values: dict[str, Any] = {}
        wanted = self._wanted
        for stat in stats:
            name = wanted.get(stat.metadata_id)
            if name is None:
                continue
            if name in _NUMBERS:
                values[name] = stat.int64_value or stat.uint64_value
            else:
                reference = stat.ref_value
                values[name] = self._stat_names.get(reference, "") if reference else text(stat.str_value)
        return values

    def _op(self, stats: Mapping[str, Any], name: str, is_xla_line: bool) -> int:
        """Return the number of the event's op; -1 if it is unknown."""
        tf_op = str(stats.get("tf_op") or stats.get("level 0") or str(stats.get("annotation", "")).partition("#")[0])
        hlo = name if is_xla_line else str(stats.get("hlo_op", ""))
        number = self._op_numbers.get((tf_op, hlo))
        if number is None:
            op = _name_op(tf_op, hlo)
            number = -1 if op is None else self._ops.setdefault(op, len(self._ops))
            self._op_numbers[(tf_op, hlo)] = number
        return number

    def _is_half(self, name: str, shape: str) -> bool:
        """Whether the event computes with 16-bit floats: from the op's shapes, or else from the name of the kernel or XLA op."""
        key = shape or name
        known = self._half.get(key)
        if known is None:
            pattern = _HALF_SHAPE if shape else _HALF_HLO if key.startswith("%") else _HALF_NAME
            known = self._half[key] = bool(pattern.search(key))
        return known


def sane_times(offset: Picoseconds, duration: Picoseconds, zero_ps: int) -> tuple[Picoseconds, Picoseconds]:
    """Return starts and durations of events in ps, limited to the range from 0 to `MAX_PS`.

    Args:
        offset: Starts relative to the line, one per event.
        duration: Durations, one per event; negative ones become 0.
        zero_ps: Start of the line on the profile's clock, in ps; damaged files have any number.
    """
    zero = min(max(zero_ps, -MAX_PS), MAX_PS)
    start = np.clip(offset, -2 * MAX_PS, 2 * MAX_PS) + zero
    return np.clip(start, 0, MAX_PS), np.clip(duration, 0, MAX_PS)


def _name_op(tf_op: str, hlo: str) -> tuple[str, str] | None:
    """Return (name, type) of the op that an event belongs to: TensorFlow's if known, otherwise XLA's."""
    parsed = parse_op_name(tf_op)
    if parsed is not None:
        return parsed
    if hlo:
        last = hlo.rpartition("::")[2]
        return last, xla_type(last)
    name = tf_op.rstrip(":")
    return (name, "") if name else None


def _kind(name: str, details: str, stats: Mapping[str, Any]) -> DeviceKind:
    lower = name.lower()
    if lower.startswith("nccl"):
        return DeviceKind.COLLECTIVE
    if details:
        return DeviceKind.KERNEL
    if "memcpy" in lower or "memcpy_details" in stats:
        if "h2d" in lower or "htod" in lower:
            return DeviceKind.TO_DEVICE
        if "d2h" in lower or "dtoh" in lower:
            return DeviceKind.TO_HOST
        return DeviceKind.DEVICE_TO_DEVICE
    return DeviceKind.OTHER


def _group(stats: Mapping[str, Any]) -> int:
    group = stats.get("group_id", NO_GROUP)
    return group if isinstance(group, int) and 0 <= group < 2**31 else NO_GROUP
