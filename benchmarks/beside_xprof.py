"""Compares report.html with XProf on the same capture: what each shows, after how many seconds, from how many bytes.

In: logdirs or run folders with one profile each, and a Python with XProf installed (in a separate
environment).  Out: tables on stdout and, with `--write-docs`, between the markers of docs/beside-xprof.md.

    python -m venv /tmp/xprof && /tmp/xprof/bin/pip install xprof
    python benchmarks/beside_xprof.py RUN... --xprof /tmp/xprof/bin/python --write-docs

XProf's server runs on the loopback interface as a child process of this script. A headless Chromium opens its pages and
report.html in alternation, each several times with an empty cache. Requests to other machines are refused and counted, so the
comparison is that of a machine without internet access. Every figure is the median of the repeats.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import json
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from page_load import PATIENCE_S, Load, find_browser, load_page
from published import machine_sentence, write_section

from advisor.profile.file_content import read_profile
from advisor.profile.profile_files import find_profiles

DOCS = Path(__file__).parents[1] / "docs/beside-xprof.md"
ROOT = "/data/plugin/profile"
PAGES = {
    "overview_page": ("overview", "overview page"),
    "input_pipeline_analyzer": ("input", "input-pipeline analyzer"),
    "framework_op_stats": ("ops", "TensorFlow stats"),
    "kernel_stats": ("kernels", "GPU kernel stats"),
    "memory_profile": ("memory", "memory profile"),
    "pod_viewer": ("hosts", "pod viewer"),
    "trace_viewer@": ("timeline", "trace viewer"),
    "tf_data_bottleneck_analysis": ("pipelines", "tf.data analysis"),
}
"""XProf's tool -> page of report.html, and the name in TensorFlow's profiler guide."""
SERVER = """
import sys
from xprof import server
server._get_wildcard_address = lambda port: "127.0.0.1"
server.start_server(sys.argv[1], int(sys.argv[2]), grpc_port=int(sys.argv[3]),
                    worker_service_address="127.0.0.1:" + sys.argv[3], hide_capture_profile_button=True)
"""


def main() -> None:
    """Measure, print, and put the tables into the docs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="run folder or logdir")
    parser.add_argument("--xprof", type=Path, required=True, help="a Python that has xprof installed")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--screenshots", type=Path, help="a folder for pictures of every page")
    parser.add_argument("--write-docs", action="store_true", help=f"replace the tables in {DOCS.name}")
    args = parser.parse_args()
    lines = [f"{machine_sentence()} XProf {_version(args.xprof)}.", ""]
    for run in args.runs:
        lines += _compared(run, args.xprof, args.repeats, args.screenshots and args.screenshots / run.name)
    print("\n".join(lines))
    if args.write_docs:
        write_section("beside-xprof", lines, DOCS)


def _compared(run: Path, xprof: Path, repeats: int, screenshots: Path | None) -> list[str]:
    """The Markdown of one run."""
    with tempfile.TemporaryDirectory() as folder:
        logdir, session = _copied(run, Path(folder))
        page, seconds = _report(run, Path(folder))
        with _server(xprof, logdir) as (address, started_s):
            data = {tool: _data(address, session, tool) for tool in _tools(address, session)}
            loads = _loads(address, session, list(data), page, repeats, screenshots)
        report = json.loads((page.parent / "out/report.json").read_bytes())
    return [
        f"### {run.resolve().name}",
        "",
        f"XProf's server answered after {started_s:.1f} s; `advisor analyze` made report.html in {seconds:.1f} s, imports"
        " included.",
        "",
        *_rows(data, loads, report),
        "",
        *_refused(loads),
        "",
    ]


def _copied(run: Path, folder: Path) -> tuple[Path, str]:
    """The profile alone in a separate logdir (XProf writes caches next to it), and the name of its session."""
    (profile,) = find_profiles(run).paths
    session = profile.parent.name if profile.parent.parent.name == "profile" else "run"
    target = folder / "logdir/plugins/profile" / session
    target.mkdir(parents=True)

    (target / profile.name.removesuffix(".gz")).write_bytes(read_profile(profile))
    return folder / "logdir", session


