"""Whether workers can open the files that a pipeline reads.

In: an `Analysis` and the calls that move.  Out: an `Objection` per call, conditions as clauses, the repair of relative paths.

A worker opens the path that the graph contains, on its own machine and in its own folder. Whether other machines mount the same
storage cannot be seen here, so that is a condition.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from advisor.model import state
from advisor.model.calls import Call, line_note
from advisor.model.offload_result import FILES, UNDECIDED, Objection, Repair
from advisor.model.pipeline import Analysis
from advisor.model.state import ObservedState
from advisor.predict.call_index import graph_of

READERS = frozenset({"CsvDataset", "FixedLengthRecordDataset", "TFRecordDataset", "TextLineDataset"})
_FILE_METHODS = READERS | {"list_files", "load"}
PATH_ARGUMENTS = ("filenames", "file_pattern", "path")
"""Parameters of the methods that read files which hold the paths."""


def objection_to(analysis: Analysis, call: Call) -> Objection | None:
    """Return a doubt about files that the script itself writes; None if the call reads none."""
    written = next((item for item in _read_by(analysis, [call]) if item.is_written_before), None)
    if written is None:
        return None
    reason = (
        f"reads {written.name}, which the script itself writes before: workers on other machines see it only if it is on shared "
        "storage"
    )
    return Objection(UNDECIDED, FILES, call.method, reason, call.site, call.id)


def conditions_of(analysis: Analysis, upstream: Iterable[Call]) -> Iterator[str]:
    """Yield what has to hold of the files, as clauses."""
    calls = list(upstream)
    local = [item.name for item in _read_by(analysis, calls) if "://" not in item.name]
    if local:
        folder = local[0].replace("\\", "/").rpartition("/")[0] or "/"
        yield (
            f"the workers find the files under the same paths ({folder}, ...): mount the same storage, or use a gs:// or s3:// "
            "URL"
        )
    elif any(call.method in _FILE_METHODS for call in calls) and not _read_by(analysis, calls):
        yield "the workers find the files that the pipeline reads under the same paths"


def repairs_of(analysis: Analysis, upstream: Iterable[Call]) -> Iterator[Repair]:
    """Yield what to do about relative paths: a worker would look for them in its own folder."""
    graph = graph_of(analysis)
    calls = {call.id: call for outer in upstream for call in (outer, *graph.nested(outer))}
    for call in calls.values():
        path = next((call.arguments[name] for name in PATH_ARGUMENTS if name in call.arguments), None)
        if call.method in _FILE_METHODS and isinstance(path, str) and _is_relative(path):
            where = line_note(call.site)
            yield Repair(
                f"{call.method}{where} reads the relative path {path}, which workers would look for in their own folder: pass an "
                "absolute one.",
                code="os.path.abspath(...), or the mounted path",
            )


def _is_relative(path: str) -> bool:
    """Whether a recorded argument is a relative path; descriptions of other values are in angle brackets."""
    return bool(path) and not path.startswith(("/", "<")) and "://" not in path and path[1:2] != ":"


def _read_by(analysis: Analysis, calls: Iterable[Call]) -> list[ObservedState]:
    graph, recording = graph_of(analysis), analysis.recording
    ids = {own.id for call in calls for own in (call, *graph.nested(call))}
    observed = (recording.state if recording is not None else None) or ()
    return [item for item in observed if item.kind == state.FILE and ids & set(item.call_ids)]
