"""Which changes are tried in which order, what was kept, and the proof of all kept ones on the whole script."""
