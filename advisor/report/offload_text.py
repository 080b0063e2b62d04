"""The text report of `advisor offload`.

In: an `Offload` and a rich console.  Out: lines on that console: the verdict, what speaks against it, what was measured, the
change.
"""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from advisor.model import units
from advisor.model.offload_result import MOVABLE, REFUSED, Objection, Offload, Repair, ServiceMeasurement, ServiceProof
from advisor.report.lines import diff_text, print_lines, print_list, print_section
from advisor.report.places import clean, place

_STYLES = {MOVABLE: "bold green", REFUSED: "bold red"}


def print_offload(offload: Offload, console: Console) -> None:
    """Print the result."""
    movability = offload.movability
    headline = f"{movability.verdict[0].upper()}{movability.verdict[1:]}."
    style = _STYLES.get(movability.verdict, "bold yellow")
    print_lines(console, Text.assemble((headline, style), f" {clean(offload.sentence)}"))
    print_lines(console, Text(clean(offload.target), "dim"))
    if movability.objections:
        print_section(console, "Objections", map(_objection, movability.objections))
    print_list(console, "Conditions", (f"{_capital(text)}." for text in movability.conditions))
    if movability.repairs and movability.verdict != REFUSED:
        print_section(console, "What else to change", map(_repair, movability.repairs))
    measured = offload.measurement
    if measured is not None and measured.rates:
        print_section(console, "One worker process on this machine", [_rates(measured)])
        if measured.comparison:
            print_lines(console, Text(clean(measured.comparison)), indent=2)
    if offload.proof is not None:
        _print_proof(offload.proof, measured, console)
    if offload.diff:
        print_section(console, "The change of the script", [diff_text(offload.diff)])
    print_list(console, "Written", (*offload.files, *offload.changed_files))
    taken = units.format_ns(offload.seconds * units.NS_PER_S)
    runs = [f"The script was run {units.format_many(offload.runs, 'time')}, in {taken}."] if offload.runs else []
    print_list(console, "Notes", [*offload.notes, *runs])


def _objection(objection: Objection) -> Text:
    text = Text.assemble(("- ", "dim"))
    if objection.site is not None:
        text.append_text(place(objection.site)).append(" ")
    return text.append(f"{clean(objection.method)} {clean(objection.reason)}").append(
        f" ({objection.verdict}: {objection.cause})", "dim"
    )


def _repair(repair: Repair) -> Text:
    text = Text.assemble(("- ", "dim"), clean(repair.text))
    if repair.is_written:
        return text.append(" (in the change below)", "dim")
    return text.append(f" By hand: {clean(repair.code)}", "dim")


def _rates(measured: ServiceMeasurement) -> Table:
    table = Table(box=None, show_edge=False, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for title in ("", "rate", "throughput", "rate per core", "CPU time in the trainer"):
        table.add_column(title, overflow="fold")
    table.add_row(
        "without the service",
        units.format_rate(measured.local_elements_per_s),
        _throughput(measured.local_elements_per_s, measured),
        units.format_rate(1 / measured.local_cpu_s) if measured.local_cpu_s else "-",
        units.format_ns(measured.local_cpu_s * units.NS_PER_S),
    )
    for rate in measured.rates:
        table.add_row(
            f"compression {rate.compression}",
            units.format_rate(rate.elements_per_s),
            _throughput(rate.elements_per_s, measured),
            units.format_rate(rate.elements_per_core_s),
            units.format_ns(rate.client_cpu_s * units.NS_PER_S),
        )
    return table


def _print_proof(proof: ServiceProof, measured: ServiceMeasurement | None, console: Console) -> None:
    """Print what the service delivered, whether its elements are the same, and both sides of the alternating runs."""
    lines = []
    if measured is not None and measured.comparison:
        lines.append(Text(clean(measured.comparison)))
    if proof.delivered_per_s is not None:
        local = f", the pipeline of the script {units.format_rate(measured.local_elements_per_s)}" if measured else ""
        lines.append(
            Text(f"Without a training, the service delivers {units.format_rate(proof.delivered_per_s)}{local}.")
        )
    if lines:
        print_section(console, f"The service at {clean(proof.address)}", lines)
    ratio = proof.speedup
    table = Table(box=None, show_edge=False, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for title in ("", "own pipeline", "with the service", "gain"):
        table.add_column(title, overflow="fold")
    rows = (
        ("step time", proof.before.step_ns, proof.after.step_ns, units.format_ns),
        ("input wait", proof.before.wait_share, proof.after.wait_share, units.format_share),
        ("peak memory", proof.before.peak_rss_bytes, proof.after.peak_rss_bytes, units.format_bytes),
        ("alternating turns", proof.turns or None, proof.turns or None, units.format_count),
    )
    for title, before, after, write in rows:
        if before is not None or after is not None:
            gain = units.format_range(ratio.value, ratio.low, ratio.high) if ratio and title == "step time" else ""
            table.add_row(title, *("-" if value is None else write(value) for value in (before, after)), gain)
    if table.row_count:
        print_section(console, "Whole script", [table])


def _throughput(elements_per_s: float, measured: ServiceMeasurement) -> str:
    return f"{units.format_bytes(elements_per_s * measured.element_bytes)}/s" if measured.element_bytes else "-"


def _capital(text: str) -> str:
    return text if text.startswith("`") else text[:1].upper() + text[1:]
