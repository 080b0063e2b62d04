"""Turns on the documented offline modes of experiment trackers, so that trial runs do not appear on a server.

In: the environment of the user.  Out: environment variables to add to it. A tracker that the user has disabled stays disabled.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

_OFFLINE = (
    ("WANDB_MODE", "offline", ("offline", "disabled", "dryrun")),
    ("NEPTUNE_MODE", "offline", ("offline", "disabled", "debug")),
    ("CLEARML_OFFLINE_MODE", "1", ("1",)),
    ("SWANLAB_MODE", "offline", ("offline", "disabled", "local")),
    ("COMET_START_ONLINE", "0", ("0", "false", "False")),
)
"""(variable, value for the offline mode, values with which runs do not appear on a server either)."""
_FOLDERS = (("WANDB_DIR", "wandb"), ("COMET_OFFLINE_DIRECTORY", "comet"), ("NEPTUNE_DATA_DIRECTORY", "neptune"))

TRACKER_FOLDERS = tuple(name for _, name in _FOLDERS)


def offline_variables(environment: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Return the environment variables with which trackers write to `folder` and send nothing.

    Args:
        environment: The user's environment.
        folder: Folder to which the trackers may write; it does not have to exist.
    """
    changed = {name: value for name, value, quiet in _OFFLINE if environment.get(name) not in quiet}
    changed |= {name: str(folder / part) for name, part in _FOLDERS}
    if "://" in environment.get("MLFLOW_TRACKING_URI", ""):  # a local store is part of the private view
        changed["MLFLOW_TRACKING_URI"] = (folder / "mlruns").as_uri()
    return changed
