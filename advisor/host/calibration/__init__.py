"""Every constant that was fitted or guessed on one machine, and the costs that are measured anew on each machine.

    prediction.py   constants of `advisor.predict`
    analysis.py     constants of `advisor.graph`
    window.py       constants of `advisor.capture.window`
    proof.py        constants of `advisor.prove`
    offload.py      constants of `advisor.offload` and of its measurement
    constant.py     `Constant`: a value with its unit, its origin and the machine
    stored.py       the user's cache of measured costs, one file per machine

A number belongs here if another machine, another version of TensorFlow or another opinion might change it: measured costs, fitted
factors, thresholds between noise and effect, durations long enough for something to settle, time limits.

A number stays with its code if it is a definition or a limit of a format: values of TensorFlow's API, enumerations, exit codes,
sizes of a record's header, statistical levels (`advisor.model.intervals`), published thresholds (XProf's 5 % and 20 % of
waiting), and caps that only bound memory or the length of a text. The thresholds of a rule are fields of the rule.

Read them as `NAME.value`. Costs that differ between machines are read through `advisor.predict.machine_costs`, which prefers what
was measured on the machine of the run.
"""
