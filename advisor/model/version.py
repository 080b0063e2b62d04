"""The version of this package, in a module that every layer can import."""

__version__ = "0.1.0"