def _report(run: Path, folder: Path) -> tuple[Path, float]:
    """report.html of the run, and the duration of the command in seconds."""
    page = folder / "report.html"
    command = [sys.executable, "-m", "advisor", "analyze", "--quiet", "--out", str(folder / "out"), "--html", str(page)]
    start = time.perf_counter()
    subprocess.run([*command, str(run)], check=True, stdout=subprocess.DEVNULL)
    return page, time.perf_counter() - start


@contextlib.contextmanager
def _server(python: Path, logdir: Path) -> Iterator[tuple[str, float]]:
    """XProf's server: its address, and the seconds until it responded."""
    ports = [_free_port(), _free_port()]
    address = f"http://127.0.0.1:{ports[0]}"
    with tempfile.TemporaryFile() as log:
        start = time.perf_counter()
        process = subprocess.Popen(
            [python, "-c", SERVER, str(logdir), *map(str, ports)], stdout=log, stderr=subprocess.STDOUT
        )
        try:
            while True:
                with contextlib.suppress(OSError):
                    urllib.request.urlopen(f"{address}{ROOT}/runs", timeout=PATIENCE_S).read()
                    break
                if process.poll() is not None or time.perf_counter() - start > PATIENCE_S:
                    log.seek(0)
                    sys.exit(f"XProf's server does not answer:\n{log.read().decode(errors='replace')[-2000:]}")
                time.sleep(0.05)
            yield address, time.perf_counter() - start
        finally:
            process.terminate()
            process.wait()


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _tools(address: str, session: str) -> list[str]:
    return [str(tool) for tool in json.loads(_answer(f"{address}{ROOT}/run_tools", run=session))]


def _data(address: str, session: str, tool: str) -> tuple[str, float]:
    """What the data of a tool holds, and the seconds until it was first available."""
    start = time.perf_counter()
    try:
        answer = _answer(f"{address}{ROOT}/data", run=session, tag=tool, host=_host(address, session, tool))
    except urllib.error.HTTPError as error:
        return f"error {error.code}", time.perf_counter() - start
    return _described(answer), time.perf_counter() - start


def _host(address: str, session: str, tool: str) -> str:
    hosts = json.loads(_answer(f"{address}{ROOT}/hosts", run=session, tag=tool))
    return str(hosts[0]["hostname"]) if hosts else ""


def _answer(url: str, **query: str) -> bytes:
    with urllib.request.urlopen(f"{url}?{urllib.parse.urlencode(query)}", timeout=PATIENCE_S) as response:
        data: bytes = response.read()
    return gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data


def _described(answer: bytes) -> str:
    """The number of rows of each table in a response."""
    try:
        value = json.loads(answer)
    except ValueError:
        return "not JSON"
    tables = value if isinstance(value, list) else [value]
    rows = [len(table["rows"]) for table in tables if isinstance(table, dict) and "rows" in table]
    if rows:
        return f"rows: {', '.join(map(str, rows))}"
    if isinstance(value, dict) and "traceEvents" in value:
        return f"{len(value['traceEvents']):,} events"
    return f"{len(answer):,} bytes of JSON"


def _loads(
    address: str, session: str, tools: list[str], page: Path, repeats: int, screenshots: Path | None
) -> dict[str, list[Load]]:
    """Loads of every page, alternating; keyed by page name for report.html and by tool for XProf."""
    from playwright.sync_api import sync_playwright

    urls: dict[str, str] = {}
    for tool, (ours, _) in PAGES.items():
        if tool in tools:
            query = {"run": session, "tag": tool, "host": _host(address, session, tool)}
            urls[tool] = f"{address}{ROOT}/{tool}?{urllib.parse.urlencode(query)}"
        urls[ours] = f"{page.as_uri()}#{ours}"
    loads: dict[str, list[Load]] = {name: [] for name in urls}
    with sync_playwright() as running:
        browser = running.chromium.launch(executable_path=find_browser(), args=["--no-sandbox"])
        for turn in range(repeats):
            for name, url in urls.items():
                picture = None if turn or screenshots is None else screenshots / f"{name.strip('@')}.png"
                loads[name].append(load_page(browser, url, picture))
        browser.close()
    return loads


