"""The tests of report.html have a browser."""

from tests.browser import browser, open_file

__all__ = ["browser", "open_file"]
