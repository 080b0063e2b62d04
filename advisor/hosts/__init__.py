"""Several hosts of one run: analysed one by one or in parallel processes, then compared.

In: the profile files of a run.  Out: `Analysis` with `hosts`. Only the pipelines of each host are kept, so memory depends on the
largest file and not on the number of hosts.
"""

from advisor.hosts.analyze_hosts import analyse_and_draw, analyse_files, analyse_path

__all__ = ["analyse_and_draw", "analyse_files", "analyse_path"]
