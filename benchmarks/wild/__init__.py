"""Training scripts from public repositories: recipes, their reader, the fetcher and the stand-in data.

No text of theirs is stored here. A recipe names where a file lies and the sha256 of its text, and edits name lines of it.
"""
