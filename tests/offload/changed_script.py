"""The script of a simulated pipeline, trained by a loop or by `fit`, and what the move to workers makes of its text."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from advisor.model.calls import Site
from advisor.model.offload_result import DYNAMIC, Movability
from advisor.model.pipeline import Analysis
from advisor.model.recording import Recording, ScriptExit
from advisor.offload.repairs import distribute_edit, edits_with_distribute
from advisor.rewrite.patch import Patch, patch_for
from advisor.testing import batch, pipeline
from advisor.testing.simulated_script import Stage
from advisor.workflows.offload_repairs import judged
from tests.in_one_line import in_one_line

ADDRESS = "grpc://tfdata-dispatcher:5000"
DISTRIBUTE = f'.apply(tf.data.experimental.service.distribute("distributed_epoch", "{ADDRESS}"))'
FIT = {"epochs": 3, "steps_per_epoch": None, "fits": 1, "steps_per_execution": 1}
VECTOR = "TensorSpec(shape=(3,), dtype=tf.float32, name=None)"


def whole_batches(size: int) -> Stage:
    """`batch(size, drop_remainder=True)`."""
    return dataclasses.replace(batch(size), arguments=(("drop_remainder", True),))


def loop_script(folder: Path, *stages: Stage, lines: str = "", **consumer: Any) -> Analysis:
    """The analysis of a script in a folder, with its own loop; `lines` are added to its text."""
    made = pipeline(*stages, consumer_ms=5)
    return _at(folder, made.analysis, made.source + lines, **consumer)


def fit_script(
    folder: Path,
    *stages: Stage,
    call: str = "model.fit(ds, epochs=3)",
    method: str = "fit",
    lines: str = "",
    **facts: Any,
) -> Analysis:
    """The analysis of a script that trains with `fit`.

    Args:
        folder: Where the script is written.
        *stages: Its pipeline.
        call: The line that trains.
        method: The method in this line that makes Keras train.
        lines: The text after it.
        **facts: Facts about Keras, or about the consumer.
    """
    made = pipeline(*stages, consumer_ms=5)
    head = made.source[: made.source.index("for batch in ds:")]
    line = head.count("\n") + 1
    start = call.index(f"{method}(") + 1
    site = Site(str(folder / "train.py"), line, start, line, len(call) + 1)
    of_consumer = {name: facts.pop(name) for name in ("finished_epochs", "finished_steps") if name in facts}
    analysis = _at(folder, made.analysis, f"{head}{call}\n{lines}", kind="keras.fit", site=site, **of_consumer)
    return dataclasses.replace(analysis, keras=FIT | facts)


def _at(folder: Path, analysis: Analysis, text: str, **consumer: Any) -> Analysis:
    path = folder / "train.py"
    path.write_text(text)
    calls = tuple(
        dataclasses.replace(call, site=call.site and dataclasses.replace(call.site, file=str(path)))
        for call in analysis.calls
    )
    by_id = {call.id: call for call in calls}
    main = analysis.main
    assert main is not None and main.consumer is not None and analysis.host is not None
    iterators = tuple(
        dataclasses.replace(it, calls=tuple(by_id[call.id] for call in it.calls)) for it in main.iterators
    )
    reader = dataclasses.replace(main.consumer, **consumer)
    recording = Recording("train.py", analysis.host, ScriptExit("stopped"), calls=calls, consumers=(reader,))
    return dataclasses.replace(
        analysis,
        calls=calls,
        pipelines=(dataclasses.replace(main, iterators=iterators, consumer=reader),),
        recording=recording,
    )


def changed(folder: Path, analysis: Analysis, policy: str = DYNAMIC) -> tuple[Movability, str]:
    """What is found, and the text of the script with the change."""
    movability = judged(analysis, policy, lambda _: folder)
    edits = edits_with_distribute(movability, distribute_edit(movability.after_id, policy, ADDRESS))
    calls = {call.id: call for call in analysis.calls}
    patch = patch_for(edits, calls, folder, step_edits=movability.step_edits)
    assert isinstance(patch, Patch), patch
    return movability, in_one_line(patch.files[(folder / "train.py").resolve()][1].decode())
