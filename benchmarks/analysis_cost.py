"""Measures what analysing a profile costs: seconds and peak memory at several sizes, each in its own process.

In: a real capture (taken here, or given).  Out: a table on stdout with the facts of the machine; `--json` stores the numbers.

    python benchmarks/analysis_cost.py                                   # 10 thousand to 5 million events
    python benchmarks/analysis_cost.py RUN --sizes 1e6 --repeats 5
    python benchmarks/analysis_cost.py --xprof xprof/bin/python --write-docs     # compared with XProf's converter
    python benchmarks/analysis_cost.py --attribution 2 16 64 128 --sizes 1e6     # the attribution of the wait alone

Larger profiles are the capture repeated several times in a row, like a longer window of the same program: the same threads
and iterators, but separate ids for the elements, contexts and steps of each repetition, so that they are connected as in the
capture.

Tasks: `decode` is the protobuf library alone, which decodes every event as a message. `read` is `read_trace`. `analyse` is
`read_trace` and `advisor.graph.analyse`. `report` is everything that `advisor analyze FILE` does, including timeline,
statistics, rules and report.json. `xprof` is XProf's converter for its input-pipeline page. Seconds exclude imports and
memory includes them. The median of the repeats is shown.

With `--attribution`, the sizes are boundaries (instants at which a thread changes its activity) of simulated threads that are
all busy at the same time; `simulated_threads` describes them. Memory is what the attribution allocates.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

from published import machine_sentence, write_section
from simulated_threads import measure
from xprof_converter import convert

from advisor.profile import read_trace
from advisor.profile.file_content import read_profile
from advisor.profile.profile_files import find_profiles
from advisor.profile.xspace import message_class, parse_events, parse_xspace

CAPTURE = """
import sys, time
import tensorflow as tf

def work(x):
    image = tf.ones((48, 48)) * tf.cast(x, tf.float32)
    return tf.reduce_sum(tf.matmul(image, image) * 0.5 + 1.0)

dataset = tf.data.Dataset.range(10**9).shuffle(256).map(work, num_parallel_calls=2).batch(8).prefetch(2)
iterator = iter(dataset)
for _ in range(20):
    next(iterator)
tf.profiler.experimental.start(
    sys.argv[1],
    tf.profiler.experimental.ProfilerOptions(host_tracer_level=2, python_tracer_level=0, device_tracer_level=0),
)
for _ in range(40):
    next(iterator)
    time.sleep(0.0005)
tf.profiler.experimental.stop()
"""

TASK = """
import json, sys, time
from pathlib import Path
task, path = sys.argv[1], Path(sys.argv[2])
import numpy
from advisor.capture.window.process_memory import peak_rss_bytes
from advisor.profile import read_trace
from advisor.profile.xspace import parse_events, parse_xspace
if task == "analyse":
    from advisor.graph import analyse
if task == "report":
    import advisor.hosts, advisor.profile.host_view, advisor.report.report_json
    import advisor.statistics.collect, advisor.statistics.report_sections
    from advisor.engine import load_rules
    from advisor.workflows.analyze import analyze_run
    from advisor.model.settings import Settings
    rules = load_rules((), Settings())
parse_events([])
before = peak_rss_bytes()
start, cpu_start = time.perf_counter(), time.process_time()
if task == "decode":
    space = parse_xspace(path.read_bytes())
    kept = [parse_events(list(line.events)) for plane in space.planes for line in plane.lines]
elif task == "read":
    kept = read_trace(path)
elif task == "report":
    kept = advisor.report.report_json.report_to_bytes(analyze_run(path, rules, Settings()))
else:
    kept = analyse(read_trace(path), None, str(path))
cpu = time.process_time() - cpu_start
print(json.dumps({"seconds": time.perf_counter() - start, "cpu_seconds": cpu, "peak_bytes": peak_rss_bytes(),
                  "imported_bytes": before}))
