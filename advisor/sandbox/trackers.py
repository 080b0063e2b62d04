"""Experiment trackers in trial runs: their documented offline modes, so that no run appears on a server.

In: the environment of the user.  Out: the variables that are set over it. A tracker that is switched off stays off.
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
"""Variable, its value for offline, and the values of the user's own that already keep a run off the server."""
_FOLDERS = (("WANDB_DIR", "wandb"), ("COMET_OFFLINE_DIRECTORY", "comet"), ("NEPTUNE_DATA_DIRECTORY", "neptune"))

TRACKER_FOLDERS = tuple(name for _, name in _FOLDERS)


def offline_variables(environment: Mapping[str, str], folder: Path) -> dict[str, str]:
    """What to set so that trackers write below `folder` and send nothing.

    Args:
        environment: The user's environment.
        folder: Where the trackers may write; it need not exist.
    """
    changed = {name: value for name, value, quiet in _OFFLINE if environment.get(name) not in quiet}
    changed |= {name: str(folder / part) for name, part in _FOLDERS}
    if "://" in environment.get("MLFLOW_TRACKING_URI", ""):  # a local store is part of the private view
        changed["MLFLOW_TRACKING_URI"] = (folder / "mlruns").as_uri()
    return changed
