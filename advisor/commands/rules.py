"""`advisor rules`: list the rules, create a new one, test user-written ones.

In: folders with additional rules; a name; a folder.  Out: a table, two files, or a line per rule on stdout.
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

EXIT_FAILED_EXAMPLES = 1


@click.group("rules", invoke_without_command=True, short_help="List rules; create and test your own.")
@rules_option
@click.pass_context
def command(ctx: click.Context, rules: tuple[Path, ...]) -> None:
    """List the rules with their ids and the problems they detect."""
    if ctx.invoked_subcommand is None:
        from advisor.report.rule_pages import print_rules

        print_rules(rules_here(rules), console_for_people())


@command.command("new", short_help="Create a rule.")
@click.argument("name", metavar="NAME")
@click.argument("folder", metavar="[DIR]", default=".", type=click.Path(path_type=Path, file_okay=False))
def new(name: str, folder: Path) -> None:
    """Create a working rule NAME with examples in DIR, and a script that triggers it in DIR/examples."""
    from advisor.engine import load_rules
    from advisor.engine.template import write_rule
    from advisor.model.settings import Settings

    rule, script = write_rule(name, folder, {loaded.id for loaded in load_rules([], Settings())})
    click.echo(f"{rule}\n{script}\nTo test it: advisor rules test {folder}")


@command.command("test", short_help="Test your own rules.")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
def test(folder: Path) -> int:
    """Run the examples of the rules in DIR. Exits with 1 if one fails."""
    from advisor.engine.examples import failures
    from advisor.model.settings import load_settings

    path = folder.resolve()
    seconds = load_settings(Path.cwd()).rule_seconds
    own = [loaded for loaded in rules_here([folder]) if loaded.path.resolve().parent == path]
    if not own:
        raise click.UsageError(f"There is no rule in {folder}; `advisor rules new NAME {folder}` creates one.")
    has_failed = False
    for loaded in own:
        failed = failures(loaded, seconds)
        has_failed = has_failed or bool(failed)
        count = len(loaded.examples)
        click.echo(f"{loaded.id}: {'no examples' if not count else f'{count} examples, {len(failed)} failed'}")
        for sentence in failed:
            click.echo(f"  {' '.join(sentence.split())}")
    return EXIT_FAILED_EXAMPLES if has_failed else 0


def rules_here(folders: Sequence[Path]) -> list[LoadedRule]:
    """Load the rules with the thresholds from the current folder's settings.

    Rule folders named by these settings are not loaded, so no code of the current folder runs; a warning on stderr says so.
    """
    from advisor.engine import load_rules
    from advisor.model.settings import load_settings, not_loaded_sentence, without_named_rules

    settings = without_named_rules(load_settings(Path.cwd()), folders)
    if sentence := not_loaded_sentence(settings):
        click.echo(f"warning: {sentence}", err=True)
    return load_rules(folders, settings)
