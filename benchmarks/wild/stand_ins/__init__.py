"""Stand-in data for scripts from the wild: small, generated with fixed seeds, in the real formats.

In: the name of a function below, a folder and options, as in a recipe.  Out: files in that folder.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from wild.stand_ins import arrays, images, prepared, records, sounds, tables, texts

FUNCTIONS: dict[str, Callable[..., None]] = {
    function.__name__: function
    for function in (
        images.picture_folders,
        images.captchas,
        images.masks,
        images.facades,
        arrays.digits,
        arrays.small_pictures,
        texts.review_folders,
        texts.translations,
        texts.captions,
        texts.tagged_sentences,
        texts.method_paths,
        tables.weather,
        tables.heart,
        tables.film_ratings,
        tables.traffic,
        tables.point_clouds,
        sounds.speeches,
        sounds.read_sentences,
        records.boxed_pictures,
        records.picture_pairs,
        prepared.prepared_dataset,
    )
}
"""By name. The first parameter of each is the folder."""


def make_stand_in(name: str, folder: Path, options: Mapping[str, Any]) -> None:
    """Make the data in `folder`.

    Raises:
        ValueError: If there is no such function, or if it has no such option.
    """
    check_stand_in(name, options)
    folder.mkdir(parents=True, exist_ok=True)
    FUNCTIONS[name](folder, **options)


def check_stand_in(name: str, options: Mapping[str, Any]) -> None:
    """Raise if the function does not exist or does not take these options.

    Raises:
        ValueError: In these cases.
    """
    if name not in FUNCTIONS:
        raise ValueError(f"there is no stand-in {name!r}; there are {', '.join(sorted(FUNCTIONS))}")
    try:
        inspect.signature(FUNCTIONS[name]).bind(Path(), **options)
    except TypeError as error:
        raise ValueError(f"the stand-in {name} cannot be made so: {error}") from error
