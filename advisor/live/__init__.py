"""A running script: its samples put together, slow periods found in them, and the places they are passed on to.

In: `LiveSample`s.  Out: `WatchedRun`, `SlowPeriod`s, and lines in files or metrics for other tools.
"""
