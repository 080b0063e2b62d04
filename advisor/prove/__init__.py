"""Which fixes to try, how they are measured against the original, and what `advisor fix` says about them."""
