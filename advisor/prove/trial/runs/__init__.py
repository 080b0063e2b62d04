"""Runs of the script in a child process that count, check, hold or take turns."""
