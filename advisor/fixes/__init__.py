"""Edits applied: to the user's source (`source`).

In: a `Fix`.  Out: a diff or new source text.
"""
