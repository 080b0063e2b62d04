"""`advisor rules`: list the rules.

In: folders of more rules.  Out: a table on stdout.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from advisor.commands.output import console_for_people
from advisor.commands.script_target import rules_option

if TYPE_CHECKING:
    from advisor.engine import LoadedRule


@click.command("rules", short_help="List the rules.")
@rules_option
def command(rules: tuple[Path, ...]) -> None:
    """List the rules: id and what each one finds."""
    from advisor.report.rule_pages import print_rules

    print_rules(rules_here(rules), console_for_people())


def rules_here(folders: Sequence[Path]) -> list[LoadedRule]:
    """The rules with the thresholds that the current folder's settings give them."""
    from advisor.engine import load_rules
    from advisor.settings import load_settings

    return load_rules(folders, load_settings(Path.cwd()))
