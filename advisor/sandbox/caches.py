"""Keeps datasets that a run downloads and prepares, so that the next runs can use them.

In: the environment, and the files written by a run.  Out: caches to exclude from the private view, and a layer with new caches.

Existing caches of tfds, Keras and Hugging Face are excluded from the private view, because these libraries only add files.
Datasets that a run prepares elsewhere (`data_dir=`, or a cache that did not exist) are available to the next runs of the same
program and removed at its end.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import stat
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from advisor.sandbox.mounts import is_below
from advisor.sandbox.temporary import temporary_folder

_INFO = "dataset_info.json"
"""The last file that tfds and Hugging Face write when they prepare a dataset."""
_MAX_FOLDERS = 100_000
"""Maximum number of folders that are looked through."""
_layers: dict[str, Path] = {}
_stack: ExitStack | None = None
_owner = 0


def cache_folders(environment: Mapping[str, str]) -> list[Path]:
    """Return the cache folders of tfds, Keras and Hugging Face, according to their documented variables and defaults."""
    home = Path(environment.get("HOME") or Path("~").expanduser())
    cache = Path(environment.get("XDG_CACHE_HOME") or home / ".cache")
    keras = Path(environment.get("KERAS_HOME") or home / ".keras")
    hugging_face = Path(environment.get("HF_HOME") or cache / "huggingface")
    return [
        Path(environment.get("TFDS_DATA_DIR") or home / "tensorflow_datasets"),
        keras / "datasets",
        keras / "models",
        Path(environment.get("HF_DATASETS_CACHE") or hugging_face / "datasets"),
        Path(environment.get("HF_HUB_CACHE") or environment.get("HUGGINGFACE_HUB_CACHE") or hugging_face / "hub"),
    ]


def real_caches(environment: Mapping[str, str], projects: tuple[str, ...]) -> list[str]:
    """Return the existing caches, except those that contain the project itself.

    Args:
        environment: Environment of the run.
        projects: Folders of the project.
    """
    folders = []
    for folder in cache_folders(environment):
        path = os.path.realpath(folder)
        if Path(path).is_dir() and path != "/" and not any(is_below(project, path) for project in projects):
            folders.append(path)
    return folders


def layers() -> dict[str, str]:
    """Return place -> folder with the datasets that earlier runs of this program prepared there."""
    return {place: str(path) for place, path in _layers.items()} if _owner == os.getpid() else {}


def keep_filled(uppers: Mapping[str, str], environment: Mapping[str, str]) -> None:
    """Keep the datasets that a run has prepared, by moving them out of the folders that will be removed.

    Args:
        uppers: Place -> folder with the files that were written there.
        environment: Environment of the run.
    """
    cache_paths = [os.path.realpath(folder) for folder in cache_folders(environment)]
    for place, upper in uppers.items():
        if not upper:
            continue
        for folder in _filled(place, Path(upper), cache_paths):
            with contextlib.suppress(OSError):
                _merge(Path(upper), folder.relative_to(upper), _layer(place))


def _filled(place: str, upper: Path, cache_paths: list[str]) -> list[Path]:
    """Return the folders in `upper` that are prepared datasets or caches."""
    filled = []
    for path in cache_paths:
        if is_below(path, place) and path != place:
            folder = upper / os.path.relpath(path, place)
            if folder.is_dir() and any(folder.iterdir()):
                filled.append(folder)
    for number, (parent, folders, names) in enumerate(os.walk(upper)):
        if number > _MAX_FOLDERS:
            break
        if _INFO in names:
            filled.append(Path(parent))
            folders.clear()
    return filled


def _layer(place: str) -> Path:
    global _stack, _owner
    if _owner != os.getpid():
        _layers.clear()
        _stack, _owner = ExitStack(), os.getpid()
        atexit.register(_stack.close)
    if place not in _layers:
        assert _stack is not None
        _layers[place] = _stack.enter_context(temporary_folder("datasets"))
        _layers[place].chmod(Path(place).stat().st_mode & 0o7777)
    return _layers[place]


def _merge(upper: Path, inner: Path, layer: Path) -> None:
    """Move `upper / inner` to the same path in `layer`, and create its parents with their original permissions."""
    for parent in [*reversed(inner.parents)][1:]:
        if not (layer / parent).is_dir():
            (layer / parent).mkdir()
            (layer / parent).chmod((upper / parent).stat().st_mode & 0o7777)
    _move(upper / inner, layer / inner)


def _move(source: Path, target: Path) -> None:
    status = source.lstat()
    if stat.S_ISCHR(status.st_mode):
        return  # overlayfs marks removed files with a character device
    if stat.S_ISDIR(status.st_mode) and target.is_dir():
        for entry in list(source.iterdir()):
            _move(entry, target / entry.name)
    else:
        source.rename(target)
