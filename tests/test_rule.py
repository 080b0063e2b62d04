"""What rule files import: where an edit can be written, what a fix of several maps claims."""

from __future__ import annotations

from dataclasses import replace

from advisor.engine import load_rules, run_rules
from advisor.model.calls import Site
from advisor.model.edits import InsertAfter
from advisor.model.finding import Safety
from advisor.model.settings import Settings
from advisor.rewrite.source import rewrite
from advisor.rule import is_editable, last_editable_call, parallel_fix, takes_link
from advisor.testing import batch, map_, pipeline, prefetch, shuffle, source

SCRIPT = 'ds = image_dataset_from_directory("photographs")\nds = ds.prefetch(tf.data.AUTOTUNE)\n'


def from_library():
    """A pipeline whose reading, decoding and batching a library did, in one line of the script."""
    made = pipeline(source(), map_("load", ms=5, bytes=9_000), batch(32), prefetch(), consumer_ms=5, epochs=3)
    line = SCRIPT.splitlines()[0]
    site = Site("train.py", 1, line.index("image_") + 1, 1, len(line) + 1)
    *inside, last = made.analysis.calls
    end = Site("train.py", 2, len("ds = ds.") + 1, 2, len(SCRIPT.splitlines()[1]) + 1)
    calls = (*(replace(call, site=site, library="keras", text="") for call in inside), replace(last, site=end))
    new = {call.id: call for call in calls}
    main = made.analysis.main
    iterators = tuple(replace(it, calls=tuple(new[call.id] for call in it.calls)) for it in main.iterators)
    others = tuple(pipeline for pipeline in made.analysis.pipelines if pipeline is not main)
    return replace(made.analysis, calls=calls, pipelines=(replace(main, iterators=iterators), *others))


def of_rule(name, analysis):
    rules = [loaded for loaded in load_rules([], Settings()) if loaded.id == name]
    return run_rules(analysis, rules, Settings()).findings


def test_a_link_goes_behind_the_last_call_of_a_library():
    analysis = from_library()
    taking = [call.method for call in analysis.calls if takes_link(analysis, call)]
    assert taking == ["batch", "prefetch"]
    assert [call.method for call in analysis.calls if is_editable(call)] == ["prefetch"]


def test_a_cache_behind_a_library_is_written_behind_its_call():
    analysis = from_library()
    (finding,) = of_rule("repeated-work", analysis)
    (edit,) = finding.fix.edits
    assert isinstance(edit, InsertAfter) and finding.fix.safety is Safety.EXACT
    assert '("photographs").cache()\n' in rewrite(SCRIPT, finding.fix, {call.id: call for call in analysis.calls})


def test_a_shuffle_of_a_library_cannot_be_moved_behind_a_cache():
    made = pipeline(source(), shuffle(500), map_("load", ms=5, bytes=9_000), batch(32), consumer_ms=5, epochs=3)
    assert of_rule("repeated-work", made.analysis)[0].fix is not None
    calls = tuple(replace(call, library="keras") if call.method == "shuffle" else call for call in made.analysis.calls)
    new = {call.id: call for call in calls}
    main = made.analysis.main
    iterators = tuple(replace(it, calls=tuple(new[call.id] for call in it.calls)) for it in main.iterators)
    analysis = replace(made.analysis, calls=calls, pipelines=(replace(main, iterators=iterators),))
    assert of_rule("repeated-work", analysis) == ()


def test_the_last_call_that_takes_a_link_is_the_consumers():
    analysis = from_library()
    assert last_editable_call(analysis, analysis.main).method == "prefetch"


def test_parallel_maps_claim_the_most_harmful_of_what_each_does():
    made = pipeline(
        source(), map_("decode", ms=1), map_("augment", ms=1, random=True), map_("tokenize", ms=1, python=True), consumer_ms=1
    )  # fmt: skip
    decode, augment, tokenize = made.analysis.calls[1:4]
    assert parallel_fix((decode,)).safety is Safety.EXACT
    assert parallel_fix((decode, augment)).safety is Safety.RERANDOMIZED
    assert parallel_fix((decode, augment)).is_auto
    assert not parallel_fix((decode, tokenize)).is_auto
    assert parallel_fix((decode, replace(augment, library="keras"))) is None
