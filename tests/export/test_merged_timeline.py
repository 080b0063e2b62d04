"""Merged timelines: every event of every run is there once, on tracks of its own run, nested, from 0 on."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from advisor.cli import main
from advisor.export.merged_timeline import merge_runs
from advisor.model.errors import AdvisorError
from advisor.profile.file_content import read_profile
from advisor.profile.profile_files import find_profiles
from advisor.profile.xspace import parse_events, parse_xspace
from tests.profile.made_profile import ProfileBuilder

DATA = Path(__file__).parents[1] / "data"
PROFILES = Path(__file__).parents[2] / "../shared/profiles"
TF1 = sorted(PROFILES.glob("tf1-timelines/*.json"))
FIVE = [DATA / name for name in ("keras_fit", "mirrored", "zip_filter", "generator", "interleave_map")]
needs_tf1 = pytest.mark.skipif(not TF1, reason="the profiles of others are not beside this checkout")


def merged(*paths, align="start"):
    return json.loads(b"".join(merge_runs(paths, align)))["traceEvents"]


def num_events(run):
    """Counted in the file itself, without the code under test."""
    total = 0
    for path in find_profiles(run).paths:
        for plane in parse_xspace(read_profile(path)).planes:
            for line in plane.lines:
                total += sum(bool(e.offset_ps or not e.num_occurrences) for e in parse_events(line.events))
    return total


def processes(events):
    return {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}


@pytest.mark.long
def test_five_runs_hold_all_events():
    events = merged(*FIVE)
    names = processes(events)
    drawn = Counter(names[event["pid"]].split(":")[0] for event in events if event["ph"] == "X")
    assert drawn == {run.name: num_events(run) for run in FIVE}
    assert min(event["ts"] for event in events if event["ph"] == "X") == 0


@pytest.mark.long
def test_events_of_a_track_nest():
    events = merged(*FIVE)
    by_track = {}
    for event in events:
        if event["ph"] == "X":
            by_track.setdefault((event["pid"], event["tid"]), []).append((event["ts"], -event["dur"]))
    assert max(map(len, by_track.values())) > 1
    for track in by_track.values():
        open_until = []
        for start, length in sorted(track):
            while open_until and open_until[-1] <= start + 1e-6:
                open_until.pop()
            assert not open_until or start - length <= open_until[-1] + 1e-6
            open_until.append(start - length)


def kept_by_perfetto(events):
    """Names of the slices that Perfetto's trace processor keeps: it rounds a start and a duration to nanoseconds each for itself,
    takes events by start, the longer first, and drops one that reaches past the end of the one that it began in."""
    kept, stacks = [], {}
    rounded = [(round(e["ts"] * 1000), round(e["dur"] * 1000), e) for e in events if e["ph"] == "X"]
    for start, duration, event in sorted(rounded, key=lambda row: (row[0], -row[1])):
        stack = stacks.setdefault((event["pid"], event["tid"]), [])
        while stack and stack[-1] <= start:
            stack.pop()
        if not stack or start + duration <= stack[-1]:
            stack.append(start + duration)
            kept.append(event["name"])
    return kept


@pytest.mark.long
def test_perfetto_keeps_every_event():
    events = merged(*FIVE)
    assert len(kept_by_perfetto(events)) == sum(event["ph"] == "X" for event in events)


def test_ends_between_nanoseconds_do_not_pass_each_other(tmp_path):
    profile = ProfileBuilder()
    line = profile.host.line("worker")
    for number in range(40):
        start = number + number * 0.0001
        line.event("outer", start + 0.0004, start + 0.4996).event("inner", start + 0.0007, start + 0.4994)
    path = profile.write(tmp_path / "plugins/profile/2026_01_01_00_00_00/host.xplane.pb")
    assert Counter(kept_by_perfetto(merged(path.parents[3]))) == {"outer": 40, "inner": 40}


def test_overlapping_events_get_tracks_of_their_own(tmp_path):
    profile = ProfileBuilder()
    profile.host.line("worker").event("a", 0, 10).event("b", 5, 15).event("inner", 6, 8).event("c", 11, 20)
    run = profile.write(tmp_path / "plugins/profile/2026_01_01_00_00_00/host.xplane.pb").parents[3]
    events = merged(run)
    tracks = {event["name"]: event["tid"] for event in events if event["ph"] == "X"}
    assert tracks["a"] == tracks["c"] != tracks["b"]
    names = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    assert names[tracks["b"]] == "worker (overlapping 1)"


@needs_tf1
def test_tf1_timelines_merge_with_all_their_events():
    events = merged(*TF1)
    wanted = Counter()
    for path in TF1:
        wanted.update(event["ph"] for event in json.loads(path.read_text())["traceEvents"])
    assert Counter(event["ph"] for event in events) == wanted
    names = processes(events)
    assert (
        len(names)
        == len(set(names.values()))
        == sum(len({e["pid"] for e in json.loads(path.read_text())["traceEvents"]}) for path in TF1)
    )


@needs_tf1
def test_flows_of_different_runs_do_not_join():
    first, second = TF1[0], TF1[1]
    ids = [{event["id"] for event in merged(path, path) if "id" in event} for path in (first, second)]
    assert ids[0] and not ids[0] & ids[1]
    alone = {event["id"] for event in json.loads(first.read_text())["traceEvents"] if "id" in event}
    assert len(ids[0]) == 2 * len(alone)


@needs_tf1
def test_clock_keeps_the_distance_between_runs():
    first, second = (p for p in TF1 if "CPU__timeline_02_step_0" in p.name or "CPU__timeline_02_step_1" in p.name)
    starts = [min(e["ts"] for e in json.loads(p.read_text())["traceEvents"] if "ts" in e) for p in (first, second)]
    names = processes(events := merged(first, second, align="clock"))
    firsts = [min(e["ts"] for e in events if "ts" in e and names[e["pid"]].startswith(p.name)) for p in (first, second)]
    assert firsts == [0, starts[1] - starts[0]]


@pytest.mark.long
def test_runs_of_one_name_are_distinguished():
    names = set(processes(merged(FIVE[0], FIVE[0])).values())
    assert {name.split(":")[0] for name in names} == {"keras_fit #1", "keras_fit #2"}


def test_iterator_ids_keep_all_their_digits():
    ids = [event["args"]["id"] for event in merged(FIVE[0])
           if event["ph"] == "X" and event["name"].startswith("Iterator::") and "id" in event["args"]]  # fmt: skip
    assert ids
    assert all(isinstance(value, str) and int(value) > 2**53 for value in ids)


@pytest.mark.parametrize("text", ["{}", "[1]", '{"traceEvents": [[]]}', "no json", '{"traceEvents": [{"pid": []}]}'])
def test_what_is_no_timeline_is_one_sentence(tmp_path, text):
    path = tmp_path / "timeline.json"
    path.write_text(text)
    with pytest.raises(AdvisorError, match="not a Chrome trace"):
        list(merge_runs([path]))


def test_a_list_of_events_alone_is_read(tmp_path):
    path = tmp_path / "list.json.gz"
    path.write_bytes(gzip.compress(b'[{"ph":"X","name":"a","pid":"p","tid":1,"ts":5,"dur":1}]'))
    (event,) = merged(path)
    assert (event["ts"], event["pid"]) == (0, 1)


@pytest.mark.long
def test_command_writes_a_packed_file_whole(tmp_path, capsys):
    out = tmp_path / "all.json.gz"
    assert main(["export", "--to", "perfetto", "--out", str(out), *map(str, FIVE[:2])]) == 0
    assert len(json.loads(gzip.decompress(out.read_bytes()))["traceEvents"]) > num_events(FIVE[0])
    assert [path.name for path in tmp_path.iterdir()] == ["all.json.gz"]


def test_failure_leaves_what_was_there(tmp_path, capsys):
    out = tmp_path / "all.json"
    assert main(["export", "--to", "perfetto", "--out", str(out), str(FIVE[0])]) == 0
    old = out.read_bytes()
    (tmp_path / "empty").mkdir()
    assert main(["export", "--to", "perfetto", "--out", str(out), str(FIVE[0]), str(tmp_path / "empty")]) == 2
    assert out.read_bytes() == old
    assert "contains no profile" in capsys.readouterr().err


@pytest.mark.long
def test_memory_does_not_grow_with_the_number_of_runs():
    code = (
        "import sys; from pathlib import Path; from advisor.export.merged_timeline import merge_runs\n"
        "from advisor.capture.window.process_memory import peak_rss_bytes\n"
        "runs = [Path(sys.argv[1])] * int(sys.argv[2])\n"
        "size = sum(map(len, merge_runs(runs)))\n"
        "print(peak_rss_bytes(), size)"
    )

    def run(times):
        done = subprocess.run(
            [sys.executable, "-c", code, str(DATA / "tf_function_loop"), str(times)],
            capture_output=True,
            text=True,
            check=True,
        )
        return map(int, done.stdout.split())

    (once, size), (many, total) = run(1), run(8)
    assert total > 7 * size
    assert many - once < 2 * size
