"""Scripts with a tempting fix that is wrong, and the command that shows whether `advisor fix` falls for them."""
