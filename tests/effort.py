"""How many examples Hypothesis tries: a profile for `make test`, one for CI, and one that looks for new failures.

In: `pytest --hypothesis-profile NAME`; `ordinary` without it.  Out: `examples`, for tests that need another number than the rest.
"""

from __future__ import annotations

from hypothesis import settings

LEAST = 5
"""With fewer, a test is hardly more than an example."""


def register_profiles() -> None:
    """Make the profiles known. Only `thorough` draws other examples in every run; a busy machine fails none of them."""
    settings.register_profile("quick", max_examples=10, deadline=None, derandomize=True)
    settings.register_profile("ordinary", max_examples=100, deadline=None, derandomize=True)
    settings.register_profile("thorough", max_examples=300, deadline=None, derandomize=False)
    settings.load_profile("ordinary")


def examples(ordinary: int) -> int:
    """The number for the chosen profile of a test that tries so many in the `ordinary` one."""
    return max(LEAST, ordinary * settings.default.max_examples // 100)
