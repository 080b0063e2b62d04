"""Prepares input pipelines for the graph page: nodes, edges, figures per rank, and details.

In: the dictionary of report.json.  Out: one view per pipeline with the values for the template and, under `drawn`, the data for
the script. Nothing is computed; figures from the report are only formatted.
"""

from __future__ import annotations

from typing import Any

from advisor.model import units
from advisor.report.html.wording import MISSING, call_name, clip, site_name, site_text

MAX_PIPELINES = 40
"""Pipelines drawn; the table above the graph lists the others too."""
MAX_NODES = 150
"""Nodes drawn per pipeline."""
MAX_NODES_IN_ALL = 300
"""Nodes drawn in total, at about 4 KiB each, to leave room for the other pages."""
NODE_TEXT = 34
"""Characters that fit into a node."""

Json = dict[str, Any]


def pipeline_views(report: Json) -> list[Json]:
    """Return one view per pipeline, the main pipeline first."""
    pipelines = sorted(report["pipelines"], key=lambda pipeline: not pipeline["is_main"])[:MAX_PIPELINES]
    calls = {call["id"]: call for call in report.get("calls", ())}
    views: list[Json] = []
    left = MAX_NODES_IN_ALL
    for number, pipeline in enumerate(pipelines):
        iterators = pipeline["iterators"][: min(MAX_NODES, left)]
        if not iterators:
            break
        views.append(_view(number, pipeline, iterators, calls, report["findings"]))
        left -= len(iterators)
    return views


def _view(number: int, pipeline: Json, iterators: list[Json], calls: dict[str, Json], findings: list[Json]) -> Json:
    places = {iterator["id"]: place for place, iterator in enumerate(iterators)}
    groups = _groups(iterators, places)
    written = _written(iterators, calls)
    title = _title(pipeline)
    return {
        "number": number,
        "title": title,
        "pipeline": pipeline,
        "left_out": len(pipeline["iterators"]) - len(iterators),
        "bottleneck": _bottleneck_name(pipeline, places),
        "details": [
            {
                "dom_id": f"node-{number}-{place}",
                "iterator": iterator,
                "boundary": groups["names"][groups["of"][place]],
                "findings": [
                    (rank, finding)
                    for rank, finding in enumerate(findings, 1)
                    if finding["iterator_id"] == iterator["id"] or _stands_at(finding["site"], iterator)
                ],
            }
            for place, iterator in enumerate(iterators)
        ],
        "written": written,
        "drawn": {
            "title": title,
            "host": pipeline["host"],
            "nodes": [_node(iterator, places) for iterator in iterators],
            "groups": groups,
            "ranks": [_whole_window(pipeline, iterators), *_slow_calls(pipeline, len(iterators))],
            "written": [_drawn_call(call, written, places) for call in written],
        },
    }


def _title(pipeline: Json) -> str:
    """The place where the pipeline is consumed; for a profile without a recording, its root iterator."""
    consumer = pipeline["consumer"]
    root = pipeline["iterators"][0]["long_name"].removeprefix("Iterator::") if pipeline["iterators"] else pipeline["id"]
    place = site_text(consumer) if consumer else ""
    where = f"{place} ({consumer['kind']})" if place else clip(root, 60)
    return f"{where} [feeds a device]" if pipeline["is_device"] and not place else where


def _bottleneck_name(pipeline: Json, places: dict[str, int]) -> Json | None:
    bottleneck = pipeline["bottleneck"]
    if not bottleneck or bottleneck["iterator_id"] not in places:
        return None
    iterator = pipeline["iterators"][places[bottleneck["iterator_id"]]]
    return {**bottleneck, "iterator": iterator, "call": main_call(iterator, bottleneck["site"])}


def main_call(iterator: Json, site: Json | None) -> Json | None:
    """Return the iterator's call at `site`, if it has one."""
    calls = [
        call for call in iterator["calls"] if site and (call["line"], call["column"]) == (site["line"], site["column"])
    ]
    return calls[0] if calls else None


def _stands_at(site: Json | None, iterator: Json) -> bool:
    """Whether one of the iterator's calls is the one at `site`."""
    wanted = (site["file"], site["line"], site["column"]) if site else None
    return any((call["file"], call["line"], call["column"]) == wanted for call in iterator["calls"])


