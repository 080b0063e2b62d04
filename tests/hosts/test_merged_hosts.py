"""Hosts that are merged in groups: any grouping gives what all hosts in memory give, and few hosts are kept in full."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.hosts import merged_hosts
from advisor.hosts.analyze_hosts import assemble
from advisor.hosts.host_jobs import analyse_group
from advisor.hosts.merged_hosts import MergedHosts, merge, merge_all
from advisor.model.errors import AdvisorError
from advisor.profile.profile_files import host_of
from advisor.statistics.collect import Collected
from tests.effort import examples
from tests.hosts.all_in_memory import analyse_all
from tests.hosts.made_hosts import profile_of
from tests.profile.made_profile import ProfileBuilder
from tests.statistics.made_profiles import gpu_training

SERVICE = Path(__file__).parent / "data/service"


def few_steps(wait_us: float, length_us: float, steps: int = 2) -> ProfileBuilder:
    """Steps that the program marked."""
    profile = profile_of("x", wait_us, length_us, steps=steps)
    line = profile.host.line("train")
    for step in range(steps):
        line.event("train", step * length_us, (step + 1) * length_us, step_num=step, _r=1)
        line.event("x:MatMul", step * length_us + wait_us, (step + 1) * length_us, "MatMul")
    return profile


def idle() -> ProfileBuilder:
    profile = profile_of("x", 10)
    del profile.host.message.lines[:]
    return profile


KINDS = {
    **{f"waits {wait}": lambda wait=wait: profile_of("x", wait) for wait in (1, 100, 101, 103, 400, 600)},
    "longer steps": lambda: profile_of("x", 300, step_us=1800),
    "other parallelism": lambda: profile_of("x", 100, parallelism=1),
    "no cores": lambda: profile_of("x", 100, cpu_budget=1),
    "few steps": lambda: few_steps(300, 1000),
    "few and slow steps": lambda: few_steps(900, 1000),
    "one slow step": lambda: few_steps(900, 1000, steps=1),
    "gpu": gpu_training,
    "idle": idle,
    "damaged": lambda: None,
}

hosts = st.lists(st.tuples(st.sampled_from(sorted(KINDS)), st.sampled_from("abcdefghijkl")), min_size=1, max_size=9)


def write(folder: Path, drawn: list[tuple[str, str]]) -> list[Path]:
    paths = []
    for place, (kind, name) in enumerate(drawn):
        path = folder / f"file{place:03}.xplane.pb"
        profile = KINDS[kind]()
        if profile is None:
            path.write_bytes(b"no profile")
        else:
            profile.message.hostnames[:] = [name.encode()]
            profile.write(path)
        paths.append(path)
    return paths


def leaves(paths: list[Path]) -> list[MergedHosts]:
    return [analyse_group((path,), place, None) for place, path in enumerate(paths)]


def in_a_tree(parts: list[MergedHosts], data: st.DataObject) -> MergedHosts:
    """Merge neighbours in an order that Hypothesis draws; each result goes through pickle, as between processes."""
    parts = list(parts)
    while len(parts) > 1:
        place = data.draw(st.integers(0, len(parts) - 2))
        parts[place : place + 2] = [pickle.loads(pickle.dumps(merge(parts[place], parts[place + 1])))]
    return parts[0]


def without_detailed(analysis):
    """The same, without the number of hosts whose pipelines are kept, which the reference does not know."""
    return analysis if analysis.hosts is None else replace(analysis, hosts=replace(analysis.hosts, num_detailed=0))


@settings(max_examples=examples(60))
@given(hosts, st.data())
def test_any_tree_gives_what_all_hosts_in_memory_give(tmp_path_factory, drawn, data):
    paths = write(tmp_path_factory.mktemp("run"), drawn)
    try:
        expected = analyse_all(paths)
    except AdvisorError as error:
        with pytest.raises(AdvisorError) as raised:
            assemble(in_a_tree(leaves(paths), data), None, "run")
        assert str(raised.value) == str(error)
        return
    assert without_detailed(assemble(in_a_tree(leaves(paths), data), None, "run")) == expected


def test_left_right_and_balanced_trees(tmp_path):
    """The order of hosts shows in names, in the first of equal values, and in ties."""
    drawn = [(kind, name) for name, kind in zip("lkjihgfedcba", [*sorted(KINDS)][:10] + ["waits 100"] * 2, strict=True)]
    drawn += [("other parallelism", "m"), ("idle", "n"), ("other parallelism", "o"), ("idle", "p")]
    paths = write(tmp_path, drawn)
    expected = analyse_all(paths)
    parts = leaves(paths)
    for tree in (merge_all, from_the_right, balanced):
        analysed = assemble(tree(pickle.loads(pickle.dumps(parts))), None, "run")
        assert without_detailed(analysed) == expected, tree


def from_the_right(parts: list[MergedHosts]) -> MergedHosts:
    result = parts.pop()
    while parts:
        result = merge(parts.pop(), result)
    return result


def balanced(parts: list[MergedHosts]) -> MergedHosts:
    half = len(parts) // 2
    return merge(balanced(parts[:half]), balanced(parts[half:])) if half else parts[0]


@settings(max_examples=examples(60))
@given(hosts, st.data())
@pytest.mark.long
def test_with_few_hosts_in_full_the_rest_of_the_report_is_the_same(tmp_path_factory, drawn, data):
    paths = write(tmp_path_factory.mktemp("run"), drawn)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(merged_hosts, "MAX_DETAILED", 2)
        patch.setattr(merged_hosts, "MAX_OTHERS", 1)
        merged = in_a_tree(leaves(paths), data)
        assert len(merged.details) <= 4
        if not merged.rows:
            return
        analysed = assemble(merged, None, "run")
    expected = analyse_all(paths)
    assert analysed.verdict == expected.verdict
    assert analysed.main == expected.main
    assert analysed.warnings == expected.warnings
    assert without_detailed(analysed).hosts == expected.hosts
    assert analysed.device == expected.device
    assert [p for p in expected.pipelines if p in analysed.pipelines] == list(analysed.pipelines), "with the same ids"
    if expected.statistics is not None:
        assert analysed.statistics.overview == expected.statistics.overview
        assert analysed.statistics.ops == expected.statistics.ops
        assert analysed.statistics.kernels == expected.statistics.kernels


@settings(max_examples=examples(10))
@given(st.data())
def test_a_recorded_service_in_any_tree(recorded_service, data):
    expected, parts = recorded_service
    assert without_detailed(assemble(in_a_tree(pickle.loads(parts), data), None, "run")) == expected


@pytest.fixture(scope="module")
def recorded_service(tmp_path_factory):
    """Copies of a recorded trainer and of a recorded worker."""
    folder = tmp_path_factory.mktemp("service")
    recorded = {host_of(path): path for path in SERVICE.rglob("*.xplane.pb*")}
    paths = []
    for place, name in enumerate(("trainer", "worker", "worker", "trainer")):
        suffix = recorded[name].name.removeprefix(name)
        path = folder / f"{place}{suffix}"
        path.write_bytes(recorded[name].read_bytes())
        paths.append(path)
    expected = analyse_all(paths)
    assert len(expected.hosts.services) == 2
    return expected, pickle.dumps(leaves(paths))


def test_merging_changes_neither_argument(tmp_path):
    paths = write(tmp_path, [("gpu", "a"), ("waits 100", "b"), ("few steps", "c")])
    first, second, third = leaves(paths)
    before = assemble(merge_all(pickle.loads(pickle.dumps([first, second, third]))), None, "run")
    merge(merge(first, second), third)
    assert assemble(merge_all([first, second, third]), None, "run") == before


@pytest.mark.long
def test_equal_hosts_take_a_row_each_and_nothing_else(tmp_path):
    """The size of what is merged grows by the rows of the table alone."""
    (path,) = write(tmp_path, [("waits 100", "a")])
    sizes = {}
    for number in (64, 128, 256):
        parts = [renamed(analyse_group((path,), place, None), f"host{place:04}") for place in range(number)]
        sizes[number] = len(pickle.dumps(merge_all(parts)))
    row = (sizes[256] - sizes[128]) / 128
    assert row == pytest.approx((sizes[128] - sizes[64]) / 64, rel=0.2), "as much for each further host"
    assert row < 600
    assert len(merge_all(parts).details) <= merged_hosts.MAX_DETAILED + 2 * merged_hosts.MAX_OTHERS


def renamed(hosts: MergedHosts, name: str) -> MergedHosts:
    """The same host under another name."""
    (row,), (detail,) = hosts.rows, hosts.details
    collected = Collected()
    collected.merge(hosts.collected)
    collected.names = {name: name}
    return replace(
        hosts,
        rows=(replace(row, file=name, summary=replace(row.summary, hostname=name)),),
        details=(replace(detail, part=replace(detail.part, hostname=name)),),
        collected=collected,
    )


def test_the_pipelines_of_a_straggler_with_long_steps_are_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(merged_hosts, "MAX_DETAILED", 1)
    monkeypatch.setattr(merged_hosts, "MAX_OTHERS", 1)
    paths = write(tmp_path, [("waits 100", name) for name in "abcdef"])
    profile_of("late", 900, step_us=40_000).write(tmp_path / "late.xplane.pb")
    analysis = assemble(merge_all(leaves([*paths, tmp_path / "late.xplane.pb"])), None, "run")
    assert analysis.hosts.hosts[-1].hostname == "late", "it waits the smallest share"
    assert {pipeline.host for pipeline in analysis.pipelines} == {"a", "late"}


def test_the_verdict_on_few_steps_finds_its_host(tmp_path, monkeypatch):
    """Between two requests for an element one host has no step, and its marked step waits longest."""
    monkeypatch.setattr(merged_hosts, "MAX_DETAILED", 1)
    monkeypatch.setattr(merged_hosts, "MAX_OTHERS", 1)
    paths = write(tmp_path, [("few steps", "a"), ("one slow step", "b"), ("few steps", "c")])
    analysis = assemble(merge_all(leaves(paths)), None, "run")
    assert analysis.main.host == "b"
    assert analysis.verdict == analyse_all(paths).verdict
    assert without_detailed(analysis).hosts == analyse_all(paths).hosts


def test_a_report_of_many_hosts_says_whose_pipelines_it_has(tmp_path, monkeypatch):
    from advisor.report.hosts_text import host_sentences

    monkeypatch.setattr(merged_hosts, "MAX_DETAILED", 2)
    monkeypatch.setattr(merged_hosts, "MAX_OTHERS", 1)
    paths = write(tmp_path, [(kind, kind[-3:]) for kind in ("waits 1", "waits 400", "waits 103", "waits 600")])
    analysis = assemble(merge_all(leaves(paths)), None, "run")
    assert [pipeline.host for pipeline in analysis.pipelines] == ["400", "600"]
    assert analysis.hosts.num_detailed == 2
    assert len(analysis.hosts.hosts) == 4
    assert analysis.statistics.left_out == {"hosts": 2, "input.pipelines": 2}
    assert "report.json has the pipelines of the 2 most input-bound hosts" in host_sentences(analysis.hosts)
