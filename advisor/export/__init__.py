"""Runs in other programs' formats: a merged timeline, tables, code-scanning results, Markdown for a pull request.

In: profiles or the dictionary of report.json.  Out: text, written as it is made.

    timeline.py   runs and TF1 timelines -> one Chrome trace, streamed          (Perfetto, chrome://tracing)
    events.py     a profile's events, a slice at a time
    tables.py     report.json -> CSV tables
    sarif.py      report.json -> SARIF 2.1.0
    markdown.py   report.json -> Markdown
"""
