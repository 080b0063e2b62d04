"""Measures what analysing many hosts costs, and checks that a planted straggler is found.

In: real captures of one pipeline at two speeds (taken here, or given).  Out: seconds and peak memory of `advisor analyze
LOGDIR`, and which host was named.

    python benchmarks/many_hosts.py                              # 2 to 256 hosts
    python benchmarks/many_hosts.py --hosts 16 64 256 --quick RUN --slow RUN
    python benchmarks/many_hosts.py --xprof xprof/bin/python --write-docs        # compared with XProf's converter

Every host but one is the quick capture with its own name and with its times stretched by up to 2 %, so that no two are
identical. The straggler is the slow capture, in which each element takes `SLOWER` times as long to produce, at a position in
the middle.
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import shutil
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

from published import machine_sentence, write_section
from xprof_converter import convert

from advisor.graph.inferred_calls import HINT
from advisor.profile.file_content import read_profile
from advisor.profile.profile_files import find_profiles
from advisor.profile.xspace import message_class, parse_events, parse_xspace

SLOWER = 4
CAPTURE = """
import sys, time
import tensorflow as tf

def work(x):
    image = tf.ones((64, 64)) * tf.cast(x, tf.float32)
    for _ in range(int(sys.argv[2])):
        image = tf.matmul(image, image) * 0.001
    return tf.reduce_sum(image)

dataset = tf.data.Dataset.range(10**9).shuffle(256).map(work, num_parallel_calls=1).batch(8).prefetch(2)
iterator = iter(dataset)
for _ in range(20):
    next(iterator)
tf.profiler.experimental.start(
    sys.argv[1],
    tf.profiler.experimental.ProfilerOptions(host_tracer_level=2, python_tracer_level=0, device_tracer_level=0),
)
for _ in range(100):
    next(iterator)
    time.sleep(0.004)
