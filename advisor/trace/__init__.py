"""trace phase."""
