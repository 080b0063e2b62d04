"""The commands that a finding names can be typed as they are: complete, quoted, and only where they help."""

from __future__ import annotations

import shlex
from dataclasses import replace

import pytest

from advisor.commands.fix import command as fix
from advisor.commands.prove import command as prove
from advisor.engine.next_commands import with_commands
from advisor.model.finding import Finding, Safety
from advisor.model.settings import Settings
from tests.engine.test_permissions import ASSUMED, MADE, RANDOM, SCRIPT, analysis, finding

EXACT = finding("serial-map", Safety.EXACT)


def commands(one: Finding, made=None, allow=()):
    (finding,) = with_commands(made or analysis(*SCRIPT), [replace(one, diff="a diff")], Settings(allow=allow))
    return finding.prove_command, finding.fix_command


@pytest.mark.parametrize(
    ("one", "allow", "options"),
    [
        (EXACT, (), "--only serial-map"),
        (RANDOM, (), "--allow rerandomized --only serial-map"),
        (ASSUMED, (), "--only repeated-work"),
        (ASSUMED, ("reordered",), "--allow reordered --only repeated-work"),
    ],
)
def test_the_fix_is_tried_alone_with_what_it_needs(one, allow, options):
    _, command = commands(one, allow=allow)
    assert command == f"advisor fix {options} {shlex.join(SCRIPT)}"
    context = fix.make_context("fix", shlex.split(command)[2:])
    assert (context.params["target"], context.params["args"]) == (SCRIPT[0], SCRIPT[1:])


def test_the_proof_reads_the_diff_and_allows_no_more_than_the_settings():
    command, _ = commands(RANDOM)
    assert command == f"advisor prove --patch - {shlex.join(SCRIPT)}"
    context = prove.make_context("prove", shlex.split(command)[2:])
    assert (context.params["target"], context.params["args"]) == (SCRIPT[0], SCRIPT[1:])
    assert str(context.params["patch"]) == "-"
    assert commands(RANDOM, allow=("reordered",))[0].startswith("advisor prove --patch - --allow reordered ")


def test_of_a_module():
    assert commands(EXACT, analysis("-m", "pkg.train", "--x"))[0] == "advisor prove --patch - -m pkg.train --x"


@pytest.mark.parametrize("made", [MADE, analysis()])
def test_a_run_that_cannot_be_repeated_has_none(made):
    assert commands(EXACT, made) == ("", "")


def test_a_fix_that_is_never_tried_has_none():
    assert commands(finding("serial-map", Safety.CHANGES))[1] == ""
    advice = Finding("next-step", "Do it", "")
    assert with_commands(analysis(*SCRIPT), [advice], Settings()) == (advice,)
