"""When to measure, and what: the schedule, the monitor that follows it, the profiler, and resource usage."""
