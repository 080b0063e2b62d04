"""Data of the charts and the timeline.

In: the dictionary of report.json.  Out: compact columns for the scripts; times in milliseconds where an axis shows them.
"""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]

CATEGORIES = (
    ("compile_ns", "Compile"),
    ("input_ns", "Input"),
    ("output_ns", "Output"),
    ("kernel_launch_ns", "Kernel launch"),
    ("host_compute_ns", "Host compute"),
    ("device_communication_ns", "Device communication"),
    ("device_compute_ns", "Device compute"),
    ("other_ns", "Other"),
)
"""The profiler guide's categories of a step, in its order."""
_NS_PER_MS = 1e6


def chart_data(report: Json) -> Json:
    """Return the data of everything drawn except the pipeline graphs."""
    statistics = report.get("statistics") or {}
    return {
        "categories": [title for _, title in CATEGORIES],
        "hosts": [_host(host) for host in statistics.get("hosts") or ()],
        "memory": [_allocator(one) for one in (statistics.get("memory") or {}).get("allocators", ())],
        "timeline": [_timeline(view) for view in report.get("timeline") or ()],
    }


def _breakdown(breakdown: Json) -> list[float]:
    return [breakdown[key] / _NS_PER_MS for key, _ in CATEGORIES]


def _host(host: Json) -> Json:
    return {
        "host": host["host"],
        "mean": _breakdown(host["mean"]),
        "steps": [[step["number"], *_breakdown(step["breakdown"])] for step in host["steps"]],
    }


def _allocator(one: Json) -> Json:
    return {
        "name": f"{one['allocator']} ({one['host']})",
        "points": [
            [point["time_ns"] / _NS_PER_MS, point["heap_bytes"], point["stack_bytes"], point["free_bytes"],
             point["fragmentation"]]
            for point in one["timeline"]
        ],
    }  # fmt: skip


def _timeline(view: Json) -> Json:
    return {
        "host": view["host"],
        "duration": view["duration_ns"],
        "names": view["names"],
        "kinds": view["kinds"],
        "lanes": [[lane["name"], lane["spans"]] for lane in view["lanes"]],
    }
