"""Load, evaluate and rank the rules.

In: an `Analysis`, rules and settings. Out: a `Report`.
"""

from advisor.engine.rule_file import LoadedRule, threshold_of
from advisor.engine.rule_loader import load_rules
from advisor.engine.run import run_rules

__all__ = ["LoadedRule", "load_rules", "run_rules", "threshold_of"]
