"""The text report, most important information first.

In: a `Report` and a rich console.  Out: lines on that console. Nothing is computed here: figures come from the model and are
formatted by `advisor.model.units`; every name passes through `places.clean`.

    verdict -> bottleneck with its line -> where the wait comes from -> what tf.data already does -> what to change -> notes
    -> hints -> other pipelines -> warnings -> how it was measured
"""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console, RenderableType
from rich.text import Text

from advisor.model import units
from advisor.model.finding import Finding, Safety
from advisor.model.long_lines import shorten_line
from advisor.model.outcome import Report
from advisor.model.pipeline import Analysis, Bottleneck, Pipeline
from advisor.model.recording import Host
from advisor.report.blame import blame_table
from advisor.report.functions_text import print_functions
from advisor.report.hosts_text import host_sentences, hosts_table, iterator_lines
from advisor.report.lines import print_lines, print_list, print_section
from advisor.report.other_pipelines import other_pipelines
from advisor.report.places import clean, display_path, iterator_text, place, source_line

MAX_CHAINS = 5
MAX_WARNINGS = 10
MAX_REJECTED = 6
"""Number of entries shown of each; report.json holds all of them."""
MIN_BYTES = 1 << 20
"""Smaller memory changes are not reported, as they do not matter next to a training run."""

_SAFETY = {
    Safety.EXACT: "the same elements in the same order",
    Safety.RERANDOMIZED: "random ops draw different numbers from the same distribution",
    Safety.REORDERED: "the same elements in a different order",
    Safety.NUMERICS: "training arithmetic or schedule changes",
    Safety.CHANGES: "different data; never applied by this tool",
}
_RESOURCES = {
    "cpu": "All cores are busy",
    "gil": "Python's global interpreter lock is the limit",
    "disk": "The disk is the limit",
}


def print_report(report: Report, console: Console) -> None:
    """Print the report; three lines for a healthy pipeline."""
    analysis = report.analysis
    main, is_bound = analysis.main, analysis.verdict.is_input_bound
    print_lines(console, _headline(analysis))
    headroom = report.outlook.headroom if report.outlook is not None else None
    if headroom is not None and (analysis.verdict.level == "none" or headroom.measured_ns is not None):
        print_lines(console, Text(clean(headroom.sentence)))
    shared = report.outlook.shared_cores if report.outlook is not None else None
    if shared is not None:
        print_lines(console, Text(clean(shared.sentence)))
    if report.permission:
        console.print(Text(clean(report.permission), "bold", overflow="fold"), soft_wrap=True)
    if main is not None and is_bound:
        _print_bottleneck(main, console)
        if any(iterator.blame_ns for iterator in main.iterators):
            print_section(console, "Where the wait comes from", [blame_table(main, console)])
            print_functions(main, console)
        print_list(console, "Already done by tf.data", main.already_done)
    if main is not None and (is_bound or _is_uncertain(analysis)):
        print_list(console, "Not seen", main.notes)
    if analysis.hosts is not None:
        print_section(console, "Hosts", [hosts_table(analysis.hosts, console)])
        print_list(console, "Between hosts", host_sentences(analysis.hosts))
    if report.findings:
        _print_findings(report, console)
    below = {
        "Not proposed": report.notes if is_bound else (),
        "Considered and rejected": _rejected(report),
        "Hints on the training step, not proved": _hints(report),
        "Other pipelines": other_pipelines(analysis),
        "Input pipelines seen": _chains(analysis) if _is_uncertain(analysis) else (),
        "Iterators": iterator_lines(analysis) if _is_bare(analysis) else (),
        "Rules that failed": [f"{error.rule}: {error.message}" for error in report.rule_errors],
        "Warnings": _warnings(report),
    }
    for title, lines in below.items():
        print_list(console, title, lines)
    if is_bound or report.findings or any(below.values()):
        console.print()
    print_lines(console, Text(_measured(report), "dim"))
    if report.run_folder:
        label = clean(display_path(report.run_folder))
        console.print(Text(f"Run folder: {label}", "dim", overflow="fold"), soft_wrap=True)


def _is_uncertain(analysis: Analysis) -> bool:
    """Whether there is no verdict, or one on one or two steps: then the recorded pipelines are of interest, whatever it says."""
    return analysis.verdict.level == "unknown" or analysis.verdict.is_tentative


def _is_bare(analysis: Analysis) -> bool:
    """Whether iterators can be identified only by their long names."""
    has_lines = any(call.site for call in analysis.calls)
    is_interesting = analysis.verdict.is_input_bound or _is_uncertain(analysis)
    return not has_lines and analysis.recording is None and is_interesting


