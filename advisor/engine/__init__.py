"""The rules, found, asked and ranked.

In: an `Analysis`, rules and settings.  Out: a `Report`.
"""

from advisor.engine.loader import LoadedRule, load_rules
from advisor.engine.run import run_rules

__all__ = ["LoadedRule", "load_rules", "run_rules"]
