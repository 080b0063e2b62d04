"""The tab "tf.data" of TensorBoard: the runs of a logdir, and the report of each.

In: TensorBoard's context (its logdir) and requests of its page.  Out: a list of runs, and report.html for one of them.

    loader.py         what TensorBoard imports at its start; a failure costs the tab and nothing else
    plugin.py         routes and responses
    access.py         which requests are answered
    run_finder.py     the runs of a logdir, and nothing outside of it
    reports.py        one analysis at a time, finished ones are kept
    report_worker.py  the child process that analyses one run, within limits of time and memory
    worker_messages.py what TensorBoard's process and the child say to each other
    assets/           the page of the tab

Up to the first request for a report, TensorBoard's process imports only the standard library from here. The analysis itself never
runs in it.
"""
