"""Changed files written, and restored byte for byte."""
