"""Runs in other programs' formats: a merged timeline, tables, code-scanning results, Markdown for a pull request.

In: profiles, TF1 timelines, or dictionaries of report.json.  Out: text, written as it is made.

    timeline.py   runs merged into one Chrome trace                  (ui.perfetto.dev, chrome://tracing)
    tracks.py     a profile's threads and streams as such events, a slice at a time
    tf1.py        TF1's timeline*.json as such events
    tables.py     report.json -> CSV tables
    sarif.py      report.json -> SARIF 2.1.0
    source_tree.py, line_hashes.py   the repository that findings stand in, and its lines
    markdown.py   report.json -> Markdown
"""
