"""Sinks: what other tools read is what the samples say, and a sink that fails does not end the run."""

from __future__ import annotations

import csv
import json
import socket
import threading
import urllib.request

import pytest
from prometheus_client.parser import text_string_to_metric_families

from advisor.live.file_sinks import COLUMNS, CsvRows, JsonLines
from advisor.live.metric_sinks import PrometheusEndpoint, TensorBoardScalars
from advisor.live.sink_names import check_sinks, open_sink
from advisor.live.sinks import MAX_WAITING, Background, Sinks
from advisor.model.errors import AdvisorError
from advisor.model.live import BottleneckStretch, SlowPeriod, WindowFinding
from tests.live.samples import MS, START, S, consumer, sample

SAMPLE = sample(1, consumer(40, 40, 10.0, 5.0, buffered=3.0, buffer_size=4.0), cores=1.5)
UNKNOWN = sample(2, consumer(80, 40, 10.0), rss_bytes=None)
SLOW = SlowPeriod("c1", 40, 80, None, START + 2 * S, 3, 10.0 * MS, 30.0 * MS, 5.0 * MS, 25.0 * MS)


def bottleneck(call, share=0.9, is_input_bound=True):
    finding = WindowFinding(0.7, 10.0 * MS, 60, call, share, is_input_bound)
    return BottleneckStretch("c1", 100, 160, START + 3 * S, START + 3 * S, 1, finding)


def test_json_lines(tmp_path):
    with Sinks([JsonLines(tmp_path / "live.jsonl")]) as sinks:
        sinks.write(SAMPLE, ())
        sinks.write(UNKNOWN, ())
    first, second = map(json.loads, (tmp_path / "live.jsonl").read_text().splitlines())
    assert first["time_ns"] == START + S
    assert first["consumers"][0]["wait_ns"] == 5e6
    assert second["consumers"][0]["wait_ns"] is None


def test_csv_rows(tmp_path):
    with Sinks([CsvRows(tmp_path / "live.csv")]) as sinks:
        sinks.write(SAMPLE, ())
        sinks.write(sample(2, consumer(1, 1, 1.0, where="=cmd.py:1")), ())
    header, first, second = csv.reader((tmp_path / "live.csv").open())
    assert tuple(header) == COLUMNS
    row = dict(zip(header, first, strict=True))
    assert (row["steps"], row["step_s"], row["input_wait_share"], row["buffered"]) == ("40", "0.010000000", "0.5", "3")
    assert second[2] == "'=cmd.py:1"
    assert second[9] == ""


def test_json_lines_hold_what_was_noticed(tmp_path):
    with Sinks([JsonLines(tmp_path / "live.jsonl")]) as sinks:
        sinks.write(SAMPLE, [SLOW, bottleneck("train.py:3 .map(load)")])
    first, slow, stretch = map(json.loads, (tmp_path / "live.jsonl").read_text().splitlines())
    assert [message["type"] for message in (first, slow, stretch)] == ["LiveSample", "SlowPeriod", "BottleneckStretch"]
    assert (slow["after_step"], slow["first_step"], slow["last_step"]) == (40, 80, None)
    assert stretch["finding"]["bottleneck"] == "train.py:3 .map(load)"


@pytest.mark.parametrize("kind", [JsonLines, CsvRows])
def test_a_second_part_of_a_run_is_appended(kind, tmp_path):
    path = tmp_path / "live"
    for is_continued in (False, True):
        with Sinks([kind(path, "sink", is_continued)]) as sinks:
            sinks.write(SAMPLE, ())
    lines = path.read_text().splitlines()
    assert lines[-1] == lines[-2] and len(lines) == (2 if kind is JsonLines else 3)


@pytest.mark.parametrize("kind", [JsonLines, CsvRows])
def test_a_file_closed_before_the_first_sample_does_not_refuse_the_next_run(kind, tmp_path):
    path = tmp_path / "live"
    kind(path).close()
    assert not path.exists()
    kind(path, "sink", is_continued=True).close()
    with Sinks([kind(path, "sink", is_continued=True)]) as sinks:
        sinks.write(SAMPLE, ())
    once = path.read_text()
    kind(path, "sink", is_continued=True).close()
    assert path.read_text() == once
    assert len(once.splitlines()) == (1 if kind is JsonLines else 2)


