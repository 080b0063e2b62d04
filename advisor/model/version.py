"""The version of this package; every layer can import it from here."""

__version__ = "0.1.0"
