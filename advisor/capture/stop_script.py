"""The exception that ends a script after its window."""


class StopScript(BaseException):
    """Ends the script after its window. No `Exception`, so that `except Exception` lets it pass; `finally` runs."""
