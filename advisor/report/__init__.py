"""Report phase: a `Report` as text for people and as JSON for programs; no arithmetic, no opinion.

In: `Report`.  Out: lines on a console (`text`), the public report.json (`json`, `report.schema.json`).
"""
