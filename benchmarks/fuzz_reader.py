"""Coverage-guided fuzzing of the reader and everything that follows it: analysis, rules, reports (atheris, libFuzzer).

In: a corpus folder, filled with small captures on the first start.  Out: inputs that raise anything but `AdvisorError`, as
files `crash-*`, `timeout-*` or `oom-*` in the current folder. Each finding becomes a case in `tests/hostile`.

    pip install atheris
    nice -n 19 python benchmarks/fuzz_reader.py CORPUS -max_total_time=600 -timeout=20 -rss_limit_mb=4096

Options after CORPUS are libFuzzer's. Half of the mutations change bytes. The other half change the decoded message: an
event's fields, ids, names and times, because mutated bytes alone rarely get past the decoder.
"""

from __future__ import annotations

import io
import random
import sys
import tempfile
from pathlib import Path
from typing import Any

import atheris
from rich.console import Console

with atheris.instrument_imports(include=["advisor"]):  # what is imported later would not be seen
    import advisor.graph.assemble
    import advisor.graph.node_calls
    import advisor.graph.nodes
    import advisor.graph.thread_states
    import advisor.graph.unprofiled_steps
    import advisor.graph.verdict
    import advisor.profile.step_markers  # noqa: F401
    from advisor.engine import load_rules, run_rules
    from advisor.graph import analyse
    from advisor.graph.inferred_calls import infer_calls
    from advisor.model.errors import AdvisorError
    from advisor.model.settings import Settings
    from advisor.profile import read_trace
    from advisor.profile.host_view import draw_hosts
    from advisor.profile.xspace import XSpaceDecodeError, message_class, parse_events, parse_xspace
    from advisor.report.report_json import report_to_bytes
    from advisor.report.report_text import print_report
    from advisor.statistics import add_statistics

ROOT = Path(__file__).parents[1]
MOST_SEED_BYTES = 60_000
ODD_NUMBERS = (0, 1, -1, 2, 7, 255, 2**31 - 1, 2**31, 2**32, 2**53, 2**62, 2**63 - 1, -(2**63), 10**12, 10**18)
ODD_NAMES = (
    b"", b"Iterator::Root", b"Iterator::Root::Prefetch", b"Iterator::", b"Iterator::A[0]::B", b"Iterator::Root::Zip[1]::Range",
    b"ParallelMapProduce", b"ParallelMapConsume", b"InstantiatedCapturedFunction::Run", b"ExecutorState::Process",
    b"id", b"parent_id", b"element_id", b"name", b"step_num", b"_r", b"parallelism", b"buffer_limit", b"buffered_elements",
    b"/host:CPU", b"/device:GPU:0", b"Task Environment", b"\xff\xfe", b"\x1b[31m", "\u202e".encode(), b"x" * 5000,
    b"Iterator::Root::FlatMap[0]::Generator", b"ReduceIterator::Root::Scan", b"tf_data_multi_device_iterator",
)  # fmt: skip
RULES = load_rules((), Settings())
FOLDER = Path(tempfile.mkdtemp(prefix="fuzz-reader-"))


def try_one(data: bytes) -> None:
    """Read and analyse `data` as a profile; anything but AdvisorError is a finding."""
    path = FOLDER / "input.xplane.pb"
    path.write_bytes(data)
    try:
        trace = read_trace(path)
        analysis = add_statistics(infer_calls(analyse(trace, None, "input")), [path])
        report = run_rules(analysis, RULES, Settings())
    except AdvisorError:
        return
    draw_hosts(trace)
    if report.rule_errors:
        raise RuntimeError(report.rule_errors[0])
    report_to_bytes(report)
    text = io.StringIO()
    print_report(report, Console(file=text, width=100))
    odd = [char for char in text.getvalue() if not char.isprintable() and char != "\n"]
    if odd:
        raise RuntimeError(f"characters on the terminal: {odd}")


