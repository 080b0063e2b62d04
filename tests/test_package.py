"""What pyproject.toml puts into the wheel: every package, and every file beside the code."""

from __future__ import annotations

import fnmatch
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
SETUPTOOLS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]


def package_of(path: Path) -> str:
    """The innermost package that a file below `advisor/` lies in."""
    folder = path.parent
    while not (folder / "__init__.py").is_file():
        folder = folder.parent
    return ".".join(folder.relative_to(ROOT).parts)


def test_every_package_is_in_the_wheel():
    packages = {package_of(path) for path in (ROOT / "advisor").rglob("*.py")}
    assert packages | {"advisor.rules"} == set(SETUPTOOLS["packages"])


def test_every_file_beside_the_code_is_in_the_wheel():
    beside = [
        path
        for path in (ROOT / "advisor").rglob("*")
        if path.is_file() and path.suffix != ".py" and path.parent.name != "__pycache__"
    ]
    assert ROOT / "advisor/py.typed" in beside
    for path in beside:
        package = package_of(path)
        relative = path.relative_to(ROOT.joinpath(*package.split("."))).as_posix()
        patterns = SETUPTOOLS["package-data"].get(package, [])
        assert any(fnmatch.fnmatch(relative, pattern) for pattern in patterns), f"{path} is in no package-data"
