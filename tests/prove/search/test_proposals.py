"""What is said to be left out was never tried."""

from __future__ import annotations

from dataclasses import replace

from advisor.engine import load_rules
from advisor.engine.run import run_rules
from advisor.model.edits import InsertAfter, MoveAfter, Vectorize
from advisor.model.finding import Finding, Fix, Prediction, RunGain, Safety
from advisor.model.outcome import Report
from advisor.model.outlook import CombinedPlan, Limit, Outlook
from advisor.model.pipeline import Analysis
from advisor.model.settings import Settings
from advisor.model.untried import Why
from advisor.prove.search.proposals import Proposals
from advisor.testing import batch, map_, pipeline, source
from tests.predict.simulated_passes import script

MADE = pipeline(source(bytes=20_000), map_("decode", ms=5), batch(32), consumer_ms=5).analysis
MAP = next(call for call in MADE.calls if call.method == "map")


def finding(title: str, is_auto: bool, method: str = "prefetch") -> Finding:
    fix = Fix((InsertAfter(MAP.id, method, (("", 2),)),), Safety.EXACT, is_auto=is_auto)
    return Finding("a-rule", title, "", site=MAP.site, prediction=Prediction(2, 2, 2), fix=fix)


def report(*findings: Finding) -> Report:
    made = run_rules(MADE, load_rules([], Settings()), Settings())
    return Report(made.analysis, findings=findings)


def test_what_was_tried_is_not_said_to_be_left_out() -> None:
    """The same change proposed again, on top of the one that is kept, and now only when asked for."""
    proposals = Proposals({call.id: call for call in MADE.calls}, None)
    tried = finding("Do it", is_auto=True)
    assert proposals.propose(report(tried), ()) == [tried]
    assert proposals.propose(report(finding("Do it", is_auto=False, method="skip")), (tried,)) == []
    reason = "Do it: Tried only if requested by name: --only a-rule."
    assert proposals.left_out() == (reason,)
    assert proposals.left_out([tried]) == ()
    assert proposals.left_out([finding("Do something else", is_auto=True)]) == (reason,)


def test_what_cannot_be_written_is_not_proposed_where_it_is_to_be_written(tmp_path) -> None:
    from advisor.model.calls import Call, Site

    script = tmp_path / "train.py"
    text = "ds = ds.map(decode)\n"
    script.write_text(text)
    site = Site(str(script), 1, 9, 1, len(text))
    calls: dict[str, Call] = {MAP.id: replace(MAP, site=site, text=text.strip()[5:])}
    wanted = finding("Do it", is_auto=True)
    for mode, is_to_be_written, is_proposed in ((0o644, True, True), (0o444, False, True), (0o444, True, False)):
        script.chmod(mode)
        proposals = Proposals(calls, tmp_path, is_to_be_written=is_to_be_written)
        assert bool(proposals.propose(report(wanted), ())) == is_proposed, proposals.left_out()
        assert bool(proposals.unwritable) != is_proposed
    assert proposals.left_out() == (f"Do it: {script} is read-only.",)


def test_only_names_of_rules_apply_what_is_undecided() -> None:
    fix = finding("Do it", is_auto=True)
    assert not Proposals({}, None, allow=frozenset(Safety)).is_asked(fix)
    assert Proposals({}, None, only={"a-rule"}).is_asked(fix)
    assert not Proposals({}, None, only={"another-rule"}).is_asked(fix)


