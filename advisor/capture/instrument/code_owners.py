"""Tells whose code a file is: the user's, that of an installed package, or that of Python and the advisor.

In: the file name of a code object.  Out: `user`, the name of the package, or None.

Packages are usually in `site-packages`. They can also be in another folder of `sys.path` (`pip install --target`, `PYTHONPATH`
in a container), where the distributions say which modules are theirs, or, like a TensorFlow that was built from its sources,
without any record.
"""

from __future__ import annotations

import site
import sys
import sysconfig
from pathlib import Path

from advisor.model.installed_packages import installed_package

USER = "user"
GENERATED = "__autograph_generated_file"
"""Part of the names of files that AutoGraph generates from the user's functions."""
_OURS = f"{Path(__file__).resolve().parents[2]}/"
_NEVER_THE_USERS = ("tensorflow", "keras", "tf_keras", "tensorflow_datasets")
"""Packages between the script and its datasets. They are recognised wherever they were imported from."""


class CodeOwners:
    """Classifies files by their names, each once."""

    def __init__(self) -> None:
        """Note where this Python keeps packages and its standard library."""
        paths = sysconfig.get_paths()
        packages = {paths["purelib"], paths["platlib"], site.getusersitepackages(), *site.getsitepackages()}
        self._packages = tuple(_with_slash(path) for path in packages)
        self._stdlib = tuple(_with_slash(path) for path in {paths["stdlib"], paths["platstdlib"]})
        self._known: dict[str, str | None] = {}

    def owner_of(self, filename: str) -> str | None:
        """Return `user`, the name of an installed package, or None for files of the advisor and the standard library."""
        try:
            return self._known[filename]
        except KeyError:
            owner = self._known[filename] = self._classify(filename)
            return owner

    def _classify(self, filename: str) -> str | None:
        if GENERATED in filename:
            return USER
        if filename.startswith(("<", _OURS)):
            return None
        path = str(Path(filename).absolute())
        for root in self._packages:
            if path.startswith(root):
                return path[len(root) :].split("/")[0].removesuffix(".py")
        if any(path.startswith(root) for root in self._stdlib):
            return None
        return _package_elsewhere(path) or USER


def _package_elsewhere(path: str) -> str | None:
    """The package of a file outside `site-packages`; None if it is the user's."""
    for name in _NEVER_THE_USERS:
        spec = getattr(sys.modules.get(name), "__spec__", None)
        if spec is not None and spec.origin and path.startswith(_with_slash(str(Path(spec.origin).parent))):
            return name
    for folder in sys.path:
        root = Path(folder or ".").absolute()
        if path.startswith(_with_slash(str(root))) and (package := installed_package(Path(path), root)):
            return package
    return None


def _with_slash(path: str) -> str:
    return str(Path(path).absolute()) + "/"
