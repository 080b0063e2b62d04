"""Measures what analysing many hosts costs, here and on a Dask cluster, and checks that what was planted is found.

In: real captures of one pipeline at three settings (taken here, or given).  Out: seconds and peak memory of `advisor analyze
LOGDIR`, and which hosts were named.

    python benchmarks/many_hosts.py                              # 2 to 256 hosts
    python benchmarks/many_hosts.py --hosts 16 64 256 --quick RUN --slow RUN --other RUN
    python benchmarks/many_hosts.py --xprof xprof/bin/python --write-docs        # compared with XProf's converter
    python benchmarks/many_hosts.py --engine local dask --hosts 16 64 256 1024 --before OLD/bin/python --write-docs
    python benchmarks/many_hosts.py --faults --hosts 64          # what a cluster may lose

`--before` names the interpreter of an environment with an earlier version. The Dask cluster is a scheduler and 4 workers of one
thread each on this machine. `replicated_hosts.py` says what the hosts are.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from local_cluster import Cluster, cluster
from lost_hosts import survive
from published import machine_sentence, write_section
from replicated_hosts import SLOWER, Captures, Planted, capture, make_hosts
from xprof_converter import convert

from advisor.graph.inferred_calls import HINT
from advisor.profile.profile_files import find_profiles

WORKERS = 4
TASK = r"""
import json, re, resource, sys, time
from pathlib import Path
import advisor.hosts, advisor.statistics.report_sections
from advisor.engine import load_rules
from advisor.workflows.analyze import analyze_run
from advisor.report.report_json import report_to_bytes
from advisor.model.settings import Settings
rules = load_rules((), Settings())
engine = {"engine": sys.argv[2]} if len(sys.argv) > 2 else {}
if engine:
    import distributed