def _rows(data: dict[str, tuple[str, float]], loads: dict[str, list[Load]], report: dict[str, Any]) -> Iterator[str]:
    """The table: one row per page of the profiler guide."""
    yield "| page | XProf's data | there after | paints | settled | loads | rows | ours holds | paints | loads | rows |"
    yield "|---|---|---|---|---|---|---|---|---|---|---|"
    for tool, (ours, title) in PAGES.items():
        theirs, own = loads.get(tool, []), loads[ours]
        what, ready_s = data.get(tool, ("not offered", 0.0))
        yield (
            f"| {title} | {what} | {f'{ready_s:.2f} s' if tool in data else '–'} | {_seconds(theirs, 'first_paint_s')} "
            f"| {_seconds(theirs, 'last_answer_s')} | {_megabytes(theirs)} | {_num_rows(theirs)} | {_held(report, ours)} "
            f"| {_seconds(own, 'first_paint_s')} | {_megabytes(own)} | {_num_rows(own)} |"
        )


def _refused(loads: dict[str, list[Load]]) -> Iterator[str]:
    """The other hosts that the pages requested."""
    own = {ours for ours, _ in PAGES.values()}
    hosts = [
        sorted(
            {
                host
                for name, opened in loads.items()
                if (name in own) == is_own
                for load in opened
                for host in load.refused
            }
        )
        for is_own in (False, True)
    ]
    theirs, ours = (", ".join(names) or "none" for names in hosts)
    yield f"Other machines that the pages tried to reach, without success: XProf's {theirs}; ours {ours}."


def _held(report: dict[str, Any], page: str) -> str:
    """The number of rows of a page of report.html."""
    found = report["statistics"] or {}
    memory = (found.get("memory") or {}).get("allocators", [])
    rows = {
        "pipelines": [len(pipeline["iterators"]) for pipeline in report["pipelines"]],
        "overview": [found["overview"]["num_steps"]] if found.get("overview") else [],
        "input": [len(found["input"]["ops"])] if found.get("input") else [],
        "ops": [len(found[key]) for key in ("op_types", "ops") if found.get(key)],
        "kernels": [len(found["kernels"])] if found.get("kernels") else [],
        "memory": [len(one["users"]) for one in memory],
        "hosts": [host["num_steps"] for host in found.get("hosts") or ()],
        "timeline": [view["num_events"] for view in report["timeline"]],
    }[page]
    unit = {"pipelines": "iterators", "overview": "steps", "hosts": "steps", "timeline": "events"}.get(page, "rows")
    if not any(rows):
        return "no data; it says what to capture"
    return f"{unit}: {', '.join(f'{row:,}' for row in rows)}"


def _seconds(loads: list[Load], name: str) -> str:
    if not loads:
        return "–"
    found = [value for load in loads if (value := getattr(load, name)) is not None]
    return f"{statistics.median(found):.2f} s" if found else "never"


def _megabytes(loads: list[Load]) -> str:
    if not loads:
        return "–"
    size = statistics.median(load.num_bytes for load in loads)
    answers = statistics.median(load.num_answers for load in loads)
    return f"{size / 1e6:.2f} MB in {answers:.0f}"


def _num_rows(loads: list[Load]) -> str:
    return f"{statistics.median(load.num_rows for load in loads):.0f}" if loads else "–"


def _version(python: Path) -> str:
    code = "from importlib.metadata import version; print(version('xprof'))"
    return subprocess.run([python, "-c", code], check=True, capture_output=True, text=True).stdout.strip()


if __name__ == "__main__":
    main()
