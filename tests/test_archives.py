"""The sdist and the wheel, built from the committed files: what they contain, and what they leave out."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

from advisor.model.version import __version__

pytestmark = pytest.mark.long
ROOT = Path(__file__).parents[1]
MAX_BYTES = 1_000_000
"""Largest file in the wheel; the embedded JavaScript libraries are the largest, with up to 0.3 MB each."""
NOT_SHIPPED = ("tests", "examples", "benchmarks", "docs", ".github", ".ci")
BUILD = "import sys; from setuptools import build_meta; print(getattr(build_meta, sys.argv[1])(sys.argv[2]))"
"""Calls the build backend directly, as `python -m build` does, without an environment to download."""


@pytest.fixture(scope="module")
def archives(tmp_path_factory):
    """The sdist, built from a copy of the repository, and the wheel, built from the sdist."""
    folder = tmp_path_factory.mktemp("archives")
    sdist = folder / build("build_sdist", repository_copy(folder / "repository"), folder)
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    wheel = folder / build("build_wheel", folder / sdist.name.removesuffix(".tar.gz"), folder)
    return sdist, wheel


def repository_copy(folder):
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    if listed.returncode:
        pytest.skip("not a git repository")
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, folder / name)
    return folder


def build(hook, source, folder):
    done = subprocess.run([sys.executable, "-c", BUILD, hook, str(folder)], cwd=source, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]


@pytest.fixture(scope="module")
def wheel_files(archives):
    """Name -> content of every file in the wheel."""
    with zipfile.ZipFile(archives[1]) as wheel:
        return {name: wheel.read(name) for name in wheel.namelist()}


@pytest.fixture(scope="module")
def sdist_names(archives):
    with tarfile.open(archives[0]) as archive:
        return {name.partition("/")[2] for name in archive.getnames() if "/" in name}


def shipped():
    """Path in the wheel -> file of the repository, for everything below advisor/ and rules/."""
    files = [
        path
        for top in ("advisor", "rules")
        for path in (ROOT / top).rglob("*")
        if path.is_file() and path.suffix != ".pyc" and "__pycache__" not in path.parts
    ]
    names = {path: path.relative_to(ROOT).as_posix() for path in files}
    return {name if name.startswith("advisor/") else f"advisor/{name}": path for path, name in names.items()}


def test_the_wheel_contains_every_file_of_the_package(wheel_files):
    expected = shipped()
    in_wheel = {name: content for name, content in wheel_files.items() if ".dist-info/" not in name}
    assert set(in_wheel) == set(expected)
    assert [name for name, path in expected.items() if in_wheel[name] != path.read_bytes()] == []


@pytest.mark.parametrize(
    "name",
    [
        "advisor/py.typed",
        "advisor/SKILL.md",
        "advisor/rules/serial_map.py",
        "advisor/report/report.schema.json",
        "advisor/report/html/templates/page.html.j2",
        "advisor/report/html/assets/vendor/d3.min.js",
        "advisor/profile/xplane.binpb",
    ],
)
def test_the_wheel_contains(wheel_files, name):
    assert name in wheel_files


def test_no_file_in_the_wheel_is_large(wheel_files):
    assert {name: len(content) for name, content in wheel_files.items() if len(content) > MAX_BYTES} == {}


def test_the_metadata(wheel_files):
    folder = f"tfdata_advisor-{__version__}.dist-info"
    metadata = Parser().parsestr(wheel_files[f"{folder}/METADATA"].decode())
    assert (metadata["Name"], metadata["Version"]) == ("tfdata-advisor", __version__)
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert f"{folder}/licenses/LICENSE" in wheel_files and f"{folder}/licenses/THIRD_PARTY.md" in wheel_files
    entry_points = wheel_files[f"{folder}/entry_points.txt"].decode().split()
    assert "".join(entry_points).count("=advisor.cli:main") == 2


def test_the_sdist_contains_what_the_wheel_is_built_from(sdist_names):
    sources = {path.relative_to(ROOT).as_posix() for path in shipped().values()}
    assert sources <= sdist_names
    assert {"pyproject.toml", "README.md", "LICENSE", "THIRD_PARTY.md", "CHANGELOG.md", "CITATION.cff"} <= sdist_names


def test_tests_and_their_data_are_left_out(sdist_names, wheel_files):
    for names in (sdist_names, wheel_files):
        assert [name for name in names if name.split("/")[0] in NOT_SHIPPED] == []
