"""The shares of step time spent waiting for input from which a run counts as input-bound.

Source: XProf's thresholds (`op_stats_to_input_pipeline_analysis.cc`).
"""

from __future__ import annotations

MODERATE_WAIT_SHARE = 0.05
"""From this share on, 0 to 1, a run is input-bound."""
HIGH_WAIT_SHARE = 0.20
"""From this share on, 0 to 1, it is highly input-bound."""
