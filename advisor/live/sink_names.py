"""Sinks as texts, for the Python API.

In: texts (`jsonl:PATH`, `csv:PATH`, `prometheus:[HOST:]PORT`, `tensorboard:LOGDIR`, `wandb`, `mlflow`), or objects that are sinks
themselves.  Out: open sinks, or the reason why one cannot be opened.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from advisor.live.sinks import Sink
from advisor.model.errors import AdvisorError

KINDS = "jsonl:PATH, csv:PATH, prometheus:[HOST:]PORT, tensorboard:LOGDIR, wandb, mlflow"
_WITH_VALUE = ("jsonl", "csv", "prometheus", "tensorboard")
_TRACKERS = ("wandb", "mlflow")


def check_sinks(sinks: Sequence[str | Sink]) -> tuple[str | Sink, ...]:
    """Check what can be checked before the training: the texts, and that files do not exist.

    Raises:
        AdvisorError: One of them is not a sink, or its file exists.
    """
    if isinstance(sinks, str):
        raise AdvisorError(f"sinks is a list, such as [{sinks!r}].")
    for sink in sinks:
        if not isinstance(sink, str):
            if not isinstance(sink, Sink):
                raise AdvisorError(
                    f"{sink!r} is not a sink: name one of {KINDS}, or pass an object with name, write and close."
                )
            continue
        kind, value = _parts(sink)
        if kind == "prometheus":
            _address(sink, value)
        if kind in ("jsonl", "csv"):
            path = Path(value)
            if path.exists():
                raise AdvisorError(f"{sink}: {path} exists already; name a new file.")
            if not path.absolute().parent.is_dir():
                raise AdvisorError(f"{sink}: there is no folder {path.parent}; create it first.")
    return tuple(sinks)


def open_sink(sink: str | Sink, is_continued: bool) -> Sink:
    """Open a sink.

    Args:
        sink: A text, or a sink.
        is_continued: Append to the files of an earlier part of the run.

    Raises:
        AdvisorError: It cannot be opened.
    """
    if not isinstance(sink, str):
        return sink
    kind, value = _parts(sink)
    if kind in _TRACKERS:
        from advisor.live.tracker_sinks import open_tracker

        return open_tracker(kind, sink, run_name=None)
    if kind in ("jsonl", "csv"):
        from advisor.live.file_sinks import CsvRows, JsonLines

        if kind == "jsonl":
            return JsonLines(Path(value), sink, is_continued)
        return CsvRows(Path(value), sink, is_continued)
    from advisor.live.metric_sinks import PrometheusEndpoint, TensorBoardScalars

    if kind == "prometheus":
        return PrometheusEndpoint(*_address(sink, value), sink)
    return TensorBoardScalars(Path(value), sink)


def _parts(text: str) -> tuple[str, str]:
    kind, _, value = text.partition(":")
    if (kind in _TRACKERS and not value) or (kind in _WITH_VALUE and value):
        return kind, value
    raise AdvisorError(f"{text!r} is not a sink; name one of {KINDS}.")


def _address(text: str, value: str) -> tuple[str, int]:
    from advisor.live.metric_sinks import parse_address

    try:
        return parse_address(value)
    except ValueError as error:
        raise AdvisorError(f"{text}: {error}") from None
