"""Compares the elements of two datasets: digests, streams, and statistical tests where they are random."""
