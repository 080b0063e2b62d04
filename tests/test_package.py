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
    for path in (ROOT / "advisor").rglob("*"):
        if not path.is_file() or path.suffix == ".py" or path.parent.name == "__pycache__":
            continue
        package = package_of(path)
        relative = path.relative_to(ROOT.joinpath(*package.split("."))).as_posix()
        patterns = SETUPTOOLS["package-data"].get(package, [])
        assert any(fnmatch.fnmatch(relative, pattern) for pattern in patterns), f"{path} is in no package-data"
