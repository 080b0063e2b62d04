"""Sinks: what other tools read is what the samples say, and a sink that fails does not end the run."""

from __future__ import annotations

import csv
import json
import socket
import urllib.request

import pytest
from prometheus_client.parser import text_string_to_metric_families

from advisor.live.sinks import COLUMNS, CsvRows, JsonLines, PrometheusEndpoint, Sinks, TensorBoardScalars
from advisor.model.errors import AdvisorError
from tests.live.samples import START, S, consumer, sample

SAMPLE = sample(1, consumer(40, 40, 10.0, 5.0, buffered=3.0, buffer_size=4.0), cores=1.5)
UNKNOWN = sample(2, consumer(80, 40, 10.0), rss_bytes=None)


def test_json_lines(tmp_path):
    with Sinks([JsonLines(tmp_path / "live.jsonl")]) as sinks:
        sinks.write(SAMPLE)
        sinks.write(UNKNOWN)
    first, second = map(json.loads, (tmp_path / "live.jsonl").read_text().splitlines())
    assert first["time_ns"] == START + S
    assert first["consumers"][0]["wait_ns"] == 5e6
    assert second["consumers"][0]["wait_ns"] is None


def test_csv_rows(tmp_path):
    with Sinks([CsvRows(tmp_path / "live.csv")]) as sinks:
        sinks.write(SAMPLE)
        sinks.write(sample(2, consumer(1, 1, 1.0, where="=cmd.py:1")))
    header, first, second = csv.reader((tmp_path / "live.csv").open())
    assert tuple(header) == COLUMNS
    row = dict(zip(header, first, strict=True))
    assert (row["steps"], row["step_s"], row["input_wait_share"], row["buffered"]) == ("40", "0.010000000", "0.5", "3")
    assert second[2] == "'=cmd.py:1"
    assert second[9] == ""


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
        sinks.write(SAMPLE)
        sinks.write(UNKNOWN)
        with urllib.request.urlopen(f"http://127.0.0.1:{endpoint.port}/metrics", timeout=10) as page:
            text = page.read().decode()
    values = {each.name: each.samples for each in text_string_to_metric_families(text)}
    (steps,) = values["tfdata_advisor_steps"]
    assert (steps.labels, steps.value) == ({"consumer": "train.py:7", "kind": "for"}, 80)
    assert values["tfdata_advisor_step_seconds"][0].value == pytest.approx(0.01)
    assert values["tfdata_advisor_input_wait_ratio"][0].value == 0.5  # the latest that is known
    assert values["tfdata_advisor_process_cores"][0].value == 1.0
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", endpoint.port), timeout=1)


def test_a_port_in_use_is_one_sentence():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(
            AdvisorError, match=r"cannot listen on 127\.0\.0\.1:\d+: Address already in use; name another"
        ):
            PrometheusEndpoint("127.0.0.1", taken.getsockname()[1])


@pytest.mark.tensorflow
@pytest.mark.long
def test_tensorboard_reads_the_scalars(tmp_path):
    event_accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    with Sinks([TensorBoardScalars(tmp_path / "logs")]) as sinks:
        sinks.write(SAMPLE)
        sinks.write(sample(2, consumer(5, 5, 1.0, is_main=False)))
    events = event_accumulator.EventAccumulator(str(tmp_path / "logs"), size_guidance={"tensors": 0}).Reload()
    (wait,) = events.Tensors("input pipeline/input wait (share of the step)")
    assert wait.step == 40
    assert wait.tensor_proto.float_val[0] == 0.5


class Full:
    name = "--csv"

    def __init__(self, error):
        self.error, self.is_closed = error, False

    def write(self, sample):
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
        sinks.write(SAMPLE)
        sinks.write(SAMPLE)
    assert sinks.warnings == [f"--csv was given up: {reason}."]
    assert full.is_closed
    assert len((tmp_path / "live.jsonl").read_text().splitlines()) == 2
