"""Where the exact interval of a median was defined; it is now in `advisor.intervals`."""

from advisor.intervals import interval_rank, median_interval

__all__ = ["interval_rank", "median_interval"]
