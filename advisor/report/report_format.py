"""report.json, version 1: the whole report, its verdict and its findings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from advisor.model.finding import Safety
from advisor.model.json_types import Amount, Count, Positive, Share, one_of
from advisor.model.outcome import RuleError
from advisor.model.profile_statistics import Statistics
from advisor.model.recording import Accelerator
from advisor.model.run_hosts import HostComparison
from advisor.model.window_timeline import HostView
from advisor.report.json_format import Object
from advisor.report.pipeline_format import Call, Pipeline, Site
from advisor.report.proof_format import Comparison, Fix, Outlook, Proof, Ratio, RunGain


class Calibration(Object, frozen=True):
    """Costs that were measured on this machine; null where a measurement failed."""

    next_ns: Amount | None
    """A Python `next` on a dataset that ends with a prefetch."""
    next_here_ns: Amount | None
    """A Python `next` on a dataset without other threads."""
    component_ns: Amount | None
    """Each further component of an element."""
    handoff_ns: Amount | None
    """Handing an element to a thread of a parallel map and back."""
    copied_bytes_per_ns: Amount | None
    """Copying elements into a batch."""
    small_read_ns: Amount | None
    """A read of a few hundred bytes by a reader, without the copying."""
    op_start_ns: Amount | None
    """Starting an op of a map's function."""
    wakeup_ns: Amount | None
    """Waking another thread."""
    page_cache_bytes_per_ns: Amount | None
    """Reading a file from the page cache."""
    measured_on: str
    """Date in UTC."""


class Host(Object, frozen=True):
    """The machine, as the script could use it."""

    hostname: str
    cores: Amount | None
    """Usable cores: the smaller of CPU affinity and cgroup quota."""
    cores_installed: Count
    memory_bytes: Count
    """Usable memory: the smaller of physical memory and cgroup limit."""
    memory_free_bytes: Count
    disk_read_bytes_per_s: Amount | None
    """Read rate for files of the pipeline without the page cache, from a sample of at most 64 MiB; null if not measured."""
    cpu_model: str
    platform: str
    python_version: str
    accelerators: Sequence[Accelerator]
    calibration: Calibration | None
    """Null if the costs were never measured, so that predictions use built-in values."""


class Window(Object, frozen=True):
    """The measured part of the run: an unprofiled stretch, then a profiled one."""

    warmup_steps: Count
    """Steps of the main consumer before the window."""
    steps: Count
    """Profiled steps; 0 if Python could not count them."""
    duration_ms: Amount
    """Length of the profiled stretch."""
    plain_steps: Count
    """Steps timed without the profiler."""
    plain_duration_ms: Amount
    closed_by: str
    """`stable`, `steps`, `seconds`, `events`, `script ended`, `script failed`, `interrupted`."""
    is_profile_early: bool
    """Whether the profile was taken before the unprofiled steps, in the first ones: there was no time for a later one."""


class StepTimeMs(Object, frozen=True):
    """Step times in milliseconds, of the unprofiled stretch if there was one."""

    median: Amount
    p95: Amount
    count: Count
    mean: Amount
    median_low: Amount | None
    """Lower end of the 95 % interval of the median; null if there are fewer than 8 steps."""
    median_high: Amount | None
    stretches: Count
    """Effective number of independent stretches of steps behind the interval of the median; 0 without an interval."""


class BufferReadings(Object, frozen=True):
    """How full the pipeline's last buffer was when the consumer came for an element, from tf.data's own model."""

    transformation: str
    """Type of the iterator that owns the buffer, such as `Prefetch`."""
    readings: Count
    full: Count
    """Readings that found the buffer full: the pipeline is faster than the training."""
    empty: Count
    """Readings that found it empty: the training waits."""
    capacity: Count
    """Its largest capacity in elements."""
    is_at_steps: bool
    """Whether the buffer was read as each step began; otherwise at arbitrary times, in a loop whose steps Python cannot see."""


class GapReadings(Object, frozen=True):
    """How long steps without the profiler waited for input, from tf.data's gap times, where the profile does not show it."""

    steps: Count
    step_time_ms: Amount
    """Mean length of a step."""
    wait_share: Share
    """Share of the steps spent waiting for input."""


