"""Stub."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from advisor.model.finding import Fix
from advisor.model.recording import Call


def diff_for(fix: Fix, calls: Mapping[str, Call], root: Path) -> str | None:
    """None until edits are written."""
    return None


def rewrite(text: str, fix: Fix, calls: Mapping[str, Call]) -> str | None:
    """None until edits are written."""
    return None
