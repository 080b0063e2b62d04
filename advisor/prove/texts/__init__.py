"""Compares two texts of a script: the calls they make, the elements of their datasets, their speed."""
