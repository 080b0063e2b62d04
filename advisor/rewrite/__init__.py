"""Fixes planned, replayed, and written into the user's source.

In: findings and the recorded calls they speak of.  Out: `plan` (which are tried, in which order), `replay` (a dataset made again
with edits), `source` and `patch` (the user's files with edits, as bytes and diff), `write` (the files exchanged, and given back).
docs/fixes.md tells the whole way.
"""
