"""Recorded datasets made again, with edits, in the script's own process."""