@pytest.mark.parametrize("kind", [JsonLines, CsvRows])
@pytest.mark.parametrize("text", ["", "mine"])
def test_a_file_that_took_its_place_stays(kind, text, tmp_path):
    path = tmp_path / "live"
    sink = kind(path)
    path.unlink()
    path.write_text(text)
    sink.close()
    assert path.read_text() == text


@pytest.mark.parametrize("kind", [JsonLines, CsvRows])
def test_existing_files_are_not_touched(kind, tmp_path):
    (tmp_path / "results").write_text("mine")
    with pytest.raises(AdvisorError, match="exists already; name a new file"):
        kind(tmp_path / "results")
    with pytest.raises(AdvisorError, match="cannot be created: No such file"):
        kind(tmp_path / "nowhere" / "results")
    assert (tmp_path / "results").read_text() == "mine"


def test_the_prometheus_page_is_read_by_prometheus_own_parser():
    endpoint = PrometheusEndpoint("127.0.0.1", 0)
    with Sinks([endpoint]) as sinks:
        sinks.write(SAMPLE, ())
        sinks.write(UNKNOWN, ())
        with urllib.request.urlopen(f"http://127.0.0.1:{endpoint.port}/metrics", timeout=10) as page:
            text = page.read().decode()
    values = {family.name: family.samples for family in text_string_to_metric_families(text)}
    (steps,) = values["tfdata_advisor_steps"]
    assert (steps.labels, steps.value) == ({"consumer": "train.py:7", "kind": "for"}, 80)
    assert values["tfdata_advisor_step_seconds"][0].value == pytest.approx(0.01)
    assert values["tfdata_advisor_input_wait_ratio"][0].value == 0.5  # the latest that is known
    assert values["tfdata_advisor_process_cores"][0].value == 1.0
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", endpoint.port), timeout=1)


def test_prometheus_counts_slow_periods_and_shows_only_the_latest_bottleneck():
    endpoint = PrometheusEndpoint("127.0.0.1", 0)

    def page():
        with urllib.request.urlopen(f"http://127.0.0.1:{endpoint.port}/metrics", timeout=10) as answer:
            text = answer.read().decode()
        return {family.name: family.samples for family in text_string_to_metric_families(text)}

    with Sinks([endpoint]) as sinks:
        sinks.write(SAMPLE, ())
        assert page()["tfdata_advisor_slow_periods"][0].value == 0
        sinks.write(SAMPLE, [SLOW, bottleneck("a.py:1 .map(f)")])
        (first,) = page()["tfdata_advisor_bottleneck_wait_ratio"]
        sinks.write(SAMPLE, [bottleneck("a.py:2 .batch(8)", 0.6)])
        (second,) = page()["tfdata_advisor_bottleneck_wait_ratio"]
        assert page()["tfdata_advisor_slow_periods"][0].value == 1
        sinks.write(SAMPLE, [bottleneck("a.py:2 .batch(8)", is_input_bound=False)])
        assert page()["tfdata_advisor_bottleneck_wait_ratio"] == []
    assert (first.labels["call"], first.value) == ("a.py:1 .map(f)", 0.9)
    assert (second.labels, second.value) == ({"consumer": "train.py:7", "kind": "for", "call": "a.py:2 .batch(8)"}, 0.6)


def test_a_port_in_use_is_one_sentence():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(
            AdvisorError, match=r"cannot listen on 127\.0\.0\.1:\d+: Address already in use; name another"
        ):
            PrometheusEndpoint("127.0.0.1", taken.getsockname()[1])


def test_a_host_that_is_no_name_is_one_sentence():
    with pytest.raises(AdvisorError, match=r"cannot listen on a\.\.b:0: .*; name another port or address"):
        PrometheusEndpoint("a..b", 0)


@pytest.mark.tensorflow
@pytest.mark.long
def test_tensorboard_reads_the_scalars(tmp_path):
    event_accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    with Sinks([TensorBoardScalars(tmp_path / "logs")]) as sinks:
        sinks.write(SAMPLE, ())
        sinks.write(sample(2, consumer(5, 5, 1.0, is_main=False)), ())
    events = event_accumulator.EventAccumulator(str(tmp_path / "logs"), size_guidance={"tensors": 0}).Reload()
    (wait,) = events.Tensors("input pipeline/input wait (share of the step)")
    assert wait.step == 40
    assert wait.tensor_proto.float_val[0] == 0.5


