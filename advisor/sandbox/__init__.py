"""Trial runs that leave no trace: a private view of the disk, redirection where that is refused, no orphans, no stale folders.

`private_run` is what other packages use; `temporary` makes every temporary folder of the tool. This package imports nothing of
the project but `advisor.model.errors`, and nothing outside the standard library: its launcher runs before the script does.
"""
