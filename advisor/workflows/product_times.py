"""Times the model's largest product in 16 bit before a run on a CPU is advised to compute in it.

In: the report of a run that was captured on this machine.  Out: the report with the measurement in its recording, and the rules
asked again. It costs a start of TensorFlow, so it is measured only where the answer matters.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.capture.machine_probe import measure_largest_product
from advisor.capture.request import Progress
from advisor.host.calibration.window import CALIBRATION_LEFT_S, CALIBRATION_TIMEOUT_S
from advisor.model.codec import encode
from advisor.model.errors import AdvisorError
from advisor.model.outcome import Report
from advisor.model.pipeline import Analysis
from advisor.model.recording import Product
from advisor.model.run_folder import RECORDING_NAME, write_whole
from advisor.predict.training_step import is_fed, last_batch, product_work

if TYPE_CHECKING:
    from advisor.engine import LoadedRule
    from advisor.model.settings import Settings

_USUAL_ROWS = 32
"""Rows of a batch of unknown size: Keras' default `batch_size` for arrays."""


def with_product_times(
    report: Report,
    folder: Path,
    rules: Sequence[LoadedRule],
    settings: Settings,
    deadline: float | None,
    on_progress: Callable[[Progress], None],
) -> Report:
    """Measure the product if `full-precision` has to know, and ask the rules again; otherwise return the report as it is.

    Args:
        report: The report of a run of this machine.
        folder: Its run folder.
        rules: The rules to ask.
        settings: The settings.
        deadline: Time of `time.monotonic` before which everything must end; None for no limit.
        on_progress: Called before the measurement.
    """
    from advisor.engine import run_rules, threshold_of

    analysis = report.analysis
    product = _product_to_measure(analysis, threshold_of(rules, "full-precision", "min_step_share"))
    is_late = deadline is not None and deadline - time.monotonic() < CALIBRATION_LEFT_S.value
    if product is None or analysis.recording is None or is_late:
        return report
    on_progress(Progress("multiplying"))
    try:
        times = measure_largest_product(product, _rows(analysis), CALIBRATION_TIMEOUT_S.value)
        recording = replace(analysis.recording, product_times=times)
        write_whole(folder / RECORDING_NAME, encode(recording))
    except (AdvisorError, OSError):
        return report  # without the measurement the rule is silent
    again = run_rules(replace(analysis, recording=recording), rules, settings)
    return replace(again, timeline=report.timeline, run_folder=report.run_folder)


def _product_to_measure(analysis: Analysis, min_share: float | None) -> Product | None:
    """The product to measure; None if no rule would use the result.

    Args:
        analysis: The analysis of the run.
        min_share: Share of the step time in products, 0 to 1, below which the rule is silent; None if it is not asked.
    """
    recording, host, facts = analysis.recording, analysis.host, analysis.device
    if (
        min_share is None
        or recording is None
        or recording.product is None
        or recording.product_times is not None
        or host is None
    ):
        return None
    if not host.has_bfloat16 or host.accelerators or facts is None or facts.device_type != "CPU":
        return None
    if analysis.keras.get("dtype_policy") != "float32" or not is_fed(analysis):
        return None
    work = product_work(analysis)
    return recording.product if work is not None and work.share(facts) >= min_share else None


def _rows(analysis: Analysis) -> int:
    call, given = last_batch(analysis), analysis.keras.get("batch_size")
    size = call.arguments.get("batch_size") if call is not None else given
    return size if isinstance(size, int) and size > 0 else _USUAL_ROWS