start = time.perf_counter()
report = analyze_run(Path(sys.argv[1]), rules, Settings(), **engine)
size = len(report_to_bytes(report))
analysis = report.analysis
seconds = time.perf_counter() - start
unit = 1 if sys.platform == "darwin" else 1024
peak = [resource.getrusage(who).ru_maxrss * unit for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
if Path("/proc/self/status").exists():  # ru_maxrss starts with the memory of the process that started this one
    peak[0] = int(re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[1]) * 1024
print(json.dumps({
    "seconds": seconds, "peak_bytes": peak[0], "peak_worker_bytes": peak[1], "report_bytes": size,
    "hosts": len(analysis.hosts.hosts), "first": analysis.hosts.hosts[0].hostname,
    "stragglers": [host.hostname for host in analysis.hosts.hosts if host.is_straggler],
    "sentences": analysis.hosts.stragglers, "differences": analysis.hosts.differences, "warnings": report.warnings,
}))
"""


def main() -> None:
    """Create the hosts, analyse them, and print the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hosts", nargs="+", type=int, default=[2, 16, 64, 256])
    parser.add_argument("--engine", nargs="+", choices=["local", "dask"], default=["local"])
    parser.add_argument(
        "--before", type=Path, metavar="PYTHON", help="interpreter of an environment with an earlier version"
    )
    parser.add_argument(
        "--faults", action="store_true", help="lose a worker, a file and the scheduler instead of measuring"
    )
    parser.add_argument("--quick", type=Path, help="capture for most hosts (default: capture one)")
    parser.add_argument("--slow", type=Path, help="capture for stragglers")
    parser.add_argument("--other", type=Path, help="capture for hosts with another configuration")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--xprof", type=Path, metavar="PYTHON", help="interpreter of an environment with xprof")
    parser.add_argument("--write-docs", action="store_true", help="put the table into docs/benchmarks.md")
    options = parser.parse_args()
    rows, compared, survived = [], [], []
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        captures = Captures(
            options.quick or capture(folder / "quick"),
            options.slow or capture(folder / "slow", work=SLOWER),
            options.other or capture(folder / "other", parallel=2),
        )
        workers = None
        if "dask" in options.engine and not options.faults:
            workers = stack.enter_context(cluster(folder / "cluster", WORKERS))
        for number in options.hosts:
            logdir = folder / f"hosts{number}"
            planted = make_hosts(logdir, captures, number, random.Random(options.seed))
            print(f"{number} hosts, {sum(planted.sizes) / 1e6:.1f} MB, largest file {max(planted.sizes) / 1e6:.2f} MB")
            if options.faults:
                survived += [f"| {number} | {text} |" for text in survive(logdir, planted, folder / "faults")]
            else:
                cells = measure_all(logdir, planted, options, workers)
                beside = convert(options.xprof, find_profiles(logdir).paths) if options.xprof else None
                if beside:
                    print(
                        f"  XProf {beside['version']}: {beside['seconds']:.2f} s, {beside['peak_bytes'] / 1e6:.0f} MB"
                    )
                if "local" in cells:
                    rows.append(_row(number, planted, cells["local"], beside))
                compared.append(_compared(number, planted, cells))
            shutil.rmtree(logdir)
    if options.write_docs:
        _write(options, rows, compared, survived)


def measure_all(
    logdir: Path, planted: Planted, options: argparse.Namespace, workers: Cluster | None
) -> dict[str, dict[str, Any]]:
    """Analyse a run with every engine that was asked for; ends the benchmark if something planted is not found."""
    cells = {}
    if options.before:
        cells["before"] = measure(options.before, logdir)
    if "local" in options.engine:
        cells["local"] = measure(Path(sys.executable), logdir)
    if workers is not None:
        cells["dask"] = measure(Path(sys.executable), logdir, workers.engine)
        cells["dask"]["peak_worker_bytes"] = workers.peak_bytes()
    for engine, found in cells.items():
        number = len(planted.sizes)
        print(f"  {engine}: {found['seconds']:.2f} s, {found['seconds'] / number * 1e3:.1f} ms per host; peak memory "
              f"{found['peak_bytes'] / 1e6:.0f} MB here, {found['peak_worker_bytes'] / 1e6:.0f} MB in the largest worker "
              f"(both with their imports); report.json {found['report_bytes'] / 1e6:.1f} MB")  # fmt: skip
        is_found = sorted(found["stragglers"]) == list(planted.stragglers) and found["first"] in planted.stragglers
        print(f"    planted stragglers {', '.join(planted.stragglers)}: {'found, and no other' if is_found else 'NOT FOUND'}\n"
              f"    {' '.join(found['sentences'][:1])} {' '.join(found['differences'])}", flush=True)  # fmt: skip
        warnings = [each for each in found["warnings"] if each != HINT]  # there is no recording here
        if not is_found or warnings or found["hosts"] != number or (planted.others and not found["differences"]):
            sys.exit(f"this was not to be: {warnings}")
    return cells


def measure(python: Path, logdir: Path, *engine: str) -> dict[str, Any]:
    """Analyse in a separate process, so that its peak memory is measured on its own."""
    done = subprocess.run(
        [python, "-c", TASK, logdir, *engine], cwd=logdir, capture_output=True, text=True, check=False
    )  # in another folder, as `-c` imports from the current one
    if done.returncode:
        sys.exit(f"the analysis failed.\n{done.stderr[-2000:]}")
    measured: dict[str, Any] = json.loads(done.stdout)
    return measured


def _row(number: int, planted: Planted, measured: dict[str, Any], beside: dict[str, Any] | None) -> str:
    xprof = f"{beside['seconds']:.2f} s | {beside['peak_bytes'] / 1e6:.0f} MB" if beside else "- | -"
    return f"| {number} | {_files(planted)} | {_cell(measured)} | found, and no other | {xprof} |"


def _compared(number: int, planted: Planted, cells: dict[str, dict[str, Any]]) -> str:
    columns = [_cell(cells[engine]) if engine in cells else "- | -" for engine in ("before", "local", "dask")]
    size = next(reversed(cells.values()))["report_bytes"]
    return f"| {number} | {_files(planted)} | {' | '.join(columns)} | {size / 1e6:.1f} MB |"


def _files(planted: Planted) -> str:
    return f"{sum(planted.sizes) / 1e6:.0f} MB, the largest {max(planted.sizes) / 1e6:.1f} MB"


def _cell(measured: dict[str, Any]) -> str:
    return (
        f"{measured['seconds']:.2f} s | {measured['peak_bytes'] / 1e6:.0f} MB, the largest worker"
        f" {measured['peak_worker_bytes'] / 1e6:.0f} MB"
    )


def _write(options: argparse.Namespace, rows: list[str], compared: list[str], survived: list[str]) -> None:
    """Put the tables into docs/benchmarks.md: a section for each kind of run."""
    if options.faults:
        head = ["| hosts | fault | result | seconds |", f"|{'---|' * 4}"]
        write_section("lost hosts", [machine_sentence(), "", *head, *survived])
    elif "dask" in options.engine or options.before:
        head = [
            "| hosts | files | before | its memory | here | its memory | Dask, 4 workers | the driver's memory | report.json |",
            f"|{'---|' * 9}",
        ]
        write_section("hosts on an engine", [machine_sentence(), "", *head, *compared])
    else:
        head = [
            "| hosts | files | `advisor analyze` | peak memory | planted stragglers | XProf's converter | its peak memory |",
            f"|{'---|' * 7}",
        ]
        write_section("many hosts", [machine_sentence(), "", *head, *rows])


if __name__ == "__main__":
    main()