def _headline(analysis: Analysis) -> Text:
    verdict = analysis.verdict
    style = {"high": "bold red", "moderate": "bold yellow", "none": "bold green"}.get(verdict.level, "bold")
    return Text(clean(verdict.sentence), style)


def _print_bottleneck(pipeline: Pipeline, console: Console) -> None:
    bottleneck = pipeline.bottleneck
    if bottleneck is None:
        return
    iterator = pipeline.iterator(bottleneck.iterator_id)
    share = units.format_share(bottleneck.blame_share)
    lines: list[RenderableType] = [
        Text.assemble(iterator_text(iterator), f"  {share} of the wait", (f", runs as {clean(iterator.name)}", "dim"))
    ]
    call = iterator.main_call
    line = source_line(call) if call else None
    if call and call.site and line:
        lines.append(Text.assemble((f"{call.site.line} | ", "dim"), line))
    resource = _RESOURCES.get(bottleneck.resource)
    why = f"{resource or 'Observed'}: {bottleneck.why}" if bottleneck.why else resource
    lines += [Text(clean(text)) for text in (why, _classic(pipeline, bottleneck)) if text]
    print_section(console, "Bottleneck", lines)


def _classic(pipeline: Pipeline, bottleneck: Bottleneck) -> str:
    """The bottleneck by the profiler guide's definition, if it differs."""
    if bottleneck.classic_iterator_id is None:
        return ""
    if bottleneck.classic_why:
        return bottleneck.classic_why
    name = pipeline.iterator(bottleneck.classic_iterator_id).name
    return f"By the profiler guide's definition (self time of the slowest call) it is {name}."


def _print_findings(report: Report, console: Console) -> None:
    print_section(console, "What to change", [])
    for number, finding in enumerate(report.findings, 1):
        if number > 1:
            console.print()
        print_lines(console, _title(number, finding), indent=2)
        for item in _details(finding):
            print_lines(console, item, indent=5)
    plan = report.outlook.plan if report.outlook is not None else None
    if plan is not None:
        console.print()
        print_lines(console, Text(clean(plan.sentence)), indent=2)


def _title(number: int, finding: Finding) -> Text:
    gain, over = finding.prediction, ""
    text = Text.assemble((f"{number}. ", "bold"), (clean(finding.title), "bold"))
    run = finding.over_run
    if run is not None and finding.is_delayed:
        over = " from the second epoch on"
        if run.prediction is not None and run.passes is not None:
            gain, over = run.prediction, f" over {units.format_epochs(run.passes)}"
    if gain is not None:
        text.append(f"  predicted {units.format_range(gain.value, gain.low, gain.high)}{over}", "green")
    return text


def _details(finding: Finding) -> Iterable[RenderableType]:
    if finding.site is not None:
        yield place(finding.site)
    yield Text(clean(finding.because))
    if finding.over_run is not None and finding.over_run.sentence:
        yield Text(clean(finding.over_run.sentence))
    if finding.evidence:
        facts = (
            f"{fact.name.replace('_', ' ')} {units.format_value(fact.value, fact.unit)}" for fact in finding.evidence
        )
        yield Text(clean("; ".join(facts)), "dim")
    if finding.diff:
        yield _diff(finding.diff)
    if finding.code:
        yield Text(clean(finding.code, keep_newlines=True), "green", overflow="fold")
    yield Text(_effect(finding), "dim")


def _effect(finding: Finding) -> str:
    """The effect of the change on data and memory, and where to read about the rule."""
    if finding.fix is None:
        safety = "Advice only."
    else:
        safety = f"Data: {finding.fix.safety} ({_SAFETY[finding.fix.safety]})."
        if finding.fix.assumptions:
            safety += f" `advisor fix` tries it only with --only {clean(finding.rule)}, as it rests on an assumption."
        safety += "" if finding.fix.is_provable else " `advisor fix` does not apply it, as it makes no step faster."
    memory = ""
    if finding.memory_bytes is not None and finding.memory_bytes >= MIN_BYTES:
        memory = f" Memory: {units.format_bytes(finding.memory_bytes)} more."
    return f"{safety}{memory} Page: advisor explain {clean(finding.rule)}"