class Full:
    name = "--csv"

    def __init__(self, error):
        self.error, self.is_closed = error, False

    def write(self, sample, changes):
        raise self.error

    def close(self):
        self.is_closed = True


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (OSError(28, "No space left on device"), "No space left on device"),
        (RuntimeError("queue closed."), "queue closed"),
    ],
)
def test_a_sink_that_fails_is_given_up_and_the_others_go_on(error, reason, tmp_path):
    full = Full(error)
    with Sinks([full, JsonLines(tmp_path / "live.jsonl")]) as sinks:
        sinks.write(SAMPLE, ())
        sinks.write(SAMPLE, ())
    assert sinks.warnings == [f"--csv was given up: {reason}."]
    assert full.is_closed
    assert len((tmp_path / "live.jsonl").read_text().splitlines()) == 2


class Slow:
    """Blocks until it is let go, then keeps or refuses what it is given."""

    name = "--log slow"

    def __init__(self, error=None):
        self.go, self.error, self.written, self.is_closed = threading.Event(), error, [], False

    def write(self, sample, changes):
        self.go.wait(10)
        if self.error is not None:
            raise self.error
        self.written.append(sample)

    def close(self):
        self.is_closed = True


def test_a_slow_sink_holds_up_nobody_and_says_what_it_left_out():
    slow = Slow()
    with Sinks([Background(slow)]) as sinks:
        for _ in range(MAX_WAITING + 10):
            sinks.write(SAMPLE, ())
        assert slow.written == []
        slow.go.set()
    assert slow.is_closed and MAX_WAITING <= len(slow.written) < MAX_WAITING + 10
    left_out = MAX_WAITING + 10 - len(slow.written)
    assert sinks.warnings == [
        f"--log slow was not closed properly: it was too slow for {left_out} samples, which were left out."
    ]


def test_an_error_in_the_background_is_told_once_even_if_it_is_the_last_sample():
    late, early = Slow(RuntimeError("no network")), Slow(RuntimeError("no login"))
    background = Background(early)
    early.go.set()
    with Sinks([Background(late), background]) as sinks:
        sinks.write(SAMPLE, ())
        background._thread.join(10)
        sinks.write(SAMPLE, ())
        late.go.set()
    assert sinks.warnings[0] == "--log slow was given up: no login."
    assert sinks.warnings[1:] == ["--log slow was not closed properly: no network."]
    assert early.is_closed


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("jsonl", "is not a sink; name one of jsonl:PATH"),
        ("influx:8086", "is not a sink"),
        ("wandb:project", "is not a sink"),
        ("prometheus:somewhere", r"prometheus:somewhere: 'somewhere' is not \[HOST:\]PORT"),
        ("csv:{}/there", "there exists already; name a new file"),
        ("csv:{}/nowhere/live.csv", "there is no folder .*nowhere; create it first"),
        (7, "7 is not a sink"),
    ],
)
def test_wrong_sinks_are_told_before_the_training(text, message, tmp_path):
    (tmp_path / "there").touch()
    with pytest.raises(AdvisorError, match=message):
        check_sinks([text.format(tmp_path) if isinstance(text, str) else text])


def test_sinks_are_a_list():
    with pytest.raises(AdvisorError, match=r"sinks is a list, such as \['wandb'\]"):
        check_sinks("wandb")


def test_sinks_by_name(tmp_path):
    own = Slow()
    own.go.set()
    named = check_sinks([f"jsonl:{tmp_path}/a", f"csv:{tmp_path}/b", "prometheus:0", own])
    with Sinks([open_sink(metric, is_continued=False) for metric in named]) as sinks:
        sinks.write(SAMPLE, ())
    assert sinks.warnings == []
    assert own.written == [SAMPLE]
    assert len((tmp_path / "a").read_text().splitlines()) == 1
    assert len((tmp_path / "b").read_text().splitlines()) == 2
