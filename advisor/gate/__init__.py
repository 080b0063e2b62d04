"""The gate for CI: budgets on what was measured, a baseline of known findings, and the texts of a base revision.

In: reports, alternating runs and the budgets of the settings.  Out: the parts of `advisor.model.check_result.Check`.

    evaluate.py        budgets + values -> outcomes
    baseline.py        advisor-baseline.json: which findings are known, and how the file shrinks
    base_revision.py   git -> the texts of another revision, for runs beside those of the working tree
    changed_texts.py   the change that `advisor prove` judges: another file, a patch, a revision
    git_command.py     git commands that only read
"""
