"""Checks that nothing that exceeds the memory is proposed or tried: the realistic examples with little memory.

    python benchmarks/little_memory.py [--limits 1500 3000] [--write-docs]

In: the realistic scripts of `examples/`.  Out: one row per script and limit: the free memory that the advisor saw, the
predicted memory of its plan and of the fixes it tried, the measured peak, and whether a process was killed.

`advisor fix --pipeline-only` runs in a separate cgroup with the given number of MiB (version 1 or 2; creating one needs the
permissions for it). The page cache counts towards the limit, and the kernel reclaims it as needed.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from published import machine_sentence, write_section

from advisor.model.units import format_bytes

EXAMPLES = Path(__file__).parents[1] / "examples"
SCRIPTS = ("flowers_like", "image_folder", "text_lines")
ROOT = Path("/sys/fs/cgroup")
COLUMNS = "| script | limit | free, as seen | plan | tried | peak of a trial | ended |\n|---|---|---|---|---|---|---|"


def main() -> None:
    """Run everything, print, and write the table on `--write-docs`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limits", type=int, nargs="+", default=[1500, 3000], metavar="MIB")
    parser.add_argument("--only", action="append", choices=SCRIPTS, help="may be repeated")
    parser.add_argument("--write-docs", action="store_true", help="put the table into docs/benchmarks.md")
    options = parser.parse_args()
    lines = [machine_sentence(), "", *COLUMNS.splitlines()]
    print(COLUMNS)
    for name in options.only or SCRIPTS:
        for limit in options.limits:
            lines.append(row(name, limit))
            print(lines[-1], flush=True)
    if options.write_docs:
        write_section("little-memory", lines)


def row(name: str, limit_mib: int) -> str:
    """One line of the table."""
    with cgroup(limit_mib << 20) as (group, tasks), tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "fix.json"
        command = [sys.executable, "-m", "advisor", "fix", "--pipeline-only", "--quiet", "--budget", "2min"]
        command += ["--json", str(report), "--out", str(Path(folder) / "run"), str(EXAMPLES / f"{name}.py")]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, preexec_fn=lambda: tasks.write_text(str(os.getpid()))
        )
        ended = f"exit code {done.returncode}, {kills(group)} killed by the kernel"
        if done.returncode or not report.exists():
            said = done.stderr.strip().splitlines() or [""]
            return f"| {name} | {limit_mib} MiB | | | | | {ended}: {said[-1]} |"
        found = json.loads(report.read_text())
    plan = (found.get("outlook") or {}).get("plan")
    planned = "none" if not plan else f"{format_bytes(plan['memory_bytes'])}"
    tried = [f"{fix['rule']} ({fix['verdict']})" for fix in found["fixes"]]
    left = [each for each in found["proof"]["left_out"] if "memory" in each]
    peaks = [fix["memory_bytes"]["after"] or 0 for fix in found["proof"]["fixes"]]
    free = (found.get("host") or {}).get("memory_free_bytes")
    cells = [
        name, f"{limit_mib} MiB", "" if free is None else format_bytes(free), planned,
        "; ".join([*tried, *(f"not: {each}" for each in left)]) or "nothing", format_bytes(max(peaks, default=0)), ended,
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |"


@contextlib.contextmanager
def cgroup(limit_bytes: int) -> Iterator[tuple[Path, Path]]:
    """A new cgroup with a memory limit: its folder, and the file that adds processes to it.

    Raises:
        SystemExit: If that is forbidden.
    """
    is_v1 = (ROOT / "memory").is_dir()
    group = (ROOT / "memory" if is_v1 else ROOT) / f"advisor-little-memory-{os.getpid()}"
    try:
        group.mkdir()
        (group / ("memory.limit_in_bytes" if is_v1 else "memory.max")).write_text(str(limit_bytes))
    except OSError as error:
        with contextlib.suppress(OSError):
            group.rmdir()
        sys.exit(
            f"No cgroup can be made at {group}: {error.strerror}. Run it as root, or in a container that allows it."
        )
    try:
        yield group, group / "cgroup.procs"
    finally:
        for _ in range(50):  # processes that have just ended may still be counted
            with contextlib.suppress(OSError):
                group.rmdir()
                break
            time.sleep(0.1)


def kills(group: Path) -> int:
    """How many processes of the group the kernel has killed because memory ran out."""
    for name in ("memory.events", "memory.oom_control"):
        with contextlib.suppress(OSError):
            for line in (group / name).read_text().splitlines():
                if line.startswith("oom_kill "):
                    return int(line.split()[1])
    return 0


if __name__ == "__main__":
    main()
