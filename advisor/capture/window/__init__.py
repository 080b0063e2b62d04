"""Measures a window of the run: when to open and close it, the profiler session and the resource usage."""