class Verdict(Object, frozen=True):
    """Whether input is the bottleneck, and the maximum possible speedup."""

    input_bound: bool
    input_wait_share: Share | None
    """Share of the step time spent waiting for input; null if no steps were found."""
    max_speedup: Amount | None
    """The maximum possible speedup from fixing the input pipeline (the ceiling); null for one or two steps."""
    is_ceiling_measured: bool
    """Whether `max_speedup` was measured with one batch repeated (the first one with `--ceiling`, or the last one of the run);
    otherwise it is 1 / (1 - wait share)."""
    level: Annotated[str, one_of("none", "moderate", "high", "unknown")]
    step_time_ms: StepTimeMs | None
    limit: Annotated[str, one_of("pipeline", "cpu", "gil", "disk", "model", "unknown")]
    """What the steps wait for."""
    sentence: str
    wait_steps: Annotated[str, one_of("profiled", "unprofiled", "estimated")]
    """The steps behind `input_wait_share`; `estimated`: unprofiled steps, with the wait estimated from profiled ones. The
    figures of the profiler guide (`statistics`) are always of profiled steps."""
    certainty: Annotated[str, one_of("none", "low", "medium", "high")]
    """How far the number of steps supports the verdict: `high` 10 or more, `medium` 3 to 9, `low` 1 or 2, `none` no step. With
    `low`, the verdict describes these steps only, and nothing is predicted from them. Without a measured step, the readings of
    `buffer` count, but never as `high`."""
    buffer: BufferReadings | None
    """Null if tf.data's model of the running iterator was not read, or the pipeline does not end in a buffer."""
    gaps: GapReadings | None
    """Null if the profile shows the wait, or tf.data's gap times do not. Without a measured step, `level` rests on it."""


class Fact(Object, frozen=True):
    """One measured fact."""

    value: float | None
    unit: str


class Finding(Object, frozen=True):
    """One result of a rule: what was measured and what to change."""

    rule: str
    title: str
    because: str
    site: Site | None
    iterator_id: str | None
    predicted_speedup: Ratio | None
    """Of a step; if the first pass over the data does not become faster (`over_run`), of a step in later passes."""
    over_run: RunGain | None
    """The predicted effect on a whole run; null without a prediction."""
    uncalibrated: Sequence[str]
    """Costs of the machine, named as in `host.calibration`, for which the prediction used built-in values because they were not
    measured on the machine of the run."""
    memory_bytes: int | None
    """Additional memory; null if unknown."""
    safety: Safety | None
    """The effect of the fix on the data; null if the finding is advice only."""
    auto: bool
    """Whether `advisor fix` applies it by default."""
    assumptions: Sequence[str]
    """Conditions for `safety` that no observation can establish."""
    diff: str | None
    code: str | None
    """Code to start from, for advice that no edit of a call can express; of a hint, what to write, in one line."""
    evidence: dict[str, Fact]
    docs: str
    """The command that shows the rule's page."""
    prove_command: str | None
    """The command that judges `diff`, which it reads from stdin; null without a diff, or if the run cannot be repeated."""
    fix_command: str | None
    """The command that tries this change alone, with the options that permit it; null if `advisor fix` never tries it."""


class Rejected(Object, frozen=True):
    """A change that a rule considered and does not propose."""

    rule: str
    change: str
    """As a finding would be titled."""
    reason: str
    """The measurement that speaks against it, as a clause."""
    evidence: dict[str, Fact]
    site: Site | None
    """The call that it would have changed; null if it is about no single call."""


class Source(Object, frozen=True):
    """Lines of the user's source around a call."""

    file: str
    line: Positive
    """The line of the call."""
    first_line: Positive
    lines: Sequence[str]


class Report(Object, frozen=True):
    """Times end in _ns (integer nanoseconds, sums over the window) or _ms, sizes in _bytes; shares range from 0 to 1."""

    schema_version: Literal[1]
    advisor_version: str
    target: str
    """The script with its arguments, or the path of the profile."""
    run_folder: str | None
    """The folder in which the run is stored."""
    host: Host | None
    """null if the profile was not captured by this tool."""
    tensorflow_version: str | None
    window: Window | None
    profiling_overhead: float | None
    """Mean step time with the profiler, relative to the time without it, minus 1."""
    verdict: Verdict
    pipelines: Sequence[Pipeline]
    findings: Sequence[Finding]
    """The largest predicted gain of the whole run first; if its passes are not counted, that of a step."""
    hints: Sequence[Finding]
    """Advice on the training step that nothing has proved yet. `advisor fix --allow numerics` tries those with a `diff`: what it
    proves becomes one of the `findings`, the rest is `rejected`."""
    rejected: Sequence[Rejected]
    """Changes that rules considered and do not propose, with the measurement that speaks against each."""
    fixes: Sequence[Fix]
    comparison: Comparison | None
    outlook: Outlook | None
    """The potential of the main pipeline; null if no steps were measured."""
    proof: Proof | None
    """How `advisor fix` or `advisor.optimize` proved the fixes; null if nothing was to be proved."""
    notes: Sequence[str]
    """Why plausible fixes are not proposed."""
    permission: str | None
    """Which command permits the fixes that `advisor fix` does not try by itself; null if there are none."""
    silenced: Count
    """Findings hidden by settings or comments."""
    rule_errors: Sequence[RuleError]
    statistics: Statistics | None
    """The pages of the profiler guide; null without a profile. docs/statistics.md defines every figure."""
    calls: Sequence[Call]
    """Every tf.data call of the script, as written; empty if the profile was not captured by this tool."""
    sources: Sequence[Source]
    """The source around bottlenecks and findings, if the file has not changed since the run."""
    hosts: HostComparison | None
    """The hosts side by side; null for one host."""
    timeline: Sequence[HostView]
    """The window at a resolution that can be displayed, one entry per host (the first few)."""
    warnings: Sequence[str]
