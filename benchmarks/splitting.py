"""Which functions of a `map` are split, and what the comparison of elements sees.

    python benchmarks/splitting.py [--write-docs]

In: the cases of `splitting_functions/`.  Out: a table: the first statement of the second half, the values that cross the cut,
and the safety level seen with a cache between the halves; or why the function is not cut. Nothing is timed.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import tensorflow as tf
from published import tensorflow_version, write_section

from advisor.capture.instrument.call_sites import SiteFinder
from advisor.capture.instrument.dataset_api import record_dataset_api
from advisor.capture.instrument.dataset_ids import call_id_of
from advisor.capture.instrument.recorder import Recorder
from advisor.capture.instrument.replay_log import ReplayLog
from advisor.model.calls import Call
from advisor.predict import split_of
from advisor.prove.trial.elements.element_digests import Bounds
from advisor.prove.trial.elements.equivalence import Equivalence
from advisor.replay.replay import CannotReplay
from advisor.testing import map_, pipeline, source

BY_DISTRIBUTION = "compared by distribution"
DOCS = Path(__file__).parents[1] / "docs" / "splitting.md"


@dataclass(frozen=True)
class Row:
    """What was seen of one function."""

    kind: str
    name: str
    cut: str
    """The line of the cut as it is written; empty if the function is not cut."""
    names: tuple[str, ...]
    seen: str
    """The safety level seen, or the reason why the function is not cut."""


def main() -> None:
    """Look at every function, print the table, and write it if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write-docs", action="store_true", help="write the table to docs/splitting.md")
    options = parser.parse_args()
    recorder = Recorder(SiteFinder(), lambda text: None)
    record_dataset_api(tf, recorder, lambda text: None)
    from splitting_functions import CASES

    with tempfile.TemporaryDirectory() as folder:
        rows = []
        for kind, name, create in CASES:
            rows.append(seen(recorder, Path(folder), kind, name, create))
            print(rows[-1], flush=True)
    lines = table(rows)
    print("\n".join(lines))
    if options.write_docs:
        write_section("splitting", lines, DOCS)


def seen(recorder: Recorder, folder: Path, kind: str, name: str, create: Callable[[], Any]) -> Row:
    """Split the function of the last map of a dataset, as the rule would, and compare elements."""
    recorder._calls.clear()
    recorder.replay_log, recorder.is_open = ReplayLog(), True
    dataset = create()
    recorder.is_open = False
    call = next(call for call in reversed(recorder.calls()) if call.method == "map" and call.nested_in is None)
    made = pipeline(source(), map_("f", ms=30), consumer_ms=1).analysis
    assert made.main is not None and made.main.consumer is not None
    consumer = replace(made.main.consumer, call_id=str(call_id_of(dataset)))
    iterators = tuple(
        replace(it, calls=(call,)) if it.calls and it.calls[0].method == "map" else it for it in made.main.iterators
    )
    main = replace(made.main, consumer=consumer, iterators=iterators)
    analysis = replace(made, calls=tuple(recorder.calls()), pipelines=(main,))
    split = split_of(analysis, main, call, float("inf"))
    if split.fix is None:
        return Row(kind, name, "", (), split.reason)
    try:
        judgement = Equivalence(recorder, str(call_id_of(dataset)), Bounds(200, 10.0), folder).judge(split.fix.edits)
    except CannotReplay as error:
        return Row(kind, name, "", (), f"when it is tried: {error.reason}")
    level = str(judgement.seen)
    if judgement.note or judgement.undecided:
        level += f" ({judgement.note or judgement.undecided})"
    if split.fix.assumptions:
        level += ", on request: it assumes that " + "; ".join(split.fix.assumptions)
    return Row(kind, name, _line(call, split.line), split.names, level)


def _line(call: Call, line: int | None) -> str:
    assert call.site is not None and line is not None
    return Path(call.site.file).read_text().splitlines()[line - 1].strip()


def table(rows: Sequence[Row]) -> list[str]:
    """The lines of the table, with a summary."""
    cut = [row for row in rows if row.cut]
    exact = [row for row in cut if row.seen.startswith("exact")]
    noisy = [row for row in exact if BY_DISTRIBUTION in row.seen]
    return [
        f"TensorFlow {tensorflow_version()}, every element of two epochs or more compared. Of {len(rows)} functions "
        f"{len(cut)} are cut, and {len(exact)} of these are exact: {len(exact) - len(noisy)} bit for bit, random numbers "
        f"included, and {len(noisy)} of which parallel calls draw in no fixed order in their deterministic components, with "
        "the random ones compared by distribution.",
        "",
        "| kind | function | second half begins with | passed on | elements, or why it is not cut |",
        "|---|---|---|---|---|",
        *(
            f"| {row.kind} | {row.name} | {f'`{row.cut}`' if row.cut else ''} | {', '.join(row.names)} | {row.seen} |"
            for row in rows
        ),
    ]


if __name__ == "__main__":
    main()
