"""`advisor rules`: list the rules, begin a new one, try one's own.

In: folders of more rules; a name; a folder.  Out: a table, two files, or a line per rule on stdout.
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


@click.group("rules", invoke_without_command=True, short_help="List the rules; begin or try one's own.")
@rules_option
@click.pass_context
def command(ctx: click.Context, rules: tuple[Path, ...]) -> None:
    """List the rules: id and what each one finds."""
    if ctx.invoked_subcommand is None:
        from advisor.report.rule_pages import print_rules

        print_rules(rules_here(rules), console_for_people())


@command.command("new", short_help="Begin a rule.")
@click.argument("name", metavar="NAME")
@click.argument("folder", metavar="[DIR]", default=".", type=click.Path(path_type=Path, file_okay=False))
def new(name: str, folder: Path) -> None:
    """Write a rule NAME that works, with its examples, into DIR, and a script that it speaks of into DIR/examples."""
    from advisor.engine import load_rules
    from advisor.engine.template import write_rule
    from advisor.model.settings import Settings

    rule, script = write_rule(name, folder, {loaded.id for loaded in load_rules([], Settings())})
    click.echo(f"{rule}\n{script}\nTry it: advisor rules test {folder}")


@command.command("test", short_help="Try the examples of one's own rules.")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
def test(folder: Path) -> int:
    """Try the examples that the rules in DIR carry. Exits with 1 if one does not hold."""
    from advisor.engine.examples import failures
    from advisor.model.settings import load_settings

    path = folder.resolve()
    seconds = load_settings(Path.cwd()).rule_seconds
    own = [loaded for loaded in rules_here([folder]) if loaded.path.resolve().parent == path]
    if not own:
        raise click.UsageError(f"There is no rule in {folder}; `advisor rules new NAME {folder}` begins one.")
    is_wrong = False
    for loaded in own:
        wrong = failures(loaded, seconds)
        is_wrong = is_wrong or bool(wrong)
        count = len(loaded.examples)
        click.echo(f"{loaded.id}: {'no examples' if not count else f'{count} examples, {len(wrong)} do not hold'}")
        for sentence in wrong:
            click.echo(f"  {' '.join(sentence.split())}")
    return EXIT_FAILED_EXAMPLES if is_wrong else 0


def rules_here(folders: Sequence[Path]) -> list[LoadedRule]:
    """The rules with the thresholds that the current folder's settings give them.

    No code of the current folder is run: rule folders that its settings name are not loaded, which a line on stderr says.
    """
    from advisor.engine import load_rules
    from advisor.model.settings import load_settings, not_loaded_sentence, without_named_rules

    settings = without_named_rules(load_settings(Path.cwd()), folders)
    if sentence := not_loaded_sentence(settings):
        click.echo(f"warning: {sentence}", err=True)
    return load_rules(folders, settings)
