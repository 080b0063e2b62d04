"""`advisor skill`: the instructions for a coding agent that works with this tool.

In: an option.  Out: the text of SKILL.md on stdout, or a copy of it in a folder of skills.
"""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import click

SKILL_NAME = "tfdata-advisor"
"""As in the front matter; agents expect a skill in a folder of its name."""
_FILE = "SKILL.md"


@click.command("skill", short_help="Instructions for a coding agent.")
@click.option(
    "--write",
    "folder",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Write them into this folder of skills.",
)
def command(folder: Path | None) -> None:
    """Print how a coding agent makes a script faster with this tool: analyse, edit, prove.

    With --write, the text becomes FOLDER/tfdata-advisor/SKILL.md, where agents that read skills from FOLDER find it.
    """
    text = skill_text()
    if folder is None:
        click.echo(text, nl=False)
        return
    from advisor.model.errors import AdvisorError
    from advisor.model.outputs import write_output
    from advisor.model.own_files import FileKind

    if not folder.is_dir():
        raise AdvisorError(
            f"--write {folder}: there is no such folder; create it, or name the one with the agent's skills."
        )
    path = folder / SKILL_NAME / _FILE
    try:
        path.parent.mkdir(exist_ok=True)
    except OSError as error:
        raise AdvisorError(f"Cannot write {path}: {error.strerror or error}.") from None
    write_output("--write", path, FileKind.SKILL, text.encode())
    click.echo(f"Wrote {path}.")


def skill_text() -> str:
    """Return SKILL.md, which the package ships."""
    return resources.files("advisor").joinpath(_FILE).read_text("utf-8")