"""
TASKS = ("decode", "read", "analyse", "report")

_NEW_ID_STEP = 0x9E37_79B9_7F4A_7C15
"""Odd, so that its multiples are distinct modulo 2^64 (2^64 divided by the golden ratio)."""
_UINT64 = 0xFFFF_FFFF_FFFF_FFFF
_PER_EVENT_IDS = frozenset({"element_id", "input_element_id", "_p", "_c", "id", "step_id"})


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("profile", nargs="?", type=Path, help="run folder or .xplane.pb file (default: capture one)")
    parser.add_argument("--sizes", nargs="+", type=float, default=[1e4, 1e5, 1e6, 5e6], metavar="EVENTS")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument(
        "--threads", type=int, help="spread the events over about so many threads (default: as captured)"
    )
    parser.add_argument(
        "--attribution", nargs="+", type=int, metavar="THREADS", help="time the attribution alone on so many threads"
    )
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=TASKS)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--folder", type=Path, help="keep the profiles here, and use those that are here")
    parser.add_argument("--xprof", type=Path, metavar="PYTHON", help="interpreter of an environment with xprof")
    parser.add_argument("--write-docs", action="store_true", help="put the table into docs/benchmarks.md")
    options = parser.parse_args()
    print(f"{_cpu_model()}, {_cores()} usable cores, {platform.system()} {platform.release()}")
    print(f"Python {platform.python_version()}, numpy {version('numpy')}, protobuf {version('protobuf')}\n")
    if options.attribution:
        rows = _measure_attribution(options.attribution, [int(size) for size in options.sizes], options.repeats)
        if options.json:
            options.json.write_text(json.dumps(rows, indent=1))
        if options.write_docs:
            write_section("attribution cost", [machine_sentence(), "", *_attribution_table(rows)])
        return
    print(f"{'events':>9} {'file MB':>8}  {'task':<8} {'seconds':>8} {'s per 1e6':>9} {'peak MB':>8} {'x file':>7}")
    measured = []
    with tempfile.TemporaryDirectory() as folder:
        source = options.profile
        for size in options.sizes:
            path = (options.folder or Path(folder)) / f"{size:.0f}.xplane.pb"
            if not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                source = source or capture(Path(folder) / "capture")
                write_repeated(source, int(size), path, options.threads)
            num_events = read_trace(path).hosts[0].num_events
            for task in (*options.tasks, *(("xprof",) if options.xprof else ())):
                runs = [
                    convert(options.xprof, [path]) if task == "xprof" else _measure(task, path)
                    for _ in range(options.repeats)
                ]
                row = {key: statistics.median(run[key] for run in runs) for key in ("seconds", "peak_bytes")}
                row |= {"events": num_events, "file_bytes": path.stat().st_size, "task": task}
                measured.append(row)
                _print_row(row)
    if options.json:
        options.json.write_text(json.dumps(measured, indent=1))
    if options.write_docs:
        write_section("analysis cost", [machine_sentence(), "", *_table(measured)])


def capture(folder: Path) -> Path:
    """Profile a small pipeline with the installed TensorFlow."""
    done = subprocess.run([sys.executable, "-c", CAPTURE, folder], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"the capture failed; give a PROFILE instead.\n{done.stderr[-2000:]}")
    return folder


def write_repeated(source: Path, num_events: int, path: Path, num_threads: int | None = None) -> None:
    """Write `source` repeated to about `num_events` events, never fewer than in `source`.

    With `num_threads`, the repetitions are distributed over copies of every thread except Python's own.
    """
    space = parse_xspace(read_profile(find_profiles(source).paths[0]))
    lines = [(plane, line) for plane in space.planes for line in plane.lines]
    captured = sum(len(line.events) for _, line in lines)
    repetitions = max(1, round(num_events / captured))
    decoded = [(plane, line, parse_events(list(line.events))) for plane, line in lines]
    span_ps = 1 + max(event.offset_ps + event.duration_ps for _, _, events in decoded for event in events)
    num_copies = max(1, ((num_threads or len(lines)) - 1) // max(1, len(lines) - 1))
    for plane, line, events in decoded:
        changing = _StatsThatChange(plane)
        copies = [line]
        while line.name != b"python" and len(copies) < num_copies:
            copies.append(plane.lines.add())
            copies[-1].CopyFrom(line)
            del copies[-1].events[:]
            copies[-1].id = line.id // 7 + len(copies)
        for repetition in range(1, repetitions):
            target = copies[repetition % len(copies)]
            target.events.extend(changing.repeated(event, repetition, span_ps) for event in events)
    path.write_bytes(space.SerializeToString())


class _StatsThatChange:
    """Gives each repetition of an event its own time and ids."""

    def __init__(self, plane: Any) -> None:
        self._names = {number: stat.name.decode() for number, stat in plane.stat_metadata.items()}
        self._iterators = {
            number for number, metadata in plane.event_metadata.items() if b"Iterator::" in metadata.name
        }

    def repeated(self, event: Any, repetition: int, span_ps: int) -> bytes:
        copy = message_class("XEvent")()
        copy.CopyFrom(event)
        copy.offset_ps += repetition * span_ps
        if event.metadata_id not in self._iterators:
            for stat in copy.stats:
                name = self._names.get(stat.metadata_id, "")
                if name == "step_num":
                    stat.int64_value += repetition * 1_000_000
                elif name in _PER_EVENT_IDS:
                    value = (stat.uint64_value or stat.int64_value) & _UINT64
                    if value not in (0, _UINT64):  # none
                        stat.uint64_value = (value + repetition * _NEW_ID_STEP) & _UINT64
        data: bytes = copy.SerializeToString()
        return data


def _measure(task: str, path: Path) -> dict[str, float]:
    done = subprocess.run([sys.executable, "-c", TASK, task, path], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{task} failed.\n{done.stderr[-2000:]}")
    measured: dict[str, float] = json.loads(done.stdout)
    return measured


def _measure_attribution(threads: list[int], sizes: list[int], repeats: int) -> list[dict[str, float]]:
    """One row per number of threads and boundaries."""
    print(f"{'threads':>7} {'boundaries':>10} {'seconds':>8} {'s per 1e6':>9} {'MB':>6}")
    rows = []
    for num_threads in threads:
        for size in sizes:
            runs = [measure(num_threads, size) for _ in range(repeats)]
            row = {key: statistics.median(run[key] for run in runs) for key in runs[0]}
            rows.append(row)
            print(
                f"{row['threads']:>7.0f} {row['boundaries']:>10,.0f} {row['seconds']:>8.3f}"
                f" {row['seconds'] / row['boundaries'] * 1e6:>9.2f} {row['allocated_bytes'] / 1e6:>6.0f}",
                flush=True,
            )
    return rows


def _attribution_table(rows: list[dict[str, float]]) -> list[str]:
    return [
        "| threads | boundaries | seconds | seconds per million | memory |",
        "|---|---|---|---|---|",
        *(
            f"| {row['threads']:.0f} | {row['boundaries']:,.0f} | {row['seconds']:.2f} s"
            f" | {row['seconds'] / row['boundaries'] * 1e6:.2f} s | {row['allocated_bytes'] / 1e6:.0f} MB |"
            for row in rows
        ),
    ]


def _table(measured: list[dict[str, Any]]) -> list[str]:
    """One row per size: seconds of every task, peak memory of the last task of the advisor and of XProf."""
    tasks = list(dict.fromkeys(row["task"] for row in measured))
    lines = [
        f"| events | file | {' | '.join(f'`{task}`' for task in tasks)} | peak memory (times the file) |",
        f"|{'---|' * (len(tasks) + 3)}",
    ]
    for events in dict.fromkeys(row["events"] for row in measured):
        rows = {row["task"]: row for row in measured if row["events"] == events}
        seconds = " | ".join(f"{row['seconds']:.2f} s" for row in rows.values())
        peaks = ", ".join(
            f"`{task}` {row['peak_bytes'] / 1e6:.0f} MB ({row['peak_bytes'] / row['file_bytes']:.1f})"
            for task, row in rows.items()
            if task in ("analyse", "report", "xprof")
        )
        lines.append(f"| {events:,} | {rows[tasks[0]]['file_bytes'] / 1e6:.1f} MB | {seconds} | {peaks} |")
    return lines


def _print_row(row: dict[str, Any]) -> None:
    events, size, peak = row["events"], row["file_bytes"], row["peak_bytes"]
    print(
        f"{events:>9,} {size / 1e6:>8.1f}  {row['task']:<8} {row['seconds']:>8.3f} {row['seconds'] / events * 1e6:>9.2f}"
        f" {peak / 1e6:>8.0f} {peak / size:>7.1f}",
        flush=True,
    )


def _cpu_model() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _cores() -> int:
    import os

    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


if __name__ == "__main__":
    main()
