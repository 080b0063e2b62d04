"""Rebuilds recorded datasets with edits, in the script's process."""
