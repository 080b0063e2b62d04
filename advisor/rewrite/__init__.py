"""Plans fixes and writes them into the user's source; docs/fixes.md gives an overview.

In: findings and the recorded calls to which they refer.  Out: `fix_plan` (which fixes are tried, in which order), `source` and
`patch` (the user's files with edits, as bytes and diff), `apply` (files written and restored).
"""
