"""The child's half of a comparison of two texts: digests and measures the datasets of the text that this process holds.

In: the recorded calls, then `TextRequest`s.  Out: `TextReply`s; streams and elements as files.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

from advisor.capture.instrument.recorder import Recorder
from advisor.model.calls import Call
from advisor.model.edits import Edit, SetArgument
from advisor.model.errors import AdvisorError
from advisor.prove.trial.ab_side import Plan, Side
from advisor.prove.trial.elements.distribution_tests import SMALLEST_SAMPLE
from advisor.prove.trial.elements.element_digests import Bounds, arrays_of
from advisor.prove.trial.elements.equivalence import is_batched, is_seeded
from advisor.prove.trial.elements.heartbeat import Heartbeat
from advisor.prove.trial.elements.sampled_streams import SampledStreams
from advisor.prove.trial.elements.stream_files import write_elements, write_stream
from advisor.prove.trial.elements.streams import OriginalFails
from advisor.prove.trial.peak_memory import PeakMemory
from advisor.prove.trial.sibling_datasets import leaf_datasets, upstream_ids
from advisor.prove.trial.text_messages import (
    CachesRead,
    DatasetFacts,
    DatasetTurnTaken,
    Describe,
    Described,
    ElementsWritten,
    Open,
    Opened,
    Prepare,
    Prepared,
    ReadCaches,
    Sample,
    Sampled,
    TakeDatasetTurn,
    TextReply,
    TextRequest,
    WriteElements,
)
from advisor.prove.trial.trial_runner import TrialRunner

_PARALLEL = "num_parallel_calls"
MAX_OTHERS = 4
"""Maximum number of datasets that are compared besides the training's."""


class TextAnswers:
    """Answers the requests about one held text."""

    def __init__(
        self, recorder: Recorder, call_id: str, files: Path, runner: TrialRunner, report: Callable[[str], None]
    ) -> None:
        """Prepare the answers.

        Args:
            recorder: A closed recorder with a replay log.
            call_id: The call whose dataset the training consumes.
            files: A temporary folder for file caches.
            runner: Benchmarks the training's dataset.
            report: Called with the present phase.
        """
        self._recorder, self._files, self._runner, self._report = recorder, files, runner, report
        others = leaf_datasets(recorder, call_id)
        self._call_ids = (call_id, *others[:MAX_OTHERS])
        self._left_out = len(others[MAX_OTHERS:])
        self._open: SampledStreams | None = None
        self._opened_id = call_id
        self._side: Side | None = None

    def answer(self, request: TextRequest) -> TextReply:
        """Answer one request.

        Raises:
            AdvisorError: The script's own pipeline raises an exception, or cannot be rebuilt.
            CannotMeasure: The pipeline cannot be benchmarked.
        """
        self._report("comparing")
        try:
            return self._answer(request)
        except OriginalFails as error:
            raise AdvisorError(f"The script's own pipeline fails: {error}") from error

    def _answer(self, request: TextRequest) -> TextReply:
        match request:
            case Describe():
                facts = tuple(self._facts(call_id) for call_id in self._call_ids)
                return Described(facts, is_seeded(self._recorder), self._left_out)
            case Open():
                return self._opened(request)
            case Sample(is_of_rows=True):
                rows = self._opened_streams.original_rows(request.seeding)
                if rows is None:
                    return Sampled(is_there=False)
                write_stream(request.out, rows)
                return Sampled(is_there=True)
            case Sample(is_sequential=True):
                streams = self._opened_streams
                dataset = streams.dataset(sequential_edits(self._recorder, self._opened_id), request.seeding)[0]
                write_stream(request.out, streams.collect(dataset, request.seeding))
                return Sampled(is_there=True)
            case Sample():
                write_stream(request.out, self._opened_streams.sample(request.seeding, request.run))
                return Sampled(is_there=True)
            case ReadCaches():
                return CachesRead(self._opened_streams.cache_inputs())
            case WriteElements():
                elements = self._opened_streams.elements(request.seeding)
                wanted = itertools.islice(elements, request.first, request.first + request.count)
                is_whole = write_elements(request.out, map(arrays_of, wanted), request.most_bytes)
                elements.close()
                return ElementsWritten(is_whole)
            case Prepare():
                return Prepared(self._prepare())
            case TakeDatasetTurn():
                if self._side is None:
                    raise AdvisorError("The pipeline is not prepared.")
                self._report("measuring")
                turn = self._side.turn()
                return DatasetTurnTaken(turn.elements, turn.seconds)

    @property
    def _opened_streams(self) -> SampledStreams:
        if self._open is None:
            raise AdvisorError("No dataset is open.")
        return self._open

    def _opened(self, request: Open) -> Opened:
        call_id = self._call_ids[request.dataset]
        files = self._files / f"text{request.dataset}"
        files.mkdir(parents=True, exist_ok=True)
        bounds = Bounds(request.elements, request.seconds, least=SMALLEST_SAMPLE)
        names = twin_names(self._recorder, call_id)
        self._opened_id = call_id
        on_element = Heartbeat(lambda: self._report("comparing"))
        self._open = SampledStreams(self._recorder, call_id, bounds, files, request.passes, names, on_element)
        return Opened(self._open.passes)

    def _facts(self, call_id: str) -> DatasetFacts:
        assert self._recorder.replay_log is not None
        call, dataset = self._recorder.call(call_id), self._recorder.replay_log.calls[call_id].dataset
        return DatasetFacts(
            _name(call),
            spec_text(dataset.element_spec),
            int(dataset.cardinality()),
            is_batched(self._recorder, call_id),
        )

    def _prepare(self) -> int | None:
        self._open = None
        self._side = self._runner.side("of the script", Plan())
        with PeakMemory() as memory:
            self._side.prepare(lambda: self._report("warming up"))
        return memory.peak_bytes


def twin_names(recorder: Recorder, call_id: str) -> dict[str, str]:
    """Return names for the calls upstream of a dataset that also hold for another text: the third shuffle is `shuffle 3`.

    Twins of two texts draw the same numbers only if their calls take their seeds from the same names.
    """
    upstream = upstream_ids(recorder, call_id)
    counts: dict[str, int] = {}
    names: dict[str, str] = {}
    for call in recorder.calls():
        if call.id in upstream:
            counts[call.method] = counts.get(call.method, 0) + 1
            names[call.id] = f"{call.method} {counts[call.method]}"
    return names


def sequential_edits(recorder: Recorder, call_id: str) -> tuple[Edit, ...]:
    """Return edits after which the random functions upstream of a dataset are not called in parallel."""
    upstream = upstream_ids(recorder, call_id)
    return tuple(
        SetArgument(call.id, _PARALLEL, None)
        for call in recorder.calls()
        if call.id in upstream
        and call.method in ("map", "interleave")
        and call.arguments.get(_PARALLEL) is not None
        and call.function is not None
        and call.function.random_ops
    )


def spec_text(spec: object) -> str:
    """Return an element spec as text; dictionaries in the order of their keys, as their components are numbered."""
    if type(spec) is dict:
        return "{" + ", ".join(f"{key!r}: {spec_text(spec[key])}" for key in sorted(spec, key=str)) + "}"
    if type(spec) in (tuple, list):
        parts = ", ".join(map(spec_text, spec))  # type: ignore[call-overload]
        return f"({parts})"
    return str(spec)


def _name(call: Call | None) -> str:
    if call is None:
        return "a dataset"
    where = f" at line {call.site.line}" if call.site is not None else ""
    return f"the dataset of {call.method}{where}"
