"""Several hosts of one run: analysed one by one, in parallel processes or on a cluster, merged and compared.

In: the profile files of a run.  Out: `Analysis` with `hosts` and with the statistics of all hosts. One row is kept of every host
and pipelines of the most input-bound ones, so memory depends on the largest file and hardly on the number of hosts.
"""

from advisor.hosts.analyze_hosts import analyse_and_draw, analyse_files, analyse_path

__all__ = ["analyse_and_draw", "analyse_files", "analyse_path"]
