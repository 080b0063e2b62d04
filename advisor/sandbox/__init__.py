"""Runs scripts without permanent effects: a private view of the disk or redirection, no orphan processes, no stale folders.

Other packages use `private_run`, and `temporary` for temporary folders. This package imports only the standard library and
`advisor.model.errors`, because its launcher runs before the script does.
"""
