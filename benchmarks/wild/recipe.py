"""Recipes of scripts from the wild: where a script lies, what is changed in it, the data it gets, and the verdict it should get.

In: `recipes/*.toml`.  Out: `Recipe`s.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Literal

import msgspec

RECIPES = Path(__file__).parent / "recipes"

Sha = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{40}$")]
Digest = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
Repository = Annotated[str, msgspec.Meta(pattern=r"^[\w.-]+/[\w.-]+$")]
Text = Annotated[str, msgspec.Meta(min_length=1)]


class Edit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A change of one line, or of several lines that follow each other.

    The sha256 of the file pins its lines, so that a number identifies them without their text. No edit changes the number of
    lines: a finding names the line that the author sees.
    """

    line: Annotated[int, msgspec.Meta(ge=1)]
    why: Text
    new: str = ""
    """The replacement; empty: the text is removed. For whole lines at most as many lines as they are."""
    until: int | None = None
    """Last line, if several are replaced as a whole."""
    old: Text | None = None
    """The part of the line that is replaced, which occurs once in it; None: the whole line."""

    @property
    def last(self) -> int:
        """Last line that is changed."""
        return self.line if self.until is None else self.until

    def __post_init__(self) -> None:
        """Check what types cannot say."""
        if self.last < self.line:
            raise ValueError(f"the edit ends in line {self.last}, before its first line {self.line}")
        if self.old is not None and (self.until is not None or "\n" in self.old + self.new):
            raise ValueError(f"the edit of a part of line {self.line} extends beyond that line")
        if self.new.count("\n") > self.last - self.line:
            raise ValueError(f"the edit of lines {self.line} to {self.last} adds lines")


class File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One file of the repository."""

    path: Text
    sha256: Digest
    edits: Sequence[Edit] = ()

    def __post_init__(self) -> None:
        """Edits are in the order of their lines and do not overlap."""
        for first, second in zip(self.edits, self.edits[1:], strict=False):
            is_same_line = first.line == second.line and first.old is not None and second.old is not None
            if second.line <= first.last and not is_same_line:
                raise ValueError(
                    f"the edits of {self.path} in lines {first.line} and {second.line} overlap or are not in order"
                )


class StandIn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Data in the format that the script expects, made by a function of `wild.stand_ins`."""

    make: Text
    into: str = ""
    """Folder below the script's working folder."""
    options: dict[str, int | str | Sequence[str] | dict[str, int]] = {}


class Recipe(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One script, or one way to run it."""

    title: Text
    """What it trains, in a few words."""
    repository: Repository
    commit: Sha
    licence: Literal["Apache-2.0", "MIT"]
    """SPDX identifier."""
    script: Text
    """The file that is run, as a path in the repository."""
    wanted: Literal["input-bound", "not-input-bound"]
    """The right verdict on two cores without an accelerator."""
    reason: Text
    """Why that is the right verdict, or how it was established."""
    covers: Annotated[Sequence[str], msgspec.Meta(min_length=1)]
    """What of tf.data, Keras or a training loop it adds to the corpus."""
    files: Annotated[Sequence[File], msgspec.Meta(min_length=1)]
    stand_ins: Sequence[StandIn]
    folder: str = ""
    """Folder of the repository that becomes the script's working folder."""
    arguments: Sequence[str] = ()
    environment: dict[str, str] = {}
    packages: Sequence[str] = ()
    """What it imports beyond TensorFlow, Keras, NumPy, tensorflow-datasets and Pillow, as in the extra `wild`."""
    name: str = ""
    """The recipe's file name without the ending."""

    def __post_init__(self) -> None:
        """The script is one of the files, and all of them lie in the folder."""
        paths = [file.path for file in self.files]
        if self.script not in paths:
            raise ValueError(f"{self.script} is not one of the files")
        if len(set(paths)) < len(paths):
            raise ValueError("a file is named twice")
        for path in paths:
            self.local_path(path)

    def local_path(self, path: str) -> Path:
        """Where a file of the repository lies, relative to the script's working folder.

        Raises:
            ValueError: If it is outside the recipe's folder.
        """
        local = Path(path).relative_to(self.folder) if self.folder else Path(path)
        if local.is_absolute() or ".." in local.parts:
            raise ValueError(f"{path} is outside the working folder")
        return local


def read_recipe(path: Path) -> Recipe:
    """Read one recipe.

    Raises:
        ValueError: If it is not well-formed; the message names the file.
    """
    try:
        fields = tomllib.loads(path.read_text(encoding="utf-8"))
        return msgspec.convert({**fields, "name": path.stem}, Recipe)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise ValueError(f"{path.name} is not a recipe: {error}") from error


def read_recipes(folder: Path = RECIPES) -> Iterator[Recipe]:
    """All recipes, by name."""
    for path in sorted(folder.glob("*.toml")):
        yield read_recipe(path)
