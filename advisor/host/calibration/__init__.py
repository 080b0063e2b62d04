"""Every constant that was fitted or guessed on one machine, and the costs that are measured anew on each machine.

    prediction.py   constants of `advisor.predict`
    analysis.py     constants of `advisor.graph` and `advisor.statistics`
    hosts.py        constants of `advisor.hosts`
    window.py       constants of `advisor.capture.window`
    capture.py      constants of the rest of `advisor.capture`, and of `advisor.host`
    live.py         constants of `advisor.live`, and of captures of a running job
    proof.py        constants of `advisor.prove`, and of further runs of a script
    offload.py      constants of `advisor.offload` and of its measurement
    constant.py     `Constant`: a value with its unit, its origin and the machine
    stored.py       the user's cache of measured costs, one file per machine

A number belongs here if another machine, another version of TensorFlow or another opinion might change it: measured costs, fitted
factors, thresholds between noise and effect, durations long enough for something to settle, time limits.

A number stays with its code if it is a definition or a limit of a format: values of TensorFlow's API, enumerations, exit codes,
sizes of a record's header, statistical levels (`advisor.model.intervals`), published thresholds (XProf's 5 % and 20 % of
waiting, the 50 us of the profiler guide's slow calls), and caps that only bound memory or the length of a text. The thresholds
of a rule are fields of the rule. `advisor.model` and `advisor.sandbox` may not import this package, so their constants stay with
them, such as the default limit of the step time (`advisor.model.budgets`).

Read them as `NAME.value`. Costs that differ between machines are read through `advisor.predict.machine_costs`, which prefers what
was measured on the machine of the run.
"""
