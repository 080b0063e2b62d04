"""The fixture that starts jobs with a profiler server."""

from tests.collecting import job

__all__ = ["job"]
