"""The exception that ends a script after its window."""


class StopScript(BaseException):
    """Ends the script after its window.

    It does not derive from `Exception`, so that `except Exception` in the script does not catch it. `finally` blocks run.
    """
