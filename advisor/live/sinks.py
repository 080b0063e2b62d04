"""The places to which `advisor watch` passes samples on: files, a Prometheus endpoint, TensorBoard.

In: `LiveSample`s.  Out: lines of JSON or CSV; metrics that a Prometheus server scrapes; scalars in a logdir.

A sink that fails while the script runs is closed with one warning; the script goes on.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Protocol

import msgspec

from advisor.export.csv_tables import cell_text
from advisor.model.errors import AdvisorError
from advisor.model.live import LiveConsumer, LiveSample
from advisor.model.text import message_of
from advisor.model.units import NS_PER_S

COLUMNS = (
    "time", "consumer", "where", "kind", "is_main", "steps", "passes", "new_steps", "step_s", "input_wait_share",
    "buffered", "buffer_size", "cores", "rss_bytes",
)  # fmt: skip
"""Columns of the CSV file: one row per consumer and sample; `time` is Unix time in seconds."""


class Sink(Protocol):
    """Receives every sample."""

    name: str
    """Option that asked for it, for warnings."""

    def write(self, sample: LiveSample) -> None:
        """Pass a sample on.

        Raises:
            Exception: It cannot be passed on; the sink is closed then.
        """
        ...

    def close(self) -> None:
        """Finish what was written."""
        ...


class JsonLines:
    """One JSON object per sample and line."""

    name = "--jsonl"

    def __init__(self, path: Path) -> None:
        """Create the file.

        Raises:
            AdvisorError: It exists or cannot be created.
        """
        self._file = _new_file(self.name, path)

    def write(self, sample: LiveSample) -> None:
        """See `Sink`."""
        self._file.write(msgspec.json.encode(sample).decode() + "\n")
        self._file.flush()

    def close(self) -> None:
        """See `Sink`."""
        self._file.close()


class CsvRows:
    """One row per consumer and sample, below a header."""

    name = "--csv"

    def __init__(self, path: Path) -> None:
        """Create the file.

        Raises:
            AdvisorError: It exists or cannot be created.
        """
        self._file = _new_file(self.name, path)
        self._rows = csv.writer(self._file)
        self._rows.writerow(COLUMNS)

    def write(self, sample: LiveSample) -> None:
        """See `Sink`."""
        for each in sample.consumers:
            self._rows.writerow(
                (
                    f"{sample.time_ns / NS_PER_S:.3f}", each.id, cell_text(each.where), each.kind, int(each.is_main),
                    each.steps, each.passes, each.new_steps, _seconds(each.step_ns), _known(each.wait_share),
                    _known(each.buffered), _known(each.buffer_size), f"{sample.cores:.3f}", _known(sample.rss_bytes),
                )
            )  # fmt: skip
        self._file.flush()

    def close(self) -> None:
        """See `Sink`."""
        self._file.close()


class PrometheusEndpoint:
    """Metrics at `http://HOST:PORT/metrics`, for one run of a script."""

    name = "--prometheus"

    def __init__(self, host: str, port: int) -> None:
        """Start to serve.

        Args:
            host: Address to listen on.
            port: Port; 0 chooses a free one.

        Raises:
            AdvisorError: prometheus-client is not installed, or the port cannot be used.
        """
        try:
            import prometheus_client as client
        except ImportError:
            raise AdvisorError("--prometheus needs prometheus-client: pip install 'tfdata-advisor[watch]'.") from None
        registry = client.CollectorRegistry()
        labels = ("consumer", "kind")

        def gauge(name: str, text: str, by: tuple[str, ...] = labels) -> Any:  # noqa: ANN401
            return client.Gauge(f"tfdata_advisor_{name}", text, by, registry=registry)

        self._steps = gauge("steps", "Completed steps.")
        self._passes = gauge("passes", "Iterations over a dataset that have begun.")
        self._step = gauge("step_seconds", "Mean time of the steps in the latest sample.")
        self._wait = gauge("input_wait_ratio", "Share of the step spent waiting for input, 0 to 1.")
        self._buffered = gauge("buffered_elements", "Elements in the pipeline's last buffer.")
        self._size = gauge("buffer_size", "Capacity of that buffer.")
        self._cores = gauge("process_cores", "Cores that the process uses.", ())
        self._rss = gauge("resident_memory_bytes", "Resident memory of the process.", ())
        try:
            self._server, _ = client.start_http_server(port, addr=host, registry=registry)
        except OSError as error:
            raise AdvisorError(
                f"--prometheus cannot listen on {host}:{port}: {error.strerror or error}; name another port."
            ) from None

    @property
    def port(self) -> int:
        """The port in use."""
        return int(self._server.server_port)

    def write(self, sample: LiveSample) -> None:
        """See `Sink`."""
        self._cores.set(sample.cores)
        if sample.rss_bytes is not None:
            self._rss.set(sample.rss_bytes)
        for each in sample.consumers:
            labels = (each.where or each.id, each.kind)
            self._steps.labels(*labels).set(each.steps)
            self._passes.labels(*labels).set(each.passes)
            for metric, value in (
                (self._step, None if each.step_ns is None else each.step_ns / NS_PER_S),
                (self._wait, each.wait_share),
                (self._buffered, each.buffered),
                (self._size, each.buffer_size),
            ):
                if value is not None:
                    metric.labels(*labels).set(value)

    def close(self) -> None:
        """See `Sink`."""
        self._server.shutdown()
        self._server.server_close()


class TensorBoardScalars:
    """Scalars of the training loop in a logdir, by step."""

    name = "--tensorboard"

    def __init__(self, logdir: Path) -> None:
        """Create an event file in the logdir.

        Raises:
            AdvisorError: tensorboard is not installed, or the logdir cannot be written.
        """
        try:
            from tensorboard.summary import Writer
        except ImportError:
            raise AdvisorError("--tensorboard needs tensorboard: pip install tensorboard.") from None
        try:
            self._writer = Writer(str(logdir))
        except OSError as error:
            raise AdvisorError(
                f"--tensorboard cannot write to {logdir}: {error.strerror or error}; name another folder."
            ) from None

    def write(self, sample: LiveSample) -> None:
        """See `Sink`."""
        for each in sample.consumers:
            if each.is_main:
                for tag, value in _scalars(sample, each):
                    self._writer.add_scalar(f"input pipeline/{tag}", value, each.steps)

    def close(self) -> None:
        """See `Sink`."""
        self._writer.flush()
        self._writer.close()


class Sinks:
    """All sinks of one run. Leaving the context closes them."""

    def __init__(self, sinks: list[Sink]) -> None:
        self._sinks = sinks
        self.warnings: list[str] = []
        """One sentence for each sink that failed."""

    def __enter__(self) -> Sinks:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for sink in self._sinks:
            self._closed(sink)

    def write(self, sample: LiveSample) -> None:
        """Pass a sample on to all of them; those that fail are closed."""
        for sink in list(self._sinks):
            try:
                sink.write(sample)
            except Exception as error:  # of a library, too: the script must go on
                self._sinks.remove(sink)
                self.warnings.append(f"{sink.name} was given up: {_reason(error)}.")
                self._closed(sink)

    def _closed(self, sink: Sink) -> None:
        try:
            sink.close()
        except Exception as error:
            self.warnings.append(f"{sink.name} was not closed properly: {_reason(error)}.")


def _reason(error: Exception) -> str:
    return (getattr(error, "strerror", None) or message_of(error) or type(error).__name__).rstrip(".")


def _new_file(option: str, path: Path) -> IO[str]:
    try:
        return path.open("x", encoding="utf-8", newline="")
    except FileExistsError:
        raise AdvisorError(f"{option}: {path} exists already; name a new file.") from None
    except OSError as error:
        raise AdvisorError(f"{option}: {path} cannot be created: {error.strerror or error}.") from None


def _scalars(sample: LiveSample, consumer: LiveConsumer) -> Iterator[tuple[str, float]]:
    if consumer.step_ns is not None:
        yield "step time (ms)", consumer.step_ns / 1e6
    if consumer.wait_share is not None:
        yield "input wait (share of the step)", consumer.wait_share
    if consumer.buffered is not None and consumer.buffer_size:
        yield "buffer fill (share)", consumer.buffered / consumer.buffer_size
    yield "cores in use", sample.cores
    if sample.rss_bytes is not None:
        yield "memory (MiB)", sample.rss_bytes / (1 << 20)


def _seconds(ns: float | None) -> str:
    return "" if ns is None else f"{ns / NS_PER_S:.9f}"


def _known(value: float | None) -> str:
    return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


__all__ = ["CsvRows", "JsonLines", "PrometheusEndpoint", "Sink", "Sinks", "TensorBoardScalars"]