def _node(iterator: Json, places: dict[str, int]) -> Json:
    calls = iterator["calls"]
    lines = [clip(" + ".join(call_name(call) for call in calls), NODE_TEXT)] if calls else []
    lines += [clip(", ".join(dict.fromkeys(filter(None, map(site_name, calls)))), NODE_TEXT)]
    if not calls:
        lines = ["added by tf.data"] if iterator["injected_by_tensorflow"] and iterator["parent_id"] else []
    setting = []
    if iterator["parallelism"] is not None:
        setting.append(f"parallelism {iterator['parallelism']}{' (AUTOTUNE)' if iterator['is_autotuned'] else ''}")
    if iterator["buffer_size"] is not None:
        setting.append(f"buffer {_fill(iterator)}")
    if iterator["element_bytes"] is not None:
        setting.append(f"{units.format_bytes(iterator['element_bytes'])} per element")
    return {
        "title": clip(iterator["name"], NODE_TEXT - 4),
        "lines": [line for line in lines if line],
        "settings": [clip(text, NODE_TEXT) for text in setting],
        "parent": places.get(iterator["parent_id"]),
        "isAsync": iterator["is_async"],
        "isInjected": iterator["injected_by_tensorflow"],
        "isUnseen": iterator["is_upstream_unseen"],
    }


def _fill(iterator: Json) -> str:
    size = units.format_count(iterator["buffer_size"])
    fill = iterator["buffered_elements"]
    return f"of {size}" if fill is None else f"{units.format_count(fill)} of {size} filled"


def _groups(iterators: list[Json], places: dict[str, int]) -> Json:
    """Group nodes that run on the same threads: an asynchronous iterator runs its inputs on its own threads."""
    names, of = ["the consumer's thread"], [0] * len(iterators)
    made: dict[int, int] = {}
    for place, iterator in enumerate(iterators):  # root first, parents before children
        parent = places.get(iterator["parent_id"])
        if parent is None:
            continue
        if not iterators[parent]["is_async"]:
            of[place] = of[parent]
            continue
        if parent not in made:
            made[parent] = len(names)
            names.append(f"threads of {clip(iterators[parent]['name'], 24)}")
        of[place] = made[parent]
    return {"names": names, "of": of}


def _whole_window(pipeline: Json, iterators: list[Json]) -> Json:
    return {
        "label": f"the whole window: {units.format_many(pipeline['num_calls'], 'call')}",
        "path": [place for place, iterator in enumerate(iterators) if iterator["on_critical_path"]],
        "bottleneck": next((place for place, iterator in enumerate(iterators) if iterator["is_bottleneck"]), None),
        "figures": [
            _figures(iterator["num_calls"], iterator["latency_ns"], iterator["self_ns"], iterator["blame_share"])
            for iterator in iterators
        ],
    }


def _slow_calls(pipeline: Json, count: int) -> list[Json]:
    ranks = []
    for rank, call in enumerate(pipeline["slowest_calls"], 1):
        duration = call["duration_ns"]
        columns = zip(call["num_calls"], call["total_ns"], call["self_ns"], call["blame_ns"], strict=True)
        ranks.append(
            {
                "label": f"rank {rank}: {units.format_ns(duration)}",
                "path": [place for place in call["on_critical_path"] if place < count],
                "bottleneck": call["bottleneck"] if call["bottleneck"] is None or call["bottleneck"] < count else None,
                "figures": [
                    _figures(calls, total, own, blame / duration if duration else None)
                    for calls, total, own, blame in columns
                ][:count],
            }
        )
    return ranks


def _figures(calls: int, total_ns: int, self_ns: int, share: float | None) -> list[str]:
    """Calls, total time, self time, share of the wait. In a single call, a node on other threads may have no calls."""
    times = [units.format_ns(total_ns), units.format_ns(self_ns)] if calls else [MISSING, MISSING]
    return [units.format_many(calls, "call"), *times, MISSING if share is None else units.format_share(share)]


def _written(iterators: list[Json], calls: dict[str, Json]) -> list[Json]:
    """The calls in the source, from the consumer to the sources: those that run and all their inputs."""
    known = {call["id"]: call for iterator in iterators for call in iterator["calls"]} | calls
    runs: dict[str, list[int]] = {}
    for place, iterator in enumerate(iterators):
        for call in iterator["calls"]:
            runs.setdefault(call["id"], []).append(place)
    wanted = list(runs)
    for call_id in wanted:  # the list grows during the iteration
        wanted += [above for above in known[call_id]["inputs"] if above in known and above not in wanted]
    # a call without an iterator of its own (with_options, for example) is reached through its consumers' inputs
    shown = [known[call_id] for call_id in wanted if known[call_id]["made_by"] is None][:MAX_NODES]
    return [{**call, "runs": runs.get(call["id"], [])} for call in shown]


def _drawn_call(call: Json, written: list[Json], places: dict[str, int]) -> Json:
    numbers = {other["id"]: number for number, other in enumerate(written)}
    return {
        "title": clip(call_name(call), NODE_TEXT - 4),
        "place": clip(site_name(call), NODE_TEXT),
        "inputs": [numbers[above] for above in call["inputs"] if above in numbers],
        "nestedIn": numbers.get(call["nested_in"]),
        "runs": call["runs"],
    }