def _diff(diff: str) -> Text:
    """Only the changed lines; the file is named above them, and each of several files before its own lines."""
    text = Text(overflow="fold")
    lines = [line for line in diff.splitlines() if line[:1] in "+-" and not line.startswith("---")]
    has_files = sum(line.startswith("+++ ") for line in lines) > 1
    shown = [line for line in lines if has_files or not line.startswith("+++ ")]
    for number, line in enumerate(shown):
        is_file = line.startswith("+++ ")
        style = "dim" if is_file else "green" if line.startswith("+") else "red"
        named = line.removeprefix("+++ ").removeprefix("b/") if is_file else line
        text.append(("\n" if number else "") + clean(shorten_line(named)), style)
    return text


def _chains(analysis: Analysis) -> list[str]:
    """Every pipeline from its sources to its root, for profiles without a verdict."""
    chains = [chain for pipeline in analysis.pipelines for chain in _chains_of(pipeline)]
    if len(chains) > MAX_CHAINS:
        return [*chains[:MAX_CHAINS], "report.json (--json) lists the others"]
    return chains


def _chains_of(pipeline: Pipeline) -> Iterable[str]:
    for leaf in pipeline.iterators:
        if pipeline.inputs(leaf):
            continue
        yield " -> ".join(it.name for it in (leaf, *pipeline.downstream(leaf)))


def _rejected(report: Report) -> list[str]:
    lines = [f"{entry.change}: {entry.reason} ({entry.rule})" for entry in report.rejected[:MAX_REJECTED]]
    if len(report.rejected) > MAX_REJECTED:
        lines.append(f"{units.format_count(len(report.rejected))} changes in total; report.json lists all of them")
    return lines


def _hints(report: Report) -> list[str]:
    """One line each: where, what to do, what to write, and how to prove it."""
    lines = []
    for finding in report.hints:
        where = f"{display_path(finding.site.file)}:{finding.site.line} " if finding.site is not None else ""
        what = f": {finding.code}" if finding.code else ""
        proof = "; try `advisor fix --allow numerics`" if finding.diff else ""
        lines.append(f"{where}{finding.title}{what} ({finding.rule}{proof})")
    return lines


def _warnings(report: Report) -> list[str]:
    warnings = list(dict.fromkeys((*report.analysis.warnings, *report.warnings)))
    if len(warnings) > MAX_WARNINGS:
        total = units.format_count(len(warnings))
        return [*warnings[:MAX_WARNINGS], f"{total} warnings in total; report.json lists all of them"]
    return warnings


def _measured(report: Report) -> str:
    """How the figures were obtained, in one or two sentences."""
    analysis = report.analysis
    recording, steps = analysis.recording, analysis.verdict.steps
    window = recording.window if recording else None
    parts = []
    if steps is not None:
        typical_ns, which = steps.median_ns, " (median)" if steps.count > 1 else ""
        if recording is not None and recording.steps_queued_by:
            typical_ns, which = (
                steps.mean_ns,
                f" (mean: {recording.steps_queued_by} queues them, and some wait for many)",
            )
        parts.append(f"{units.format_many(steps.count, 'step')} of {units.format_ns(typical_ns)}{which}")
    if window is not None:
        warmup = units.format_many(window.warmup_steps, "warm-up step")
        if window.plain_steps:
            span = units.format_span(window.plain_start_ns, window.plain_end_ns)
            parts.append(f"timed for {span} without the profiler after {warmup}")
            change = ""
            if analysis.profiling_overhead is not None:
                change = f" (steps {units.format_change(analysis.profiling_overhead)})"
            profiled = units.format_span(window.start_ns, window.end_ns)
            if window.is_profile_early:
                early = units.format_many(window.steps, "early step")
                why = "there was no time for later ones" if window.closed_by == "seconds" else "the script ended"
                parts.append(f"profiled before that, in {early} ({profiled}), because {why}")
            else:
                parts.append(f"then profiled for {profiled}{change}")
        else:
            parts.append(f"profiled for {units.format_span(window.start_ns, window.end_ns)} after {warmup}")
    if report.silenced:
        parts.append(f"{units.format_many(report.silenced, 'finding')} silenced")
    sentences = [f"Measured: {', '.join(parts)}."] if parts else []
    if recording is None:
        sentences.append(f"Source: {analysis.target}.")
    if analysis.host is not None:
        sentences.append(f"Machine: {', '.join(_machine(analysis.host))}.")
    return clean(" ".join(sentences))


def _machine(host: Host) -> Iterable[str]:
    if host.tensorflow_version:
        yield f"TensorFlow {host.tensorflow_version}"
    yield f"{units.format_count(host.cores)} cores"
    if host.disk_read_bytes_per_s:
        yield f"disk {units.format_bytes(host.disk_read_bytes_per_s)}/s (measured by reading your files)"
    for accelerator in host.accelerators:
        yield accelerator.name
