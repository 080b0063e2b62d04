"""Metrics of a watched run for other tools: a Prometheus endpoint, TensorBoard scalars.

In: `LiveSample`s, slow periods and bottlenecks.  Out: metrics that a Prometheus server scrapes; scalars in a logdir.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from advisor.live.watched_run import Change
from advisor.model.errors import AdvisorError
from advisor.model.live import LiveConsumer, LiveSample, SlowPeriod
from advisor.model.text import reason_of
from advisor.model.units import NS_PER_S

LOOPBACK = "127.0.0.1"


def parse_address(text: str) -> tuple[str, int]:
    """Parse `[HOST:]PORT`; without a host, only this machine is served.

    Raises:
        ValueError: It is not an address.
    """
    host, _, port = text.rpartition(":")
    if not port.isdecimal() or int(port) > 65_535:
        raise ValueError(f"{text!r} is not [HOST:]PORT, such as 9090 or 0.0.0.0:9090.")
    return host.strip("[]") or LOOPBACK, int(port)


class PrometheusEndpoint:
    """Metrics at `http://HOST:PORT/metrics`, for one run of a script."""

    def __init__(self, host: str, port: int, name: str = "--prometheus") -> None:
        """Start to serve.

        Args:
            host: Address to listen on.
            port: Port; 0 chooses a free one.
            name: What asked for it, for messages.

        Raises:
            AdvisorError: prometheus-client is not installed, or the port cannot be used.
        """
        self.name = name
        try:
            import prometheus_client as client
        except ImportError:
            raise AdvisorError(f"{name} needs prometheus-client: pip install 'tfdata-advisor[watch]'.") from None
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
        self._slow = gauge("slow_periods", "Periods in which steps took longer than before, so far.")
        self._blame = gauge(
            "bottleneck_wait_ratio",
            "Share of the input wait that the latest profiled window attributes to this call, 0 to 1.",
            (*labels, "call"),
        )
        self._calls: dict[tuple[str, str], tuple[str, str, str]] = {}
        """Consumer and kind -> labels of its latest bottleneck."""
        self._names: dict[str, tuple[str, str]] = {}
        """Consumer id -> its labels."""
        self._cores = gauge("process_cores", "Cores that the process uses.", ())
        self._rss = gauge("resident_memory_bytes", "Resident memory of the process.", ())
        try:
            self._server, _ = client.start_http_server(port, addr=host, registry=registry)
        except (OSError, UnicodeError) as error:  # UnicodeError: the host is no name, such as `a..b`
            reason = reason_of(error)
            raise AdvisorError(
                f"{name} cannot listen on {host}:{port}: {reason}; name another port or address."
            ) from None

    @property
    def port(self) -> int:
        """The port in use."""
        return int(self._server.server_port)

    def write(self, sample: LiveSample, changes: Sequence[Change]) -> None:
        """See `Sink`."""
        self._cores.set(sample.cores)
        if sample.rss_bytes is not None:
            self._rss.set(sample.rss_bytes)
        for consumer in sample.consumers:
            labels = self._names[consumer.id] = (consumer.where or consumer.id, consumer.kind)
            self._slow.labels(*labels)
            self._steps.labels(*labels).set(consumer.steps)
            self._passes.labels(*labels).set(consumer.passes)
            for metric, value in (
                (self._step, None if consumer.step_ns is None else consumer.step_ns / NS_PER_S),
                (self._wait, consumer.wait_share),
                (self._buffered, consumer.buffered),
                (self._size, consumer.buffer_size),
            ):
                if value is not None:
                    metric.labels(*labels).set(value)
        for change in changes:
            self._note(change)

    def _note(self, change: Change) -> None:
        labels = self._names.get(change.consumer_id)
        if labels is None:
            return
        if isinstance(change, SlowPeriod):
            if change.last_step is None:
                self._slow.labels(*labels).inc()
            return
        if labels in self._calls:
            self._blame.remove(*self._calls.pop(labels))
        finding = change.finding
        if finding.is_input_bound and finding.bottleneck:
            self._calls[labels] = (*labels, finding.bottleneck)
            self._blame.labels(*self._calls[labels]).set(finding.blame_share)

    def close(self) -> None:
        """See `Sink`."""
        self._server.shutdown()
        self._server.server_close()


class TensorBoardScalars:
    """Scalars of the training loop in a logdir, by step."""

    def __init__(self, logdir: Path, name: str = "--tensorboard") -> None:
        """Create an event file in the logdir.

        Args:
            logdir: The folder.
            name: What asked for it, for messages.

        Raises:
            AdvisorError: tensorboard is not installed, or the logdir cannot be written.
        """
        self.name = name
        try:
            from tensorboard.summary import Writer
        except ImportError:
            raise AdvisorError(f"{name} needs tensorboard: pip install tensorboard.") from None
        try:
            self._writer = Writer(str(logdir))
        except Exception as error:  # TensorFlow's file system has errors of its own
            reason = reason_of(error)
            raise AdvisorError(f"{name} cannot write to {logdir}: {reason}; name another folder.") from None

    def write(self, sample: LiveSample, changes: Sequence[Change]) -> None:
        """See `Sink`."""
        for consumer in sample.consumers:
            if consumer.is_main:
                for _, tag, value in training_scalars(sample, consumer):
                    self._writer.add_scalar(f"input pipeline/{tag}", value, consumer.steps)

    def close(self) -> None:
        """See `Sink`."""
        self._writer.flush()
        self._writer.close()


def training_scalars(sample: LiveSample, consumer: LiveConsumer) -> Iterator[tuple[str, str, float]]:
    """Yield what is known of the training loop as (name for programs, name for people, value)."""
    if consumer.step_ns is not None:
        yield "step_time_ms", "step time (ms)", consumer.step_ns / 1e6
    if consumer.wait_share is not None:
        yield "input_wait_share", "input wait (share of the step)", consumer.wait_share
    if consumer.buffered is not None and consumer.buffer_size:
        yield "buffer_fill_share", "buffer fill (share)", consumer.buffered / consumer.buffer_size
    yield "cores", "cores in use", sample.cores
    if sample.rss_bytes is not None:
        yield "memory_mib", "memory (MiB)", sample.rss_bytes / (1 << 20)