tf.profiler.experimental.stop()
"""
TASK = """
import json, resource, sys, time
from pathlib import Path
import advisor.hosts, advisor.statistics.report_sections
from advisor.engine import load_rules
from advisor.workflows.analyze import analyze_run
from advisor.report.report_json import report_to_bytes
from advisor.model.settings import Settings
rules = load_rules((), Settings())
start = time.perf_counter()
report = analyze_run(Path(sys.argv[1]), rules, Settings())
report_to_bytes(report)
analysis = report.analysis
seconds = time.perf_counter() - start
unit = 1 if sys.platform == "darwin" else 1024
peak = [resource.getrusage(who).ru_maxrss * unit for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
print(json.dumps({
    "seconds": seconds, "peak_bytes": peak[0], "peak_worker_bytes": peak[1],
    "first": analysis.hosts.hosts[0].hostname,
    "stragglers": [host.hostname for host in analysis.hosts.hosts if host.is_straggler],
    "sentences": analysis.hosts.stragglers, "warnings": report.warnings,
}))
"""


def main() -> None:
    """Create the hosts, analyse them, and print the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hosts", nargs="+", type=int, default=[2, 16, 64, 256])
    parser.add_argument("--quick", type=Path, help="capture for all hosts but one (default: capture one)")
    parser.add_argument("--slow", type=Path, help="capture for the straggler")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--xprof", type=Path, metavar="PYTHON", help="interpreter of an environment with xprof")
    parser.add_argument("--write-docs", action="store_true", help="put the table into docs/benchmarks.md")
    options = parser.parse_args()
    rows = []
    print(f"{platform.processor() or platform.machine()}, {platform.system()}; Python {platform.python_version()}, "
          f"numpy {version('numpy')}, protobuf {version('protobuf')}\n")  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        quick = options.quick or capture(Path(folder) / "quick", 1)
        slow = options.slow or capture(Path(folder) / "slow", SLOWER)
        for number in options.hosts:
            logdir = Path(folder) / f"hosts{number}"
            planted, sizes = make_hosts(logdir, quick, slow, number, random.Random(options.seed))
            found = measure(logdir)
            print(f"{number} hosts, {sum(sizes) / 1e6:.1f} MB, largest file {max(sizes) / 1e6:.2f} MB")
            print(f"  {found['seconds']:.2f} s, {found['seconds'] / number * 1e3:.1f} ms per host")
            print(f"  peak memory {found['peak_bytes'] / 1e6:.0f} MB here, {found['peak_worker_bytes'] / 1e6:.0f} MB in the "
                  "largest worker (both with their imports)")  # fmt: skip
            is_found = found["stragglers"] == [planted] and found["first"] == planted
            print(f"  planted straggler {planted}: {'found, and no other' if is_found else 'NOT FOUND'}"
                  f" {found['stragglers']}\n  {' '.join(found['sentences'])}", flush=True)  # fmt: skip
            warnings = [each for each in found["warnings"] if each != HINT]  # there is no recording here
            if not is_found or warnings:
                sys.exit(f"this was not to be: {warnings}")
            beside = convert(options.xprof, find_profiles(logdir).paths) if options.xprof else None
            if beside:
                print(f"  XProf {beside['version']}: {beside['seconds']:.2f} s, {beside['peak_bytes'] / 1e6:.0f} MB")
            rows.append(_row(number, sizes, found, beside))
            shutil.rmtree(logdir)
    if options.write_docs:
        head = [
            "| hosts | files | `advisor analyze` | peak memory | planted straggler | XProf's converter | its peak memory |",
            f"|{'---|' * 7}",
        ]
        write_section("many hosts", [machine_sentence(), "", *head, *rows])


def _row(number: int, sizes: list[int], measured: dict[str, Any], beside: dict[str, Any] | None) -> str:
    xprof = f"{beside['seconds']:.2f} s | {beside['peak_bytes'] / 1e6:.0f} MB" if beside else "- | -"
    return (
        f"| {number} | {sum(sizes) / 1e6:.0f} MB, the largest {max(sizes) / 1e6:.1f} MB | {measured['seconds']:.2f} s |"
        f" {measured['peak_bytes'] / 1e6:.0f} MB, the largest worker {measured['peak_worker_bytes'] / 1e6:.0f} MB |"
        f" found, and no other | {xprof} |"
    )


def capture(folder: Path, work: int) -> Path:
    """Profile a small pipeline with the installed TensorFlow; `work`: matrix products per element."""
    done = subprocess.run(
        [sys.executable, "-c", CAPTURE, folder, str(40 * work)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"the capture failed; give --quick and --slow instead.\n{done.stderr[-2000:]}")
    return folder


def make_hosts(logdir: Path, quick: Path, slow: Path, number: int, dice: random.Random) -> tuple[str, list[int]]:
    """Write the hosts' profiles; returns the straggler's name and the file sizes in bytes."""
    run = logdir / "plugins/profile/2026_01_01_00_00_00"
    run.mkdir(parents=True)
    sources = {name: read_profile(find_profiles(path).paths[0]) for name, path in (("quick", quick), ("slow", slow))}
    straggler = number // 2
    sizes = []
    for place in range(number):
        host = f"host-{place:03}"
        data = stretched(sources["slow" if place == straggler else "quick"], host, 1 + dice.uniform(-0.02, 0.02))
        sizes.append((run / f"{host}.xplane.pb").write_bytes(data))
    return f"host-{straggler:03}", sizes


def stretched(profile: bytes, host: str, factor: float) -> bytes:
    """The profile of another host: its own name, all times scaled."""
    space = parse_xspace(profile)
    del space.hostnames[:]
    space.hostnames.append(host.encode())
    for plane in space.planes:
        for line in plane.lines:
            events = parse_events(list(line.events))
            for event in events:
                event.offset_ps, event.duration_ps = round(event.offset_ps * factor), round(event.duration_ps * factor)
            del line.events[:]
            line.events.extend(event.SerializeToString() for event in events)
    data: bytes = message_class("XSpace")(
        planes=space.planes, hostnames=space.hostnames, errors=space.errors, warnings=space.warnings
    ).SerializeToString()
    return data


def measure(logdir: Path) -> dict[str, Any]:
    """Analyse in a separate process, so that its peak memory is measured on its own."""
    done = subprocess.run([sys.executable, "-c", TASK, logdir], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"the analysis failed.\n{done.stderr[-2000:]}")
    measured: dict[str, Any] = json.loads(done.stdout)
    return measured


if __name__ == "__main__":
    main()
