"""graph phase."""
