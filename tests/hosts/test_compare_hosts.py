"""Stragglers, the most input-bound host, and differences; on made-up hosts and on real captures of a tf.data service."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.hosts import analyse_path
from tests.hosts.made_hosts import RUN, profile_of, write_hosts

DATA = Path(__file__).parent / "data"


def hosts_of(logdir, **options):
    return analyse_path(logdir, None, "run", **options)


def test_the_most_input_bound_host_is_first_and_has_the_verdict(tmp_path):
    analysis = hosts_of(write_hosts(tmp_path, {"a": 100, "b": 400, "c": 120}))
    assert [host.hostname for host in analysis.hosts.hosts] == ["b", "c", "a"]
    assert analysis.main.host == "b"
    assert analysis.verdict.input_wait_share == pytest.approx(0.4, abs=0.01)
    assert "Host: b, the most input-bound of 3." in analysis.verdict.sentence


@pytest.mark.long
def test_a_straggler_among_many_is_named_with_its_excess(tmp_path):
    waits = {f"host-{number}": 100 + number % 5 for number in range(30)} | {"host-17": 600}
    comparison = hosts_of(write_hosts(tmp_path, waits)).hosts
    assert [host.hostname for host in comparison.hosts if host.is_straggler] == ["host-17"]
    (sentence,) = comparison.stragglers
    assert "host-17 is a straggler: its steps wait 600 us" in sentence
    assert "498 us longer" in sentence
    assert "all hosts lose that time" in sentence
    assert comparison.do_step_together


def test_steps_of_different_length_are_not_reported_as_synchronous(tmp_path):
    logdir = write_hosts(tmp_path, {"a": 100, "b": 101, "c": 102}, d={})
    profile_of("slow", 900, step_us=1800).write(logdir / RUN / "slow.xplane.pb")
    comparison = hosts_of(logdir).hosts
    assert comparison.do_step_together is False
    assert "all of them lose" not in comparison.stragglers[0]


@pytest.mark.parametrize(
    "waits",
    [
        {"a": 100, "b": 104, "c": 98, "d": 101},
        {"a": 500, "b": 520, "c": 510},  # all wait: nobody holds the others up
        {"a": 1.0, "b": 1.1, "c": 9},  # nine times the others, and nothing beside a step
        {"a": 10, "b": 20, "c": 300, "d": 500, "e": 900},  # no two alike: no outlier either
    ],
)
def test_no_straggler_where_none_is(tmp_path, waits):
    assert hosts_of(write_hosts(tmp_path, waits)).hosts.stragglers == ()


def test_of_two_hosts_the_slower_one_can_be_the_straggler(tmp_path):
    comparison = hosts_of(write_hosts(tmp_path, {"a": 100, "b": 500})).hosts
    assert [host.hostname for host in comparison.hosts if host.is_straggler] == ["b"]


def test_differences_between_hosts_are_reported(tmp_path):
    logdir = write_hosts(tmp_path, dict.fromkeys("abcde", 100), c={"parallelism": 1})
    assert hosts_of(logdir).hosts.differences == ("On c the parallelism of ParallelMapV2 is 1, on 4 others 4.",)


def test_values_that_scatter_are_told_together(tmp_path):
    names = "abcdef"
    logdir = write_hosts(
        tmp_path, dict.fromkeys(names, 100), **{n: {"parallelism": 2 + i} for i, n in enumerate(names)}
    )
    (sentence,) = hosts_of(logdir).hosts.differences
    assert sentence.startswith("Between hosts the parallelism of ParallelMapV2 is not the same")


def test_a_host_without_a_pipeline_is_in_the_table(tmp_path):
    logdir = write_hosts(tmp_path, {"a": 100, "b": 100})
    idle = profile_of("idle", 10)
    del idle.host.message.lines[:]
    idle.write(logdir / RUN / "idle.xplane.pb")
    comparison = hosts_of(logdir).hosts
    assert comparison.hosts[-1].hostname == "idle"
    assert comparison.hosts[-1].input_wait_share is None
    assert "No pipeline was consumed on idle." in comparison.differences


def test_processes_of_one_machine_go_by_their_files(tmp_path):
    for port in (6009, 6010):
        profile_of("machine", 100).write(tmp_path / RUN / f"localhost_{port}.xplane.pb")
    names = {host.hostname for host in hosts_of(tmp_path).hosts.hosts}
    assert names == {"localhost_6009", "localhost_6010"}


def test_one_host_is_no_comparison(tmp_path):
    assert hosts_of(write_hosts(tmp_path, {"a": 100})).hosts is None


class TestService:
    """Real captures: a trainer and a tf.data service worker."""

    def test_the_worker_is_joined_to_its_consumer(self):
        analysis = hosts_of(DATA / "service")
        worker = next(host for host in analysis.hosts.hosts if host.hostname == "worker")
        assert worker.is_data_service_worker
        assert worker.input_wait_share is None, "it always asks for the next element: that is no wait of a step"
        (sentence,) = analysis.hosts.services
        assert sentence.startswith("trainer gets its elements from the tf.data service")
        assert "most of whose time goes to MapAndBatch" in sentence
        assert analysis.main.host == "trainer"
        assert not analysis.hosts.stragglers

    def test_both_see_the_same_elements(self):
        trainer, worker = hosts_of(DATA / "service").hosts.hosts
        assert worker.elements_per_s == pytest.approx(trainer.elements_per_s, rel=0.05)

    def test_a_worker_alone_has_no_verdict_on_a_training(self):
        verdict = hosts_of(DATA / "service", hosts=("worker",)).verdict
        assert verdict.input_wait_share is None
        assert verdict.sentence.startswith("This is a tf.data service worker")
