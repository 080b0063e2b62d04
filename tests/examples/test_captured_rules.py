"""Each rule reports its own example in a real run, on the line that is marked.

The `EXAMPLES` of a rule file are simulated with the model that the predictions use, so a mistake that both share shows only here.
"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from advisor.capture.cost_measurement import cores_of_others
from advisor.capture.window.usage import Snapshot
from advisor.cli import main
from advisor.host.calibration.window import BUSY_CORES
from advisor.host.machine import describe_host
from tests.examples.conftest import EXAMPLES
from tests.examples.test_scripts import RULE_SCRIPTS, marked_lines

pytestmark = [pytest.mark.tensorflow, pytest.mark.long]
WINDOW = ("--steps", "40", "--warmup", "20", "--seconds", "3")
WHOLE_EPOCHS = {"epoch_pauses", "late_shuffle", "python_lock", "step_outliers"}
"""Examples whose problem shows only over some epochs, or in one step of many: the window is that of `advisor analyze` itself."""
ON_A_GPU = {"data_layout", "launch_bound", "odd_dimensions", "offload", "transfer_bound"}
"""Examples that have their problem only where there is a GPU."""
WITH_BFLOAT16 = {"full_precision"}
"""Examples that have their problem only where the processor multiplies bfloat16 numbers."""
ON_ANOTHER_LINE = {
    "autoshard_data", "eager_step", "epoch_pauses", "full_precision", "no_xla", "retracing", "retracing_shapes",
    "short_steps", "small_batch", "step_outliers",
}  # fmt: skip
"""What these find stands where the training takes its elements, or behind the marked line, which is the one to change."""
TIMED = {"eager_step", "host_saturated", "no_xla", "short_steps", "small_batch"}
"""Other processes occupy the cores that `host_saturated` needs for itself, make the ops of `no_xla` and `small_batch` longer, and
the waits of the short steps of the others."""
IN_A_NOTE = {
    "host_saturated": "All cores are busy: ",
    "not_input_bound": "% of it for input. Without that wait it would be",
}
"""Rules that have no finding but say what is so."""
ON_ALL_CORES = {"host_saturated"}
"""Rules that are silent where other processes occupy a core."""
ON_A_LARGE_DISK = {"repeated_work_on_disk"}
"""Examples whose elements must fit in half of the free space on disk. Where they do not, the rule rejects the change."""
NO_SPACE = "that are free on disk"
OTHERWISE = {"straggler"}
"""It profiles its three workers itself, see below."""
ONLY_IN_ALL = {
    "autoshard_data", "autotune_off", "autotune_ram", "cache_after_random", "cache_after_shuffle", "cache_cut_short",
    "cache_too_big", "cache_without_reuse", "capped_parallelism", "compressed_records", "cpu_budget_mismatch",
    "eager_step", "head_of_line", "late_filter", "late_shard", "late_shrink", "late_shuffle", "misplaced_prefetch",
    "missing_prefetch", "not_input_bound", "oversized_prefetch", "oversized_shuffle", "padding_waste", "python_lock",
    "rebuilt_every_epoch", "repeated_work_on_disk", "retracing", "retracing_shapes", "scalar_map", "serial_files",
    "serial_interleave", "short_steps", "single_file", "slow_batch_copy", "small_batch", "small_files", "small_reads",
    "splittable_map", "step_outliers", "unbatch_rebatch", "window_datasets",
}  # fmt: skip
"""Left to `make test-all`: CI runs an example of a similar rule."""


def marks_of(name):
    """The marks of one example."""
    return [pytest.mark.timed] * (name in TIMED) + [pytest.mark.slow] * (name in ONLY_IN_ALL)


CAPTURED = [
    pytest.param(path, id=path.stem, marks=marks_of(path.stem)) for path in RULE_SCRIPTS if path.stem not in OTHERWISE
]


@pytest.mark.parametrize("path", CAPTURED)
def test_rule_reports_its_example(path, tmp_path, capsys, sample_data):
    if path.stem in ON_A_GPU:
        import tensorflow as tf

        if not tf.config.list_physical_devices("GPU"):
            pytest.skip("needs a GPU")
    if path.stem in WITH_BFLOAT16 and not describe_host().has_bfloat16:
        pytest.skip("needs a processor with bfloat16")
    window = () if path.stem in WHOLE_EPOCHS else WINDOW
    start = Snapshot.take()
    code = main(["analyze", *window, "--quiet", "--out", str(tmp_path / "run"), "--json", "-", str(path)])
    others = cores_of_others(start)
    out, err = capsys.readouterr()
    assert code == 0, err
    report = json.loads(out)
    assert report["rule_errors"] == []
    if path.stem in IN_A_NOTE:
        is_said = any(IN_A_NOTE[path.stem] in note for note in report["notes"])
        if not is_said and path.stem in ON_ALL_CORES and others > BUSY_CORES.value:
            pytest.skip(f"other processes used {others:.1f} cores")
        assert is_said, report["verdict"]
        return
    ((line, rule),) = marked_lines(path.read_text(encoding="utf-8")).items()
    if path.stem in ON_A_LARGE_DISK and any(NO_SPACE in entry["reason"] for entry in report["rejected"]):
        assert (rule, line) in [(entry["rule"], entry["site"]["line"]) for entry in report["rejected"]]
        pytest.skip("needs a disk with more free space")
    reported = [
        (finding["rule"], (finding["site"] or {}).get("line")) for finding in (*report["findings"], *report["hints"])
    ]
    if path.stem in ON_ANOTHER_LINE:
        assert rule in [of for of, _ in reported], (reported, report["verdict"])
    else:
        assert (rule, line) in reported, (reported, report["verdict"])


def test_the_straggler_of_three_workers_is_reported():
    done = subprocess.run(
        [sys.executable, EXAMPLES / "straggler.py", "--first-port", "6210"], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert "is a straggler" in done.stdout
