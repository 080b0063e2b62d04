"""Converts runs to the formats of other programs: a merged timeline, tables, code-scanning results, Markdown, a graph.

In: profiles, TF1 timelines, or dictionaries of report.json.  Out: text, generated incrementally.

    merged_timeline.py   merges runs into one Chrome trace (ui.perfetto.dev, chrome://tracing)
    profile_tracks.py    a profile's threads and streams as Chrome trace events
    tf1_timelines.py     TF1's timeline*.json as Chrome trace events
    csv_tables.py        report.json -> CSV tables
    sarif.py             report.json -> SARIF 2.1.0
    source_tree.py       the repository that contains the findings, for sarif.py
    line_hashes.py       hashes of its lines, for sarif.py
    markdown.py          report.json -> Markdown
    node_link.py         report.json -> the executed graph and its calls as node-link JSON
"""
