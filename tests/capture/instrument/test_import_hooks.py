"""Doing something after an import, and only then."""

from __future__ import annotations

import importlib.util
import sys

import pytest

from advisor.capture.instrument.import_hooks import AfterImport


@pytest.fixture
def package(tmp_path, monkeypatch):
    (tmp_path / "late_package.py").write_text("value = 1\n")
    (tmp_path / "broken_package.py").write_text("raise RuntimeError('no')\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield
    sys.modules.pop("late_package", None)


def test_the_action_runs_once_after_the_module(package):
    seen = []
    hook = AfterImport({"late_package": lambda module: seen.append(module.value)})
    hook.install()
    try:
        assert importlib.util.find_spec("late_package") is not None and seen == [], "asking is not importing"
        import late_package

        assert seen == [1] and type(late_package.__spec__.loader).__name__ == "SourceFileLoader"
        importlib.reload(late_package)
        assert seen == [1]
    finally:
        hook.remove()


def test_a_module_that_is_there_already_gets_its_action():
    seen = []
    hook = AfterImport({"json": lambda module: seen.append(module.__name__)})
    hook.install()
    hook.remove()
    assert seen == ["json"]


def test_a_failing_import_fails_as_ever(package):
    hook = AfterImport({"broken_package": lambda module: pytest.fail("it never ran")})
    hook.install()
    try:
        with pytest.raises(RuntimeError, match="no"):
            import broken_package  # noqa: F401
        with pytest.raises(ModuleNotFoundError):
            import absent_package  # noqa: F401
    finally:
        hook.remove()
