"""Lets `advisor fix` at every trap, and says which of them it harmed.

    python -m tests.traps [--only NAME] [--levels default,reordered] [--regardless-of-speed] [--asked]
                          [--advisor PATH] [--jobs N] [--budget 60] [--no-nested] [--json PATH] [--write-docs SECTION]
    python -m tests.traps --wrong [--only NAME]

In: `tests/traps/scripts`.  Out: one line for each script and level; exit code 1 if any was harmed or could not be judged. With
`--wrong` no advisor runs: each trap's own wrong fix is applied, and the invariant has to show it.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.traps.catalogue import LEVELS, Trap, harmed_keys, traps
from tests.traps.judging import Row, ScriptFails, Scripts, Tool, judge
from tests.traps.table import table_lines, write_table


def main(arguments: Sequence[str] | None = None) -> int:
    """Judge, print, write."""
    options = _options(arguments)
    chosen = [trap for trap in traps() if not options.only or trap.name in options.only]
    tool = Tool(options.advisor, options.budget, options.regardless_of_speed, rules() if options.asked else ())
    began = time.monotonic()
    if options.rows:
        return _conclude(_saved(options.rows), None, tool, options.write_docs)
    with Scripts(tool.python) as scripts, ThreadPoolExecutor(options.jobs) as pool:
        if options.wrong:
            missed = [name for name in pool.map(lambda trap: _missed(scripts, trap), chosen) if name]
            print(f"{len(chosen)} wrong fixes in {time.monotonic() - began:.0f} s; not seen: {missed or 'none'}.")
            return 1 if missed else 0

        def judged(trap: Trap) -> list[Row]:
            rows = judge(tool, scripts, trap, options.levels, options.nested)
            print("\n".join(_line(row) for row in rows), flush=True)
            with lock:
                done.extend(rows)
                if options.json is not None:  # after each trap, so that an interrupted run leaves what it has seen
                    options.json.write_text(json.dumps([dataclasses.asdict(row) for row in done], indent=1), "utf-8")
            return rows

        done: list[Row] = []
        lock = threading.Lock()
        all_rows = [row for rows in pool.map(judged, chosen) for row in rows]
    return _conclude(all_rows, time.monotonic() - began, tool, options.write_docs)


def _conclude(rows: Sequence[Row], seconds: float | None, tool: Tool, section: str | None) -> int:
    lines = table_lines(rows, seconds, tool)
    print("\n".join(["", *lines]))
    if section is not None:
        write_table(section, lines)
    return 1 if any(row.harmed or row.is_failed for row in rows) else 0


def _saved(paths: Sequence[Path]) -> list[Row]:
    """The rows of earlier runs."""
    all_rows = [Row(**row) for path in paths for row in json.loads(path.read_text(encoding="utf-8"))]
    return [dataclasses.replace(row, fixes=tuple(row.fixes), harmed=tuple(row.harmed)) for row in all_rows]


def rules() -> tuple[str, ...]:
    """Ids of the shipped rules."""
    from advisor.engine import load_rules
    from advisor.model.settings import Settings

    return tuple(rule.id for rule in load_rules([], Settings()))


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.traps", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--only", action="append", metavar="NAME", help="a trap; may be repeated")
    add("--levels", default=",".join(LEVELS), help="levels of --allow, separated by commas (default: all four)")
    add("--regardless-of-speed", action="store_true", help="apply all that is legal and equal, however fast it is")
    add(
        "--asked", action="store_true", help="ask for every rule by name (--only), so that nothing is left out as `ask`"
    )
    add("--advisor", type=Path, default=Path(sys.executable).with_name("advisor"), help="another version's executable")
    add("--jobs", type=int, default=1, help="traps at a time")
    add("--budget", type=float, default=60.0, metavar="S", help="--budget of advisor fix, s (default: 60)")
    add("--no-nested", dest="nested", action="store_false", help="run every level by itself")
    add("--json", type=Path, metavar="PATH", help="write the rows there")
    add("--rows", type=Path, action="append", metavar="PATH", help="judge nothing; the table of rows written by --json")
    add("--write-docs", metavar="SECTION", help="put the table into that section of docs/traps.md")
    add("--wrong", action="store_true", help="apply the traps' own wrong fixes instead of an advisor's")
    options = parser.parse_args(arguments)
    options.levels = tuple(options.levels.split(","))
    options.advisor = options.advisor.absolute()
    unknown = set(options.levels) - set(LEVELS)
    if unknown:
        parser.error(f"{', '.join(sorted(unknown))}: there is {', '.join(LEVELS)}")
    names = {trap.name for trap in traps()}
    if set(options.only or ()) - names:
        parser.error(f"there is no trap {', '.join(sorted(set(options.only) - names))}")
    if not options.advisor.exists():
        parser.error(f"there is no {options.advisor}")
    return options


def _missed(scripts: Scripts, trap: Trap) -> str:
    """Why the trap is no trap; empty if its invariant is steady and shows the wrong fix at the default level."""
    try:
        before, again = (scripts.invariant(trap, trap.text()) for _ in range(2))
        after = scripts.invariant(trap, trap.wrong_text())
    except ScriptFails as error:
        return f"{trap.name} ({error})"
    harmed = harmed_keys(trap, "default", before, after)
    print(f"{trap.name}: {', '.join(harmed)}", flush=True)
    if before != again:
        return f"{trap.name} (two runs differ)"
    return "" if harmed else trap.name


def _line(row: Row) -> str:
    verdict = "FAILED" if row.is_failed else "HARMED " + ", ".join(row.harmed) if row.harmed else "unharmed"
    fixes = ", ".join(row.fixes) or "nothing"
    note = f"  [{row.note}]" if row.note else ""
    return f"{row.trap}  {row.level}  written: {fixes}  {verdict}  {row.seconds:.0f} s{note}"


if __name__ == "__main__":
    sys.exit(main())
