"""The command that permits a fix: complete, quoted, and only where one helps."""

from __future__ import annotations

import shlex
from dataclasses import replace

import pytest

from advisor.commands.fix import command
from advisor.engine.permissions import permission_sentence
from advisor.model.edits import InsertAfter
from advisor.model.finding import Finding, Fix, Safety
from advisor.model.recording import Recording, ScriptExit
from advisor.model.settings import Settings
from advisor.testing import batch, map_, pipeline, source

MADE = pipeline(source(), map_("augment", ms=5, random=True), batch(32), consumer_ms=20, cores=8).analysis


def analysis(*argv, is_seeded=True):
    recording = Recording(
        " ".join(argv), MADE.host, ScriptExit("finished"), argv, calls=MADE.calls, is_seeded=is_seeded
    )
    return replace(MADE, recording=recording)


def finding(rule, safety, is_auto=True, assumptions=()):
    fix = Fix((InsertAfter(MADE.calls[1].id, "cache"),), safety, is_auto=is_auto, assumptions=assumptions)
    return Finding(rule, f"Do {rule}", "", call_id=MADE.calls[1].id, fix=fix)


RANDOM, ORDER = finding("serial-map", Safety.RERANDOMIZED), finding("capped-parallelism", Safety.REORDERED)
ASSUMED = finding("repeated-work", Safety.EXACT, assumptions=("the files stay the same",))
SCRIPT = ("my train.py", "--name", "a b; rm -rf *", "--epochs=3")


@pytest.mark.parametrize(
    ("findings", "allow", "says"),
    [
        ((RANDOM,), (), ["1 fix needs your permission: advisor fix --allow rerandomized"]),
        ((RANDOM, RANDOM), (), ["2 fixes need your permission: advisor fix --allow rerandomized"]),
        ((RANDOM, ORDER), (), ["2 fixes need your permission: advisor fix --allow rerandomized --allow reordered"]),
        ((RANDOM, ORDER), ("reordered",), ["1 fix needs your permission: advisor fix --allow reordered --allow rerandomized"]),
        ((ASSUMED,), (), ["1 fix needs your permission: advisor fix --only repeated-work"]),
        (
            (RANDOM, ASSUMED),
            (),
            [
                "1 fix needs your permission: advisor fix --allow rerandomized",
                "1 fix needs your permission: advisor fix --only repeated-work",
            ],
        ),
        ((finding("late-shuffle", Safety.REORDERED, assumptions=("so",)),), (), [
            "1 fix needs your permission: advisor fix --allow reordered --only late-shuffle"
        ]),
        ((finding("serial-map", Safety.CHANGES),), (), []),
        ((finding("serial-map", Safety.EXACT),), (), []),
        ((RANDOM,), ("rerandomized",), []),
        ((), (), []),
    ],
)  # fmt: skip
def test_the_command_is_the_one_to_type(findings, allow, says):
    sentence = permission_sentence(analysis(*SCRIPT), findings, Settings(allow=allow))
    assert sentence == "; ".join(f"{start} {shlex.join(SCRIPT)}" for start in says)
    for part in filter(None, sentence.split("; 1 fix needs")):
        words = shlex.split(part.split("permission: ")[1])
        context = command.make_context("fix", words[2:])
        assert (context.params["target"], context.params["args"]) == (SCRIPT[0], SCRIPT[1:])


def test_nothing_is_permitted_that_needs_no_permission_or_cannot_run_again():
    assert not permission_sentence(analysis("train.py", is_seeded=False), [RANDOM], Settings())
    assert not permission_sentence(analysis(), [RANDOM], Settings())
    assert not permission_sentence(MADE, [RANDOM], Settings()), "a profile of someone else"
    assert "-m pkg.train --x 1" in permission_sentence(analysis("-m", "pkg.train", "--x", "1"), [RANDOM], Settings())


@pytest.mark.parametrize(("step_ns", "option"), [(5_000_000, "5ms"), (1_000, "0.001ms"), (78_130_001, "78.130001ms")])
def test_the_fix_is_for_the_step_that_was_imagined(step_ns, option):
    made = analysis("train.py")
    made = replace(made, recording=replace(made.recording, as_if_step_ns=step_ns))
    sentence = permission_sentence(made, [RANDOM], Settings())
    assert sentence.endswith(f": advisor fix --as-if-step {option} --allow rerandomized train.py")
    context = command.make_context("fix", shlex.split(sentence.split("permission: ")[1])[2:])
    assert context.params["as_if_step"] == pytest.approx(step_ns / 1e9)