def mutate(data: bytes, max_size: int, seed: int) -> bytes:
    """A changed profile: half the time its messages are changed, otherwise its bytes."""
    dice = random.Random(seed)
    if dice.random() < 0.5:
        try:
            space = parse_xspace(data)
            for _ in range(dice.randint(1, 4)):
                _change(space, dice)
            changed: bytes = space.SerializeToString()
        except (XSpaceDecodeError, ValueError, IndexError):
            changed = b""
        if 0 < len(changed) <= max_size:
            return changed
    mutated: bytes = atheris.Mutate(data, max_size)
    return mutated


def _change(space: Any, dice: random.Random) -> None:
    if not space.planes or dice.random() < 0.02:
        space.planes.add(name=dice.choice(ODD_NAMES))
    plane = dice.choice(space.planes)
    action = dice.randrange(9)
    if action == 0:
        plane.name = dice.choice((b"/host:CPU", *ODD_NAMES))
    elif action == 1:
        plane.event_metadata[dice.choice(list(plane.event_metadata) or [1])].name = dice.choice(ODD_NAMES)
    elif action == 2:
        plane.stat_metadata[dice.choice(list(plane.stat_metadata) or [1])].name = dice.choice(ODD_NAMES)
    elif action == 3 and plane.lines:
        dice.choice(plane.lines).timestamp_ns = _int64(dice.choice(ODD_NUMBERS))
    elif action == 4 and plane.lines:
        plane.lines.add().CopyFrom(dice.choice(plane.lines))
    elif plane.lines:
        _change_event(plane, dice.choice(plane.lines), dice)


def _change_event(plane: Any, line: Any, dice: random.Random) -> None:
    if not line.events:
        line.events.append(
            message_class("XEvent")(metadata_id=dice.choice(list(plane.event_metadata) or [1])).SerializeToString()
        )
    place = dice.randrange(len(line.events))
    event = parse_events([line.events[place]])[0]
    action = dice.randrange(6)
    if action == 0:
        event.offset_ps = _int64(dice.choice(ODD_NUMBERS))
    elif action == 1:
        event.duration_ps = _int64(dice.choice(ODD_NUMBERS))
    elif action == 2:
        event.metadata_id = _int64(dice.choice((*list(plane.event_metadata)[:20], *ODD_NUMBERS)))
    elif action == 3 and event.stats:
        stat = dice.choice(event.stats)
        stat.int64_value = _int64(dice.choice(ODD_NUMBERS))
    elif action == 4 and event.stats:
        stat = dice.choice(event.stats)
        stat.double_value = dice.choice((float("nan"), float("inf"), -1.0, 1e308))
    else:
        stat = event.stats.add(metadata_id=_int64(dice.choice((*list(plane.stat_metadata)[:20], *ODD_NUMBERS))))
        stat.uint64_value = dice.choice(ODD_NUMBERS) % 2**64
    if dice.random() < 0.3:
        line.events.insert(place, event.SerializeToString())
    else:
        line.events[place] = event.SerializeToString()


def _int64(number: int) -> int:
    return (number + 2**63) % 2**64 - 2**63


def fill(corpus: Path) -> None:
    """Put small captures of real pipelines into an empty corpus."""
    from advisor.profile.file_content import read_profile

    if corpus.is_file():  # an input to try again
        return
    corpus.mkdir(parents=True, exist_ok=True)
    if any(corpus.iterdir()):
        return
    for profile in sorted(ROOT.glob("tests/data/*/plugins/profile/*/*.xplane.pb*")):
        space = parse_xspace(read_profile(profile))
        for plane in space.planes:
            for line in plane.lines:
                del line.events[40:]
        kept = [plane for plane in space.planes if plane.name == b"/host:CPU"]
        data = message_class("XSpace")(planes=kept, hostnames=space.hostnames).SerializeToString()
        (corpus / profile.parents[3].name).write_bytes(
            data[:MOST_SEED_BYTES] if len(data) > 4 * MOST_SEED_BYTES else data
        )


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    fill(Path(sys.argv[1]))
    atheris.Setup([*sys.argv[:1], *sys.argv[2:], sys.argv[1]], try_one, custom_mutator=mutate)
    atheris.Fuzz()
