"""`advisor explain`: print the page of one rule.

In: a rule's id.  Out: its page on stdout.
"""

from __future__ import annotations

from pathlib import Path

import click

from advisor.commands.output import console_for_people
from advisor.commands.rules import rules_here
from advisor.commands.script_target import rules_option


@click.command("explain", short_help="Explain one rule.")
@click.argument("rule", metavar="RULE")
@rules_option
def command(rule: str, rules: tuple[Path, ...]) -> None:
    """Print the page of RULE: why the pattern is slow, what the fix does, and when not to apply it."""
    from advisor.model.text import did_you_mean
    from advisor.report.rule_pages import print_page

    by_id = {loaded.id: loaded for loaded in rules_here(rules)}
    if rule not in by_id:
        hint = did_you_mean(rule, by_id) or " `advisor rules` lists all rules."
        raise click.UsageError(f"There is no rule {rule!r}.{hint}")
    print_page(by_id[rule], console_for_people())