def test_a_vectorised_function_may_round_otherwise_where_the_user_allows_it() -> None:
    calls = {call.id: call for call in MADE.calls}
    last = next(call for call in MADE.calls if call.method == "batch")
    fix = Fix((MoveAfter(MAP.id, last.id), Vectorize(MAP.id)), Safety.EXACT, is_auto=True)
    vectorised = Finding("vectorizable-map", "Vectorise it", "", prediction=Prediction(2, 2, 2), fix=fix)
    cached = finding("Cache it", is_auto=True)

    def safeties(*allow: Safety) -> list[Safety]:
        proposed = Proposals(calls, None, allow).propose(report(vectorised), ())
        return [proposal.fix.safety for proposal in proposed if proposal.fix is not None]

    assert safeties() == safeties(Safety.REORDERED) == [Safety.EXACT]
    assert safeties(Safety.NUMERICS) == [Safety.NUMERICS]
    assert Proposals(calls, None, [Safety.NUMERICS]).propose(report(cached), ()) == [cached]
    on_request = replace(vectorised, fix=replace(fix, is_auto=False))
    assert Proposals(calls, None, [Safety.NUMERICS]).propose(report(on_request), ()) == []
    asked = Proposals(calls, None, [Safety.NUMERICS], only=["vectorizable-map"]).propose(report(on_request), ())
    assert [proposal.fix.safety for proposal in asked if proposal.fix is not None] == [Safety.NUMERICS]


def planned(passes: float | None, *members: int, gain_of_other: float = 2) -> Report:
    """A report with a cache and, after it, a change that helps from the first element; the plan consists of `members`."""
    cached = replace(finding("Cache it", True, "cache"), prediction=Prediction(9, 9, 9, first_pass=1.0))
    parallel = replace(finding("Do it", True), prediction=Prediction(gain_of_other, gain_of_other, gain_of_other))
    made = report(cached, parallel)
    gain = RunGain(passes, "unknown" if passes is None else "known", None, 0.0, "step")
    plan = CombinedPlan(members, Prediction(9, 9, 9), 0, Limit("consumer", 1.0), 9.0, None, "", gain)
    return replace(made, outlook=Outlook(1.0, 1.0, (), (), None, plan))


def titles(made: Report, analysis: Analysis | None = None) -> list[str]:
    proposals = Proposals({call.id: call for call in MADE.calls}, None, analysis=analysis)
    return [proposed.title for proposed in proposals.propose(made, ())]


def test_what_helps_the_first_epoch_is_tried_before_the_caches_of_the_plan() -> None:
    assert titles(planned(3, 0, 1)) == ["Do it", "Cache it"]
    assert titles(planned(None, 0, 1)) == ["Cache it", "Do it"]  # nobody knows how much the first epoch matters
    assert titles(planned(3, 0)) == ["Cache it", "Do it"]  # beside the cache, it is not worth it


def test_what_saves_little_is_not_tried_before_a_cache_that_saves_much() -> None:
    """A trial takes about a minute, and a small budget has time for one."""
    assert titles(planned(3, 0, 1, gain_of_other=1.11)) == ["Cache it", "Do it"]
    assert titles(planned(3, 0, 1, gain_of_other=1.9)) == ["Do it", "Cache it"]


def test_the_epochs_of_the_script_order_what_the_pipeline_alone_proposes() -> None:
    """Profiles of the changed pipeline know nothing of the script's epochs."""
    made = planned(None, 0, 1)
    assert titles(made, script(end="finished", iterators=2, steps=20)) == ["Do it", "Cache it"]
    assert titles(made, script(end="finished", iterators=9, steps=90)) == ["Cache it", "Do it"]
    assert titles(made, script()) == ["Cache it", "Do it"]


def test_a_cache_is_not_proposed_to_a_run_that_reads_its_data_once() -> None:
    """The pipeline alone does not know that, and would be much faster with it."""
    made, once = planned(None, 0, 1), script(end="finished", iterators=1, steps=10)
    assert titles(made, once) == ["Do it"]
    proposals = Proposals({call.id: call for call in MADE.calls}, None, analysis=once)
    proposals.propose(made, ())
    assert [left.why for left in proposals.not_tried()] == [Why.SMALL_GAIN]
    assert "at most one pass over the data" in proposals.left_out()[0]
    asked = Proposals({call.id: call for call in MADE.calls}, None, only={"a-rule"}, analysis=once)
    assert {proposed.title for proposed in asked.propose(made, ())} == {"Cache it", "Do it"}
