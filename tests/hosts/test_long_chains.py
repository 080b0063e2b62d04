"""Pipelines of many iterators stay readable in the sentences that compare hosts."""

from __future__ import annotations

from dataclasses import replace

from advisor.graph import HostPart
from advisor.hosts.compare_hosts import compare
from advisor.hosts.merged_hosts import merge_all, of_host
from tests.hosts.made_hosts import write_hosts
from tests.hosts.test_compare_hosts import hosts_of


def differences(tmp_path, names_of):
    """What differs between hosts whose pipelines consist of those iterators, source first."""
    analysis = hosts_of(write_hosts(tmp_path, dict.fromkeys(names_of, 100)))
    changed = []
    for pipeline in analysis.pipelines:
        root = pipeline.root
        names = [*reversed(names_of[pipeline.host])]
        below = [replace(root, id=f"{pipeline.id}.{n}", parent_id=root.id, name=name) for n, name in enumerate(names)]
        changed.append(replace(pipeline, iterators=(root, *below)))
    parts = [
        HostPart(host, f"{host}.xplane.pb", tuple(p for p in changed if p.host == host)) for host in sorted(names_of)
    ]
    merged = merge_all(of_host(place, part) for place, part in enumerate(parts))
    return compare(replace(analysis, pipelines=tuple(changed)), merged).hosts.differences


def test_fifty_sources_are_one_word(tmp_path):
    (sentence,) = differences(tmp_path, {"a": ["Range"] * 50, "b": ["Range"] * 50, "c": ["Range"] * 49})
    assert sentence.startswith("On c the slowest pipeline is Range (49 times) -> ")
    assert "others Range (50 times) -> " in sentence
    assert sentence.count("Range") == 2


def test_a_long_chain_shows_its_ends(tmp_path):
    long = [f"Kind{number}" for number in range(60)]
    (sentence,) = differences(tmp_path, {"a": long, "b": long, "c": long[1:]})
    assert "Kind0 -> " in sentence and "... 49 more ..." in sentence and "-> Kind59" in sentence
    assert len(sentence) < 400
